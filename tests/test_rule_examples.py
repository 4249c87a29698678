"""Every rule's examples: what must change changes so, what must not stays."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from migrator.core.examples import failure
from migrator.matchers.packs import Rule
from tests.checking import every_rule

EXAMPLES = [
    pytest.param(rule, number, id=f"{rule.code}-{number}")
    for rule in every_rule()
    for number in range(len(rule.examples))
]


@pytest.mark.parametrize(("rule", "number"), EXAMPLES)
def test_example(rule: Rule, number: int) -> None:
    assert failure(rule, number) is None


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: rule.code)
def test_every_rule_explains_itself(rule: Rule) -> None:
    assert rule.why, "says why"
    of_project = ("none", "library-function", "float64-handed-over", "operator-function", "own-module")
    of_project += ("started-script",)
    if rule.kind in of_project or rule.kind == "mpi-line":
        return  # they speak of more than one Python text
    # NPU176 is about what other rules change.
    shows = "reported" if rule.fix == "none" and rule.kind != "cuda-branch" else "before"
    assert any(shows in example for example in rule.examples), "shows what it is about"
    assert any("unchanged" in example for example in rule.examples), "shows a look-alike that is not"


@pytest.mark.parametrize("rule", every_rule(), ids=lambda rule: rule.code)
def test_references_are_links(rule: Rule) -> None:
    for reference in rule.references:
        address = urlsplit(reference)
        assert address.scheme == "https"
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", address.netloc)
        assert re.fullmatch(r"/[\w./%-]+", address.path)
        assert not address.query
    assert len(set(rule.references)) == len(rule.references)
