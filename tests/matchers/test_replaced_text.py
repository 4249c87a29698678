"""What a fix replaces is what its finding speaks of, in all examples and labelled snippets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.core.check import check, no_fix
from migrator.core.examples import project_of
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.findings.finding import Edit, Finding, Result
from tests.checking import document, every_rule
from tests.verdicts.test_snippets import SETTINGS, SNIPPETS, loaded

RULES = {rule.code: rule for rule in every_rule()}
# Rules that write another word for the one that they name.
NAMING = frozenset(
    "attribute code-text command config-text env image setting started-script string variable".split()
)
INSIDE_WORD = re.compile(rb"\w\w")
Place = tuple[str, Finding, Edit]


def checked(folder: Path, every: int) -> Iterator[tuple[str, Result]]:
    """The texts of one in ``every`` so many rules and snippets, and what is found in them."""
    for rule in every_rule()[::every]:
        chosen = tuple(each.code for each in every_rule() if each.opt_in) if rule.opt_in else ("ALL",)
        for example in rule.examples:
            text = next(example[key] for key in ("before", "unchanged", "reported") if key in example)
            item = document(example.get("file", "example.py"), text)
            project = project_of(item, example.get("program", ""), example.get("requirements", ""))
            rules = rules_for(Settings(example.get("version", "2.6"), chosen))
            yield text, check(item, rules, project, no_fix, write=False)
    for number, files in enumerate([*SNIPPETS.values()][::every]):
        project = loaded(files, folder / str(number))[1]
        for name, file in files.items():
            item = document(name, file.before)
            yield file.before, check(item, rules_for(SETTINGS), project, no_fix, write=False)


@pytest.fixture(scope="module", params=[4, pytest.param(1, marks=pytest.mark.thorough)])
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Place]:
    """The edits in the texts: in a fourth of them, or in all."""
    return [
        (text, finding, edit)
        for text, result in checked(tmp_path_factory.mktemp("projects"), request.param)
        for finding in result.findings
        for edit in (finding.fix.edits if finding.fix else ())
        if edit.start < edit.end
    ]


def test_no_edit_begins_or_ends_inside_a_word(places: list[Place]) -> None:
    assert len(places) > 300
    for text, finding, edit in places:
        data = text.encode("utf-8")
        for end in (edit.start, edit.end):
            assert not INSIDE_WORD.fullmatch(data, end - 1, end + 1), (finding, edit)


def test_what_is_replaced_is_what_the_finding_names(places: list[Place]) -> None:
    named = [place for place in places if is_naming(place[1])]
    assert len(named) > 80
    for text, finding, edit in named:
        replaced = re.sub(rb"[\"']\s*[\"']", b"", text.encode("utf-8")[edit.start : edit.end]).decode("utf-8")
        assert {*re.findall(r"\w+", replaced)} & {*re.findall(r"\w+", finding.api)}, (finding, edit)


def is_naming(finding: Finding) -> bool:
    rule = RULES[finding.code]
    return rule.kind in NAMING
