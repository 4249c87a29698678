"""What earlier releases have written is read by this one: ``tests/stored`` has it, one folder a release.

What is written today says of which form it is, so that a later one can tell.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

STORED = Path(__file__).parents[1] / "stored"


@pytest.fixture(params=sorted(each.name for each in STORED.iterdir()))
def stored(request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what a release has written: source, configuration, baseline, result, verdict, trace."""
    monkeypatch.chdir(shutil.copytree(STORED / request.param, tmp_path / "stored"))
    return tmp_path / "stored"


def test_configuration_and_baseline(npumigrate, stored) -> None:
    answer = npumigrate("lint", "train.py", "--no-cache")
    assert (answer.code, answer.err) == (0, "")
    assert "4 findings left out (listed in known.json)." in answer.out


def test_a_result(npumigrate, migrate, stored) -> None:
    before = (stored / "train_msft" / "train.py").read_bytes()
    report = stored / "train_msft" / "migration_report" / "report.json"
    was = json.loads(report.read_bytes())
    assert npumigrate("report", "train_msft", "--format", "json,html,md", "-q").code == 0
    now = json.loads(report.read_bytes())
    for key in ("summary", "places", "skipped"):
        assert now[key] == was[key]
    assert "emulated" in (report.parent / "report.md").read_text().lower()  # the verdict of verify
    _answer, again = migrate(stored / "train_msft", "-v", "2.13")
    assert (again / "train.py").read_bytes() == before
    assert npumigrate("report", "diff", "train_msft", again).code == 0


def test_a_trace(npumigrate, stored) -> None:
    answer = npumigrate("compare", "trace", "trace")
    assert (answer.code, answer.err) == (0, "")
    assert "Verdict: the runs agree" in answer.out


def test_every_file_for_programs_says_its_form(npumigrate, stored, tmp_path) -> None:
    npumigrate("migrate", "train.py", "-o", tmp_path / "out", "-v", "2.13", "--format", "json", "-q")
    npumigrate("analyze", "train.py", "-o", tmp_path / "out", "-v", "2.13", "--format", "json", "-q")
    npumigrate(
        "lint", "train.py", "--isolated", "--no-cache", "--write-baseline", tmp_path / "out" / "known.json"
    )
    files = sorted((tmp_path / "out").rglob("*.json"))
    assert len(files) >= 4
    for file in files:
        content = json.loads(file.read_bytes())
        assert content.get("schema", content.get("format")) == 1, file
    for words in (
        ("api", "torch.cuda.Event", "--json"),
        ("db", "diff", "2.1", "2.6", "--json"),
        ("explain", "EI0006", "--output-format", "json"),
    ):
        assert json.loads(npumigrate(*words).out)["schema"] == 1, words
