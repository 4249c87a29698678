"""A file whose work does not end stays as it is and is reported with its rule; the rest goes on."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from migrator.matchers.context import FileContext
from migrator.run import processes
from tests.reading import rows, write

BAD = "import torch\n\ntorch.cuda.init()\n"
SAID = "given up after 0.2 s of processor time, file left unchanged"


@pytest.fixture
def endless(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a file at which a rule goes round and round, whatever is caught around it."""
    real: Any = FileContext.fits

    def fits(self: FileContext, rule: Any, name: str) -> bool:
        while self.name == "bad.py" and rule.code == "NPU101":
            with suppress(Exception):
                sum(range(1000))
        return real(self, rule, name)

    monkeypatch.setattr(FileContext, "fits", fits)
    monkeypatch.setattr(processes, "_SECONDS", 0.2)
    return write(project, {"bad.py": BAD})


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_migration_goes_on(migrate, endless, jobs) -> None:
    answer, result = migrate(endless, "-j", jobs)
    left = {row["File"]: row["Reason"] for row in rows(result, "skipped_files")}
    assert (answer.code, left["bad.py"]) == (1, f"{SAID} (rule NPU101, line 3)")
    assert (result / "bad.py").read_text() == BAD
    assert "in fits" in (result / "migration_report" / "npumigrate.log").read_text()
    assert "x.npu()" in (result / "models" / "net.py").read_text()


def test_lint_goes_on(npumigrate, endless, monkeypatch) -> None:
    monkeypatch.chdir(endless)
    answer = npumigrate("lint", "--isolated", "--no-cache", "-v2.6", "-j1")
    assert answer.code == 2
    assert f"bad.py: {SAID} (rule NPU101, line 3); details: " in answer.err
    assert "net.py" in answer.out


def test_what_programs_tell_goes_on(migrate, endless, monkeypatch) -> None:
    from migrator.project import facts

    real: Any = facts.scan_file

    def scan(name: str, text: str) -> Any:
        while name == "bad.py":
            pass
        return real(name, text)

    monkeypatch.setattr(facts, "scan_file", scan)
    answer, result = migrate(endless, "-j", 1)
    left = {row["File"]: row["Reason"] for row in rows(result, "skipped_files")}
    assert (answer.code, left["bad.py"]) == (1, SAID)


def test_a_large_file_has_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setattr(processes, "_SECONDS", 0.05)
    monkeypatch.setattr(processes, "_MB", 100)

    def work(item: tuple[str, str]) -> str:
        end = time.process_time() + 0.12
        while time.process_time() < end:
            sum(range(10_000))  # the time of the system, which is asked for it, does not count
        return item[0]

    assert list(processes.spread([("large", "x" * 1000)], 1, work)) == ["large"]
    with pytest.raises(processes.GivenUpError):
        list(processes.spread([("small", "x" * 10)], 1, work))


def test_the_server_goes_on(endless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from migrator.files.source import Source
    from migrator.lint.config_files import Configuration
    from migrator.lint.files import Target
    from migrator.lint.options import rule_set
    from migrator.project.project import Project
    from migrator.server.analysis import Question, answer

    monkeypatch.chdir(endless)
    options = Configuration({"version": "2.6"}, None, True).options_for(endless)

    def asked(name: str) -> Question:
        target = Target(name, endless / name, options).judged_by(rule_set(options, True))
        return Question(Source(name, BAD), target, Project())

    with ThreadPoolExecutor(1) as worker:
        bad, good = (worker.submit(answer, asked(name), None).result() for name in ("bad.py", "good.py"))
    assert bad.trouble.startswith(f"{SAID} (rule NPU101, line 3); details: ")
    assert [item.code for item in good.found] == ["NPU901", "NPU101"]
