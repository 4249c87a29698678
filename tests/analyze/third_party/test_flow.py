"""The ways through a function: is there one without a bad call?"""

from __future__ import annotations

import textwrap

import pytest

from migrator.analyze.third_party.flow import Use, can_end_well, places
from migrator.analyze.third_party.steps import read_steps
from migrator.names.index import ModuleIndex


def function(body: str) -> tuple[object, ...]:
    text = (
        "try:\n    import fast\n    HAS_FAST = True\nexcept ImportError:\n    HAS_FAST = False\n"
        "def f(x, device='cuda'):\n"
    )
    return read_steps(ModuleIndex(text + textwrap.indent(textwrap.dedent(body), "    "), ()), [])["f"]


def works(body: str) -> bool:
    return can_end_well(function(body), lambda use: use.target == "bad")


@pytest.mark.parametrize(
    "body",
    [
        "bad()",
        "return bad() + 1",
        "if x:\n    bad()\nelse:\n    bad()",
        "if x:\n    raise ValueError\nbad()",
        "for i in x:\n    bad()",
        "y = [bad() for i in x]",
        "with bad():\n    pass",
        "while True:\n    if x:\n        bad()\n        break",
        "try:\n    bad()\nexcept ValueError:\n    raise",
        "try:\n    pass\nfinally:\n    bad()",
        "if x.numel() == 0:\n    return x\nreturn bad()",
        "if len(x) > 0:\n    bad()",
        "if bad():\n    pass",
        "assert bad()",
        "y = good(bad())",
        "return bad() if x else bad()",
    ],
)
def test_no_way_around(body: str) -> None:
    assert not works(body)


@pytest.mark.parametrize(
    "body",
    [
        "good()",
        "if x:\n    bad()",
        "if x:\n    return 1\nbad()",
        "if x:\n    bad()\nelif y:\n    good()\nelse:\n    bad()",
        "y = x and bad()",
        "return bad() if x else good()",
        "try:\n    bad()\nexcept RuntimeError:\n    good()",
        "f = lambda: bad()",
        "def inner():\n    bad()",
        "while True:\n    if x:\n        break\n    bad()",
        "y = [bad() for i in x if i]",
        "y = bad",
    ],
)
def test_a_way_around(body: str) -> None:
    assert works(body)


@pytest.mark.parametrize(
    ("body", "guards"),
    [
        ("if x.is_cuda:\n    bad()", ["device"]),
        ("if device == 'cpu':\n    return 1\nbad()", ["device"]),
        ("if torch.cuda.is_available():\n    bad()", ["device"]),
        ("if HAS_FAST:\n    bad()", ["import"]),
        ("if fast is not None:\n    bad()", ["import"]),
        ("try:\n    bad()\nexcept ImportError:\n    good()", ["import"]),
        ("if x.training:\n    bad()", [""]),
        ("if x.numel() > 0:\n    bad()", []),
        ("if x is None:\n    raise ValueError\nbad()", []),
    ],
)
def test_conditions_of_a_place(body: str, guards: list[str]) -> None:
    (place,) = [place for place in places(function(body)) if place.use.target == "bad"]  # type: ignore[arg-type]
    assert [condition.guard for condition in place.conditions] == guards
    assert isinstance(place.use, Use)
