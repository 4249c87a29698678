"""Before and After of each change: who puts After in the place of Before gets the result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.core.changes import of_conversion
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.source import Lines, lines_of
from migrator.findings.edits import OffsetMap, apply
from migrator.findings.finding import Edit, Finding, Fix, Result
from migrator.project.facts import scan_file
from migrator.project.project import Project, merge_facts
from tests.checking import every_rule, migrate_text
from tests.matchers.migrating import migrate

LABELLED = Path(__file__).parents[1] / "verdicts" / "labelled"
EXAMPLES = [
    pytest.param(
        example["before"],
        example.get("version", "2.6"),
        example.get("file", "example.py"),
        id=f"{rule.code}-{place}",
    )
    for rule in every_rule()
    for place, example in enumerate(rule.examples)
    if "before" in example
]
OPT_IN = tuple(rule.code for rule in every_rule() if rule.opt_in)


def made(result: Result) -> Iterator[tuple[int, int, Fix]]:
    for finding in result.findings:
        if finding.fixed:
            assert finding.fix
            assert finding.fix.lines
            yield (*finding.fix.lines, finding.fix)


def rebuilt(lines: list[str], result: Result) -> list[str]:
    """The lines of the input with After in place of Before, and each insertion behind its line.

    What is inserted before everything names the first line.
    """
    places: dict[int, tuple[int, str]] = {}  # of rows that overlap the one with the most lines
    inserted: dict[int, list[str]] = {}
    rows = sorted(made(result), key=lambda row: (row[0], -row[1], -row[2].after.count("\n")))
    for first, last, fix in rows:
        if fix.operation == "INSERT":
            place = 0 if fix.edits and fix.edits[0].start == 0 else first
            if fix.after not in inserted.setdefault(place, []):  # several findings may need one statement
                inserted[place].append(fix.after)
        elif not any(start <= first and last <= end for start, (end, _) in places.items()):
            places[first] = (last, fix.after)
    text = inserted.get(0, [])
    skip = 0
    for number, line in enumerate(lines, 1):
        if number in places:
            skip, after = places[number]
            text.append(after)
        elif number > skip:
            text.append(line)
        if number >= skip:  # After has what is inserted inside of it, and may have what is right before it
            below = places.get(number + 1, (0, ""))[1]
            text += [each for each in inserted.get(number, []) if not f"{below}\n".startswith(f"{each}\n")]
    return [line for part in text for line in lines_of(part)]


def check_rows(before: str, result: Result) -> int:
    old = lines_of(before)
    rows = 0
    for first, last, fix in made(result):
        rows += 1
        if fix.operation != "INSERT":
            assert "\n".join(lines_of(fix.before)) == "\n".join(old[first - 1 : last]).strip()
    if result.text is not None:
        new = [line.strip() for line in lines_of(result.text) if line.strip()]
        assert [line.strip() for line in rebuilt(old, result) if line.strip()] == new
    return rows


@pytest.mark.parametrize(("before", "version", "name"), EXAMPLES)
@pytest.mark.parametrize("select", [("ALL",), ("ALL", *OPT_IN)], ids=["default", "all"])
def test_examples(before: str, version: str, name: str, select: tuple[str, ...]) -> None:
    rules = rules_for(Settings(version=version, select=select))
    project = merge_facts([scan_file(name, before)] if name.endswith(".py") else [])
    check_rows(before, migrate_text(rules, name, before, project))


def test_the_labelled_set() -> None:
    rules = rules_for(Settings(version="2.6", select=("ALL", *OPT_IN)))
    files = sorted(LABELLED.rglob("*.py"))
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    assert (
        sum(check_rows(text, migrate_text(rules, name, text, Project())) for name, text in texts.items()) > 20
    )


def test_what_a_fix_inserts_has_its_row_alone() -> None:
    """``set_device`` is moved by one rule and renamed by another: its text is in the row of the move."""
    text = (
        "import os\nimport torch\nimport torch.distributed as dist\nrank = int(os.environ['LOCAL_RANK'])\n"
        "dist.init_process_group('nccl')\ndist.barrier()\ntorch.cuda.set_device(rank)\n"
    )
    rules = rules_for(Settings("2.13.0"))
    found = migrate_text(rules, "a.py", text, Project()).findings
    fixes = [(item.code, item.fix) for item in found if item.fixed and item.fix]
    assert [code for code, fix in fixes if not fix.before] == ["NPU901"]
    moved = next(fix for code, fix in fixes if code == "NPU209")
    assert moved.after == "torch.npu.set_device(rank)\ndist.barrier()"


def test_a_line_that_begins_with_an_insertion_below_the_new_import() -> None:
    """``(`` and ``import torch_npu`` are inserted in one place: only the first belongs to the line."""
    text = "import torch\ntorch.cuda.get_device_capability()[0] >= 8\n"
    result = migrate_text(rules_for(Settings(version="2.6")), "a.py", text, Project())
    check_rows(text, result)
    assert {(item.code, item.fix.after) for item in result.findings if item.fixed and item.fix} == {
        ("NPU901", "import torch_npu"),
        ("NPU101", "(torch.npu.get_device_capability() or (8, 0))[0] >= 8"),
        ("NPU152", "(torch.npu.get_device_capability() or (8, 0))[0] >= 8"),
    }


LONG = "x = ['ü', " + "1, " * 1000 + "torch.cuda.is_available()]"
TEXT = "a = 1\n\nb = 2\n"
EDITS = (Edit(0, 0, "import x\n"), Edit(6, 6, "import y\n"), Edit(12, 12, "\nc = 3\nimport y"))


def test_of_a_very_long_line_the_part_that_changes_is_told() -> None:
    _, found = migrate(f"import torch\n{LONG}\n").findings
    assert found.fix
    assert (found.fix.before, found.fix.after) == ("torch.cuda.is_available", "torch.npu.is_available")


@pytest.mark.parametrize(
    ("line", "fix", "before", "after"),
    [
        (1, Fix((), "safe", "INSERT", after="import y\nmore"), "", "import y"),  # where it is first
        (1, Fix((), "safe", "INSERT", after="import z"), "", "import z"),  # what no edit inserts
        (1, Fix((), "safe", "INSERT", after="import x"), "", "import x"),
        (3, Fix((), "safe"), "b = 2", "b = 2\nc = 3\nimport y"),  # with what is put behind it
    ],
)
def test_the_change_of_a_conversion(line: int, fix: Fix, before: str, after: str) -> None:
    finding = Finding("NPU700", "m", line, 1, line, 6, fix=fix)
    result = Lines(apply(TEXT.encode(), EDITS).decode())
    made = of_conversion(finding, EDITS, Lines(TEXT), result, OffsetMap().then(EDITS))
    assert made.fix == fix._replace(before=before, after=after)


def test_what_a_conversion_only_reports_stays_as_it_is() -> None:
    finding = Finding("NPU700", "m", 1, 1, 1, 6)
    assert of_conversion(finding, (), Lines(TEXT), Lines(TEXT), OffsetMap()) is finding


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (  # places that were wrong when fixes were spliced
            "import torch\nfrom torch.cuda import is_available, Stream, Event as E\nmodel = net.cuda()\n",
            [
                (2, "MODIFY", "is_available, Stream, Event as E", "is_available, Stream, Event as E"),
                (3, "MODIFY", "model = net.cuda()", "model = net.npu()"),
            ],
        ),
        (  # a line that is put before an empty one
            "from detectron2.config import get_cfg\n\ncfg = get_cfg()\n\ncfg.merge_from_file('a')\n",
            [(3, "INSERT", "", 'cfg.MODEL.DEVICE = "npu"')],
        ),
        (  # and those behind others
            "from detectron2.config import get_cfg\ncfg = get_cfg()\nother = get_cfg()\n",
            [(2, "INSERT", "", 'cfg.MODEL.DEVICE = "npu"'), (3, "INSERT", "", 'other.MODEL.DEVICE = "npu"')],
        ),
    ],
)
def test_the_rows_of_a_text(text: str, rows: list[tuple[int, str, str, str]]) -> None:
    result = migrate_text(rules_for(Settings(version="2.6")), "a.py", text, Project())
    check_rows(text, result)
    first, *others = [(line, fix.operation, fix.before, fix.after) for line, _, fix in made(result)]
    assert first == (1, "INSERT", "", "import torch_npu")
    old, new = "from torch.cuda import ", "from torch_npu.npu import "
    assert [(*row[:2], row[2].replace(old, ""), row[3].replace(new, "")) for row in others] == rows
