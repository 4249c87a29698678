"""float64 on its way to a collective that reduces it."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

HELPER = """\
import torch
import torch.distributed as dist


def summed(values, group=None):
    both = torch.stack(list(values))
    dist.all_reduce(both, group=group)
    return both


def gathered(values):
    dist.all_gather([values], values)


class Plain:
    def mean(self, values):
        dist.all_reduce(values)
"""
MAIN = """\
import torch
from metrics import gathered, summed


def report(loss):
    made = torch.zeros((), dtype=torch.double)
    return {call}
"""


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        ("summed([made, loss])", True),
        ("summed(values=[made, loss])", True),
        ("summed((made + loss, loss))", True),
        ("summed([made.float()])", False),
        ("summed([loss], made)", False),
        ("gathered(made)", False),
        ("[made.mean(), report.mean(made)]", False),
    ],
)
def test_a_helper_in_another_file(call: str, changed: bool) -> None:
    text = migrated(MAIN.format(call=call), others=(HELPER,))
    assert ("dtype=torch.float32" in text) == changed


REDUCED_BY_KEY = """\
import torch
import torch.distributed as dist
from collections import OrderedDict


def merged(data, device):
    held, tensor = OrderedDict(), torch.zeros(2, device=device)
    for name in data:
        held[name] = torch.tensor(data[name], dtype=torch.double)
    held["count"] = tensor
    tensor[0] = torch.ones((), dtype=torch.double)

    def total(values):
        joined = torch.cat([value.view(-1) for value in values.values()]).to(device=device)
        dist.all_reduce(joined)
        return joined

    {call}
"""


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        pytest.param("held = total(held)", True, id="all that was put into it"),
        pytest.param('dist.all_reduce(held["loss"])', True, id="what any key may have put there"),
        pytest.param("dist.all_reduce(tensor)", False, id="an item of a tensor takes its dtype"),
        pytest.param("dist.all_gather([held], held)", False, id="gathered"),
    ],
)
def test_what_is_put_into_a_dictionary(call: str, changed: bool) -> None:
    text = migrated(REDUCED_BY_KEY.format(call=call), select=("NPU206",))
    assert text.count("dtype=torch.float32") == changed


def test_what_stands_under_another_key_stays() -> None:
    text = (
        "import torch\nimport torch.distributed as dist\ndef merged(loss):\n    held = {}\n"
        '    held["exact"] = loss.double()\n    held["loss"] = loss\n    dist.all_reduce(held["loss"])\n'
    )
    assert migrate(text, select=("NPU206",)).text is None
    assert ".float()" in migrated(text.replace('(held["loss"])', '(held["exact"])'), select=("NPU206",))


def test_a_type_of_double_in_another_file() -> None:
    text = migrated(MAIN.format(call="summed([torch.cuda.DoubleTensor(2)])"), others=(HELPER,))
    assert "summed([torch.npu.FloatTensor(2)])" in text


def test_only_where_the_helper_is_known() -> None:
    result = migrate(MAIN.format(call="summed([made])"))
    assert not any(finding.code == "NPU148" for finding in result.findings)


@pytest.mark.parametrize(
    "kept",
    [
        "total = value.double()\n    exact = total.item()\n    dist.all_reduce(value)",
        "total = value.double().to(torch.float32)\n    dist.all_reduce(total)",
        "total = [value.double()]\n    dist.all_gather(total, value)",
        "total = value.double()\n    value = total.float()\n    dist.all_reduce(value)",
    ],
)
def test_what_is_not_reduced_as_float64(kept: str) -> None:
    text = f"import torch\nimport torch.distributed as dist\n\ndef merge(value):\n    {kept}\n"
    assert migrated(text) == text


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (
            "torch.zeros([3], dtype=EXACT, device=device)",
            "torch.zeros([3], dtype=EXACT, device=device).float()",
        ),
        ("value.to(EXACT)", "value.to(EXACT).float()"),
        ("value.to(EXACT).float()", "value.to(EXACT).float()"),
        ("value.to(SHORT)", "value.to(SHORT)"),
    ],
)
def test_a_dtype_that_has_another_name(made: str, wanted: str) -> None:
    text = (
        "import torch\nimport torch.distributed as dist\nEXACT = torch.float64\n"
        "SHORT = torch.float32\n\ndef merge(values, device):\n    sums = []\n    for value in values:\n"
        "        sums.append({made})\n    sums = torch.stack(sums)\n    dist.all_reduce(sums)\n"
        "    return sums.double()\n"
    )
    assert migrated(text.replace("{made}", made)) == text.replace("{made}", wanted)


MEASURES = "import torch\n\n\ndef share(right):\n    return torch.tensor(right.mean(), dtype=torch.double)\n"


@pytest.mark.parametrize(
    ("given", "told"), [("share(right)", True), ("share(right).float()", False), ("right.mean()", False)]
)
def test_what_a_function_of_another_file_gives(given: str, told: bool) -> None:
    text = (
        "import torch.distributed as dist\nfrom measures import share\n\n"
        f"def report(right):\n    value = {given}\n    dist.all_reduce(value)\n    return share(right)\n"
    )
    result = migrate(text, others=(MEASURES,))
    assert [finding.line for finding in result.findings if finding.code == "NPU148"] == [5] * told


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("torch.tensor(value)", 'torch.tensor(value.tolist() if hasattr(value, "tolist") else value)'),
        ("torch.tensor(value, dtype=torch.float32)", "torch.tensor(value, dtype=torch.float32)"),
        ("torch.from_numpy(value)", "torch.from_numpy(value)"),
    ],
)
def test_what_may_be_a_numpy_value_is_given_as_numbers(made: str, wanted: str) -> None:
    text = "import torch\nfrom metrics import summed\ndef merged(value):\n    return summed([{}])\n"
    assert migrated(text.format(made), others=(HELPER,)) == text.format(wanted)


@pytest.mark.parametrize(
    "code",
    [
        "def f(m):\n    n = 2\n    m.hook(lambda _, y: dist.all_reduce(y, 'sum', list(range(n))))\n",
        "hook = lambda x: dist.all_reduce(x)\n",
        "hooks = [lambda x: (lambda y: dist.all_reduce(x + y)) for _ in range(3)]\n",
        "def f(x):\n    return [dist.all_reduce(x) for x in (x, x)]\n",
        "def f(x):\n    return lambda: dist.all_reduce(x)\n",
        "class A:\n    hook = lambda self, x: dist.all_reduce(x)\n",
        "class A:\n    def f(self, y):\n        return lambda x: dist.all_reduce(y)\n",
    ],
)
def test_a_collective_in_a_lambda(code: str) -> None:
    """Its parameters belong to no function: looking for theirs went on to the module, and failed."""
    result = migrate(f"import torch\nimport torch.distributed as dist\ntorch.cuda.set_device(0)\n{code}")
    assert result.skipped == ""
    assert "torch.npu.set_device(0)" in (result.text or "")
