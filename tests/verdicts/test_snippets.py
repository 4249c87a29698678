"""Snippets in the ways in which people write CUDA programs, each with a label of what must come of it.

``snippets/*.yaml`` has them: the label is in the code. A line that begins with ``- `` goes, one that begins
with ``+ `` comes; ``#! CODE severity`` behind a line is a finding that stays there without a fix. What no
label names must not change and must not be reported: a snippet without any label is a look-alike. The labels
say what is right for torch 2.6, by torch_npu on the emulator and by its sources, not what the program does.

``code`` is one file, ``files`` a project of several. ``expected_failure`` says why a snippet fails today, and
``python`` the first version that has its syntax.
"""

from __future__ import annotations

import difflib
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from migrator.core.check import every_fix
from migrator.core.settings import Settings
from migrator.files.discover import Entry, discover
from migrator.findings.finding import SEVERITIES, Result
from migrator.project.project import Project
from migrator.run.loading import load_project
from migrator.run.project_files import Done, check_files

HERE = Path(__file__).parent / "snippets"
REPORTED = re.compile(r"\s*#! (.+)$")
LABEL = re.compile(rf"[A-Z]+\d+ (?:{'|'.join(SEVERITIES)})")
SETTINGS = Settings("2.6.0")
Report = tuple[int, str]  # line and "CODE severity"


@dataclass(frozen=True)
class Labelled:
    """A file before and after, and the findings that stay, by its lines before."""

    before: str
    after: str
    reported: tuple[Report, ...]

    @property
    def kind(self) -> str:
        if self.before != self.after:
            return "changed"
        return "reported" if self.reported else "left alone"


def read(marked: str) -> Labelled:
    before: list[str] = []
    after: list[str] = []
    reported: list[Report] = []
    for line in marked.splitlines():
        sign = line[:2] if line[:2] in ("- ", "+ ") else ""
        found = REPORTED.search(line)
        text = (line[: found.start()] if found else line)[len(sign) :]
        if sign != "+ ":
            before.append(text)
        if sign != "- ":
            after.append(text)
        if found:
            assert sign != "+ ", f"a finding is on a line of the input: {line}"
            for label in found.group(1).split("; "):
                assert LABEL.fullmatch(label), line
                reported.append((len(before), label))
    return Labelled("\n".join([*before, ""]), "\n".join([*after, ""]), tuple(sorted(reported)))


def load() -> dict[str, dict[str, Labelled]]:
    """The files of each snippet, by its name; with why it fails in EXPECTED."""
    snippets = {}
    for path in sorted(HERE.glob("*.yaml")):
        for item in yaml.safe_load(path.read_text(encoding="utf-8")):
            name = f"{path.stem}/{item['name']}"
            if sys.version_info < tuple(map(int, item.get("python", "3.9").split("."))):
                continue
            assert name not in snippets, name
            assert item.keys() <= {"name", "code", "files", "expected_failure", "python"}, name
            files = item.get("files") or {"main.py": item["code"]}
            snippets[name] = {file: read(marked) for file, marked in files.items()}
            if "expected_failure" in item:
                EXPECTED[name] = item["expected_failure"]
    return snippets


EXPECTED: dict[str, str] = {}
SNIPPETS = load()


def kind(files: dict[str, Labelled]) -> str:
    """What its label says of a snippet, which is the strongest of its files'."""
    kinds = {file.kind for file in files.values()}
    return next(kind for kind in ("changed", "reported", "left alone") if kind in kinds)


def loaded(files: dict[str, Labelled], folder: Path) -> tuple[list[Entry], Project]:
    """The project of some files, which are written to a folder."""
    for name, file in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.before, encoding="utf-8")
    entries = list(discover(folder))
    return entries, load_project(entries, jobs=1)[0]


def came(files: dict[str, Labelled]) -> dict[str, Labelled]:
    """What a migration makes of the files."""
    with tempfile.TemporaryDirectory() as folder:
        entries, project = loaded(files, Path(folder))
        done = {
            entry.name: one for entry, one in check_files(entries, SETTINGS, project, 1, quiet, every_fix)
        }
    found = {}
    for name, file in files.items():
        one = done.get(name) or Done(Result(name))
        assert not one.result.skipped, one.result.skipped
        stays = {
            (item.line, f"{item.code} {item.severity}") for item in one.result.findings if not item.fixed
        }
        found[name] = Labelled(file.before, one.data.decode("utf-8") or file.before, tuple(sorted(stays)))
    return found


def quiet(*_: object) -> None:
    """Shows no progress."""


def compared(files: dict[str, Labelled]) -> list[str]:
    """What differs between the labels and what came of the files, or comes of them the second time."""
    found = came(files)
    again = came({name: replace(file, before=file.after) for name, file in found.items()})
    pairs = [(f"{name}: labelled", file, f"{name}: came", found[name]) for name, file in files.items()]
    twice = [
        (name, replace(found[name], reported=()), f"{name}: again", replace(again[name], reported=()))
        for name in files
    ]
    return [
        line
        for before, one, after, other in (*pairs, *twice)
        for line in difflib.unified_diff(marked(one), marked(other), before, after, lineterm="", n=1)
    ]


def marked(file: Labelled) -> list[str]:
    """The text after, and then the findings: to compare with a label."""
    return [*file.after.splitlines(), *(f"line {line}: {label}" for line, label in file.reported)]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.xfail(reason=EXPECTED[name])] if name in EXPECTED else [])
        for name in SNIPPETS
    ],
)
def test_snippet(name: str) -> None:
    differences = compared(SNIPPETS[name])
    if differences:
        pytest.fail("\n".join(differences), pytrace=False)


def test_there_are_enough_of_each_kind() -> None:
    kinds = Counter(kind(files) for files in SNIPPETS.values())
    print(kinds)
    assert sum(kinds.values()) >= 200
    assert kinds["left alone"] * 3 >= sum(kinds.values())
    assert min(kinds["changed"], kinds["reported"]) >= 40
