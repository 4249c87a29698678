"""What a repair leaves in the reports of the migration: rows of change_list.csv, and each round's diff."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from migrator.files.replacing import replace_file
from migrator.report.csv_tables import ENCODING, cell
from migrator.report.rows import CHANGES, load_tables, row_of
from migrator.verify.repair.loop import Repaired, Round

FOLDER = "repair"


def record(reports: Path, repaired: Repaired) -> None:
    """Write the changes of a repair into the folder of the migration's reports. Raises CannotWrite."""
    folder = reports / FOLDER
    folder.mkdir(exist_ok=True)
    begun = len(list(folder.glob("round_*.diff")))
    for each in repaired.rounds:
        name = f"round_{begun + each.number:02}{'' if each.kept else '_taken_back'}.diff"
        replace_file(folder / name, each.diff.encode("utf-8", "backslashreplace"))
    path = reports / CHANGES
    columns = load_tables()[CHANGES].columns
    rows = io.StringIO(newline="")
    writer = csv.writer(rows, lineterminator="\n")
    if not path.exists():
        writer.writerow([column.name for column in columns])
    for each in repaired.kept:
        values = row_of(each.finding.file, each.finding)
        writer.writerow([cell(column.value, str(values[column.value])) for column in columns])
    before = path.read_bytes() if path.exists() else "".encode(ENCODING)
    replace_file(path, before + rows.getvalue().encode("utf-8", "backslashreplace"))


def as_json(repaired: Repaired) -> dict[str, Any]:
    """The repair for the JSON file of ``verify``."""
    return {"rounds": [_round(each) for each in repaired.rounds], "left": repaired.left}


def lines(rounds: Sequence[Round]) -> list[str]:
    """What was done, for the terminal."""
    return [
        f"{'kept' if each.kept else 'taken back'}: {each.finding.code} "
        f"{each.finding.file}:{each.finding.line} {each.rule.message}"
        for each in rounds
    ]


def _round(each: Round) -> dict[str, Any]:
    return {
        "round": each.number,
        "rule": each.finding.code,
        "name": each.rule.name,
        "file": each.finding.file,
        "line": each.finding.line,
        "saw": each.saw,
        "came_from": each.origin,
        "change": each.rule.message,
        "kept": each.kept,
        "diff": each.diff,
    }
