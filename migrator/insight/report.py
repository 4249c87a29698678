"""The insight reports of a run: two CSV tables, and all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import asdict
from pathlib import Path
from typing import Any

from migrator import __version__
from migrator.api_support.versions import TorchVersion, UnknownVersion, newest, resolve
from migrator.data_folders import reports_yaml
from migrator.insight import communication, fallbacks, fused, host_sync, limits, memory, roofline, shapes
from migrator.insight.operator_names import names_of
from migrator.insight.recorded import most_steps, read_recorded
from migrator.insight.rows import Row, Run
from migrator.language import _
from migrator.report.csv_tables import CsvTables

SCHEMA = 1
TABLE = "npu_insight.csv"
JSON = "npu_insight.json"
VENDOR = "msft_dynamic_shape_analysis_report.csv"
KINDS = ("cpu_fallback", "limits", "dynamic_shape", "host_sync", "communication", "memory", "fused")
_SEVERITIES = ("error", "warning", "info")
_IN_JSON = "kind severity file line function subject calls per_step bytes share ranks message advice".split()


def product_line(soc: str) -> str:
    """The product line of a chip's name, such as Ascend910B2."""
    return next((line for start, line in names_of("product_lines").items() if soc.startswith(start)), "A2")


def recorded_run(notes: Path, version: str, installed: str, soc: str, old: Container[str] = ()) -> Run:
    """What the processes wrote to a folder, judged for a torch version; '' is the one that ran.

    ``old`` are the names of files that were there before.
    """
    ran_with = _known(installed)
    wanted = _known(version) if version else ran_with
    return Run(tuple(read_recorded(notes, old)), wanted, product_line(soc), ran_with)


def _known(version: str) -> TorchVersion:
    try:
        return resolve(version)
    except UnknownVersion:
        return newest()


def find_rows(run: Run, root: Path) -> list[Row]:
    """Everything that there is to say, by severity, kind and effect."""
    modules = (fallbacks, limits, shapes, host_sync, communication, memory)
    found = [row for module in modules for row in module.find(run)]
    return sorted([*found, *fused.find(run, root)], key=_order)


def _order(row: Row) -> tuple[Any, ...]:
    place = row.place
    severity, kind = _SEVERITIES.index(row.severity), KINDS.index(row.kind)
    return severity, kind, -row.effect, place.file, place.line, row.subject


def write_reports(folder: Path, run: Run, rows: list[Row]) -> None:
    """Write the tables and the JSON into a folder. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with CsvTables(folder, ("insight",)) as tables:
        for row in rows:
            tables.write(TABLE, _cells(row))
        for changed in shapes.vendor_rows(run):
            tables.write(VENDOR, changed)
    content = json.dumps(as_json(run, rows), indent=1, ensure_ascii=False)
    (folder / JSON).write_text(content + "\n", encoding="utf-8", errors="backslashreplace")


def _cells(row: Row) -> dict[str, Any]:
    return {
        **vars(row),
        **vars(row.place),
        "line": row.place.line or "",
        "per_step": "" if row.per_step is None else f"{row.per_step:.4g}",
        "share": "" if row.share is None else f"{row.share:.4f}",
        "ranks": " ".join(row.ranks),
        "basis": basis(row.kind),
    }


def basis(kind: str) -> str:
    """What of a kind is measured, and what is inferred."""
    return _(str(reports_yaml("insight.yaml")[kind]["basis"]))


def title(kind: str) -> str:
    """The heading of a kind."""
    return _(str(reports_yaml("insight.yaml")[kind]["title"]))


def as_json(run: Run, rows: list[Row]) -> dict[str, Any]:
    """All of it. ``docs/insight.md`` has the keys."""
    return {
        "schema": SCHEMA,
        "npumigrate": __version__,
        "emulated": True,
        "torch": run.version.text,
        "ran_with": run.ran_with.text,
        "product_line": run.hardware,
        "steps": most_steps(run.processes),
        "processes": [process.who for process in run.processes],
        "basis": {kind: basis(kind) for kind in KINDS},
        "rows": [_as_json(row) for row in rows],
        "communication": [
            {
                **{key: value for key, value in asdict(fact["call"]).items() if key != "rank"},
                **{key: fact[key] for key in ("bytes", "calls", "per_step", "ranks")},
            }
            for fact in communication.facts(run)
        ],
        "memory": memory.facts(run),
        "roofline": roofline.estimate(run),
    }


def _as_json(row: Row) -> dict[str, Any]:
    values = {**vars(row), **vars(row.place)}
    return {**{name: values[name] for name in _IN_JSON}, **row.more}
