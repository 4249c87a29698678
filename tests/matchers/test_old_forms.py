"""Forms that an old torch took and newer ones refuse."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

LOADER = "import torch\nloader = torch.utils.data.DataLoader(range(4))\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("it = iter(loader)\nx, y = it.next()\n", "it = iter(loader)\nx, y = next(it)\n"),
        ("x = iter(loader).next()[0]\n", "x = next(iter(loader))[0]\n"),
        ("x = iter(\n    loader\n).next()\n", "x = next(iter(\n    loader\n))\n"),
        (
            "class A:\n    it = None\n    def f(self):\n        self.it = iter(loader)\n"
            "    def g(self):\n        return self.it.next()\n",
            None,
        ),
        (
            "it = iter(loader)\ndef f():\n    global it\n    it = iter(loader)\n    return it.next().x\n",
            None,
        ),
    ],
)
def test_next_of_an_iterator(text: str, after: str) -> None:
    expected = after or text.replace("self.it.next()", "next(self.it)").replace("it.next()", "next(it)")
    assert migrated(LOADER + text) == LOADER + expected


@pytest.mark.parametrize(
    "text",
    [
        "def f(it):\n    return it.next()\n",
        "def f(it):\n    if it is None:\n        it = iter(loader)\n    return it.next()\n",
        "it = Prefetcher(loader)\nit.next()\n",
        "class A:\n    def f(self):\n        self.it = Fetcher(iter(loader))\n        self.it.next()\n",
        "it = iter(loader)\nit.next\n",
        "it = iter(loader)\nit.next(2)\n",
    ],
)
def test_what_may_have_a_next_of_its_own(text: str) -> None:
    assert migrated(LOADER + text) == LOADER + text


def test_before_torch_1_13_a_loaders_iterator_had_one() -> None:
    text = LOADER + "it = iter(loader)\nit.next()\n"
    assert migrated(text, "1.11") == text


@pytest.mark.parametrize(
    ("mask", "after"),
    [
        ("m.byte()", "m.bool()"),
        ("(m == 0).byte()", "(m == 0).bool()"),
        ("m.type(torch.ByteTensor)", "m.bool()"),
        ("mask=m.to(torch.uint8)", "mask=m.bool()"),
        ("b", "b.bool()"),
        ("z", "z.bool()"),
    ],
)
def test_a_mask_of_bytes_becomes_one_of_booleans(mask: str, after: str) -> None:
    text = f"""\
import torch
def f(x, m, unknown):
    b = m.byte()
    z = torch.zeros(2, dtype=torch.uint8)
    return x.masked_fill({mask}, value=0.0)
"""
    assert migrated(text) == text.replace(f"masked_fill({mask},", f"masked_fill({after},")


def test_other_masks_are_left_alone() -> None:
    text = """\
import torch
def f(x, m):
    b = m.byte() if x else m
    m.masked_fill(b, 1)
    x[m.byte()] = 0
    return x.masked_fill(m, 0.0), x.masked_fill(m.to(torch.bool), 0.0)
"""
    assert migrated(text) == text


@pytest.mark.parametrize(
    ("spectrum", "wrapped"),
    [
        ("torch.stft(x, 8, return_complex=False)", True),
        ("torch.stack((x, x), -1)", True),
        ("torch.stft(x, 8, return_complex=True)", False),
        ("torch.stack((x, x), 1)", False),
        ("x", False),
    ],
)
def test_istft_of_two_parts_side_by_side(spectrum: str, wrapped: bool) -> None:
    text = f"import torch\ndef f(x):\n    return torch.istft({spectrum}, 8)\n"
    after = f"torch.view_as_complex({spectrum}.contiguous())" if wrapped else spectrum
    assert migrated(text) == text.replace(f"istft({spectrum},", f"istft({after},")


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("    def forward(self, x):\n        return x\n", 1),
        ("    @staticmethod\n    def forward(ctx, x):\n        return x\n", 0),
        ("    def backward(self, x):\n        return x\n", 0),
    ],
)
def test_a_function_whose_forward_is_no_static_method(body: str, count: int) -> None:
    text = f"from torch.autograd import Function\nclass F(Function):\n{body}"
    findings = [each for each in migrate(text).findings if each.code == "NPU644"]
    assert [(each.line, each.severity) for each in findings] == [(3, "error")] * count
