"""How good the verdicts are: precision and recall on the labelled places in ``labelled/``.

A label is a comment at the end of a line: ``# expect: unsupported torch.cdist`` for each use that has to be
reported there, separated by semicolons, or ``# expect: none`` for a place that looks like one and is none.
Labels follow the documents and operator lists for torch 2.6, and what runs on an emulated NPU where these
disagree, not what the program says. Whatever is reported on a line, labelled or not, that its label does not
name counts as wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from migrator.analyze.run import MODES
from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import inspect_text

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
LABEL = re.compile(r"#\s*expect:\s*(.+?)\s*$")
VERDICTS = ("absent", "unsupported", "fallback", "partial", "unknown")
# What was reached; a change must not fall below. The first two are what the project promises.
PRECISION = {"absent": 0.98, "unsupported": 0.98, "fallback": 0.98, "partial": 0.95, "unknown": 0.95}
RECALL = {"absent": 0.95, "unsupported": 0.95, "fallback": 0.95, "partial": 0.95, "unknown": 0.95}


def labels(path: Path) -> dict[tuple[str, int], set[str]]:
    """The expected uses by file and line; an empty set where nothing may be reported."""
    expected = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = LABEL.search(line)
        if match:
            uses = {use.strip() for use in match.group(1).split(";")} - {"none"}
            assert all(use.split()[0] in VERDICTS for use in uses), f"{path.name}:{number}: {line}"
            expected[path.name, number] = uses
    return expected


def reported(path: Path) -> dict[tuple[str, int], set[str]]:
    """The uses that the analysis reports, by file and line."""
    mode = MODES["torch_apis"]
    engine = Rules(Settings(version="2.6.0", select=(*mode.codes, *mode.judged)))
    text = path.read_text(encoding="utf-8")
    result = inspect_text(engine, path.name, text, merge_facts([scan_file(path.name, text)]))
    assert result.skipped == ""
    found: dict[tuple[str, int], set[str]] = {}
    for finding in result.findings:
        if mode.keeps(finding) and finding.status:
            found.setdefault((path.name, finding.line), set()).add(f"{finding.status} {finding.api}")
    return found


@pytest.fixture(scope="module")
def score() -> dict[str, tuple[int, int, int]]:
    """For each verdict: right, wrong and missed."""
    right: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    for path in sorted((HERE / "labelled").glob("*.py")):
        expected, found = labels(path), reported(path)
        for place in sorted(expected.keys() | found.keys()):
            wanted, had = expected.get(place, set()), found.get(place, set())
            right.update(use.split()[0] for use in wanted & had)
            wrong.update(use.split()[0] for use in had - wanted)
            missed.update(use.split()[0] for use in wanted - had)
            for use in sorted(had ^ wanted):
                print(f"{place[0]}:{place[1]}: {'wrong' if use in had else 'missed'}: {use}")
    return {verdict: (right[verdict], wrong[verdict], missed[verdict]) for verdict in VERDICTS}


def rates(right: int, wrong: int, missed: int) -> tuple[float, float]:
    """Precision and recall."""
    return right / ((right + wrong) or 1), right / ((right + missed) or 1)


def test_there_are_enough_places() -> None:
    expected = [uses for path in (HERE / "labelled").glob("*.py") for uses in labels(path).values()]
    assert len(expected) >= 300
    assert sum(not uses for uses in expected) >= 120


@pytest.mark.parametrize("verdict", VERDICTS)
def test_precision_and_recall(score: dict[str, tuple[int, int, int]], verdict: str) -> None:
    precision, recall = rates(*score[verdict])
    print(f"{verdict}: precision {precision:.3f}, recall {recall:.3f}, places {score[verdict]}")
    assert score[verdict][0]
    assert precision >= PRECISION[verdict]
    assert recall >= RECALL[verdict]


@pytest.mark.parametrize("page", ["analysis.md", "analysis.zh.md"])
def test_the_documentation_has_these_figures(score: dict[str, tuple[int, int, int]], page) -> None:
    text = (DOCS / page).read_text("utf-8")
    rows = re.findall(r"^\| (\w+) \| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.M)
    measured = []
    for verdict in VERDICTS:
        precision, recall = rates(*score[verdict])
        places = score[verdict][0] + score[verdict][2]
        measured.append((verdict, str(places), f"{precision:.3f}", f"{recall:.3f}"))
    assert rows == measured
