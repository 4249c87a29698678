"""Every rule's examples: what must change changes so, what must not stays."""

from __future__ import annotations

import re
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.matchers.packs import Rule, load_all
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import migrate_text

EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.code}-{place}")
    for rule in load_all()
    for place, example in enumerate(rule.examples)
]


OPT_IN = tuple(rule.code for rule in load_all() if rule.opt_in)


@cache
def engine(version: str, opt_in: bool) -> Rules:
    return Rules(Settings(version=version, select=OPT_IN if opt_in else ("ALL",)))


def migrate(text: str, version: str, opt_in: bool) -> Any:
    project = merge_facts([scan_file("example.py", text)])
    return migrate_text(engine(version, opt_in), "example.py", text, project)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_example(rule: Rule, example: dict[str, str]) -> None:
    version = example.get("version", "2.6")
    if "unchanged" in example or "reported" in example:
        result = migrate(example.get("unchanged") or example["reported"], version, rule.opt_in)
        assert result.skipped == ""
        assert result.text is None
        assert not any(finding.fixed for finding in result.findings)
        found = rule.code in {finding.code for finding in result.findings}
        assert found == ("reported" in example)
        return
    result = migrate(example["before"], version, rule.opt_in)
    assert result.skipped == ""
    assert (result.text or example["before"]) == example["after"]
    assert rule.code in {finding.code for finding in result.findings}
    again = migrate(result.text or "", version, rule.opt_in)
    assert again.text is None, "a second migration changes the result"


@pytest.mark.parametrize("rule", load_all(), ids=lambda rule: rule.code)
def test_every_rule_explains_itself(rule: Rule) -> None:
    assert rule.why, "says why"
    if rule.handler in ("none", "library-function"):
        return  # they speak of more than one Python text
    shows = "reported" if rule.fix == "none" else "before"
    assert any(shows in example for example in rule.examples), "shows what it is about"
    assert any("unchanged" in example for example in rule.examples), "shows a look-alike that is not"


@pytest.mark.parametrize("rule", load_all(), ids=lambda rule: rule.code)
def test_references_are_links(rule: Rule) -> None:
    for reference in rule.references:
        address = urlsplit(reference)
        assert address.scheme == "https"
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", address.netloc)
        assert re.fullmatch(r"/[\w./%-]+", address.path)
        assert not address.query
    assert len(set(rule.references)) == len(rule.references)
