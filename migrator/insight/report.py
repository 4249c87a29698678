"""The insight reports of a run: two CSV tables, all of it as JSON, and the first rows on the terminal."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from migrator import __version__
from migrator.api_support.versions import UnknownVersion, newest, resolve
from migrator.data_folders import reports_yaml
from migrator.insight import communication, estimates, kinds
from migrator.insight.recorded import most_steps, read_recorded
from migrator.insight.rows import Row, Run, names_of, size
from migrator.language import N_, _
from migrator.report.csv_tables import CsvTables
from migrator.report.terminal import WIDEST, show_block

SCHEMA = 1
TABLE = "npu_insight.csv"
JSON = "npu_insight.json"
VENDOR = "msft_dynamic_shape_analysis_report.csv"
KINDS = ("cpu_fallback", "limits", "dynamic_shape", "host_sync", "communication", "memory", "fused")
_SEVERITIES = ("error", "warning", "info")
_IN_JSON = "kind severity file line function subject calls per_step bytes share ranks message advice".split()
_SHOWN = 3
_SENSIBLE = 1000  # times a batch: nobody asks how far a tiny model's can go
_COLORS = {"error": "red", "warning": "yellow", "info": "cyan"}


def product_line(soc: str) -> str:
    """The product line of a chip's name, such as Ascend910B2."""
    return next((line for start, line in names_of("product_lines").items() if soc.startswith(start)), "A2")


def recorded_run(notes: Path, version: str, installed: str, soc: str, old: Container[str] = ()) -> Run:
    """What the processes wrote to a folder, judged for a torch version; '' is the one that ran.

    ``old`` are the names of files that were there before.
    """
    known = []
    for text in (version or installed, installed):
        try:
            known.append(resolve(text))
        except UnknownVersion:
            known.append(newest())
    return Run(tuple(read_recorded(notes, old)), known[0], product_line(soc), known[1])


def find_rows(run: Run, root: Path) -> list[Row]:
    """Everything that there is to say, by severity, kind and effect."""
    finders = (
        *(kinds.fallbacks, kinds.limits, kinds.new_shapes, kinds.host_sync),
        *(communication.waits_and_calls, estimates.too_large),
    )
    found = [*(row for find in finders for row in find(run)), *kinds.fused(run, root)]

    def order(row: Row) -> tuple[Any, ...]:
        severity, kind = _SEVERITIES.index(row.severity), KINDS.index(row.kind)
        return severity, kind, -row.effect, row.place.file, row.place.line, row.subject

    return sorted(found, key=order)


def write_reports(folder: Path, run: Run, rows: list[Row]) -> None:
    """Write the tables and the JSON into a folder. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with CsvTables(folder, ("insight",)) as tables:
        for row in rows:
            cells = {
                **vars(row.place),
                **vars(row),
                "line": row.place.line or "",
                "per_step": "" if row.per_step is None else f"{row.per_step:.4g}",
                "share": "" if row.share is None else f"{row.share:.4f}",
                "ranks": " ".join(row.ranks),
                "basis": words_on(row.kind, "basis"),
            }
            tables.write(TABLE, cells)
        for changed in kinds.vendor_rows(run):
            tables.write(VENDOR, changed)
    content = json.dumps(as_json(run, rows), indent=1, ensure_ascii=False)
    (folder / JSON).write_text(content + "\n", encoding="utf-8", errors="backslashreplace")


def words_on(kind: str, what: str) -> str:
    """The heading of a kind (``title``), or what of it is measured and what is inferred (``basis``)."""
    return _(str(reports_yaml("insight.yaml")[kind][what]))


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
        "basis": {kind: words_on(kind, "basis") for kind in KINDS},
        "rows": [
            {**{name: {**vars(row), **vars(row.place)}[name] for name in _IN_JSON}, **row.more}
            for row in rows
        ],
        "communication": [
            {
                **{key: value for key, value in asdict(fact["call"]).items() if key != "rank"},
                **{key: fact[key] for key in ("bytes", "calls", "per_step", "ranks")},
            }
            for fact in communication.facts(run)
        ],
        "memory": estimates.memory_facts(run),
        "roofline": estimates.step_time(run),
    }


def show_insight(console: Console, run: Run, rows: Sequence[Row], where: str) -> None:
    """Print the first rows of each kind, and where the rest is."""
    width = min(console.width, WIDEST)
    for kind in KINDS:
        found = [row for row in rows if row.kind == kind]
        lines: list[Text] = []
        for row in found[:_SHOWN]:
            place = f"{row.place.file}:{row.place.line}" if row.place.file else "-"
            line = Text(f"{place}  ", style=_COLORS[row.severity]).append(row.message, style="default")
            lines += line.wrap(Console(width=width), width)
        if len(found) > _SHOWN:
            lines.append(Text(_("… and {rows} more", rows=len(found) - _SHOWN), style="dim"))
        show_block(console, lines, words_on(kind, "title"))
    show_block(console, map(Text, _facts(run)))
    count = "1 row" if len(rows) == 1 else _("{rows} rows", rows=len(rows))
    show_block(console, [Text(_("Insight  {count} in {where}", count=count, where=where), style="dim")])


def _facts(run: Run) -> Iterator[str]:
    fullest = max(estimates.memory_facts(run), key=lambda fact: max(fact["peaks"].values()), default=None)
    if fullest is not None:
        peak, device = size(max(fullest["peaks"].values())), fullest["device"]
        fits = _(" and ").join(name for name, fitting in fullest["fits"].items() if fitting)
        fits = fits or _("none of the two")
        yield _("Memory   peak {peak} on NPU {device}, fits: {fits}", peak=peak, device=device, fits=fits)
        batch, now = fullest["largest_batch"]["32 GiB"], fullest["batch"]
        if batch and batch < _SENSIBLE * now:
            said = N_("         the batch of {now} may be up to about {batch} in 32 GiB (inferred)")
            yield _(said, now=now, batch=batch)
    estimate = estimates.step_time(run)
    if estimate:
        bound = max(estimate["bound_by"], key=lambda name: float(estimate["bound_by"][name]))
        yield _(
            "Step     {at_best:.3g} to {at_worst:.3g} ms of operators on {hardware} "
            "(estimate, bound by {bound}), {amount:.3g} multiply-adds",
            **{end: 1000.0 * each for end, each in estimate["seconds"].items()},
            hardware=run.hardware,
            bound=bound,
            amount=estimate["multiply_adds"],
        )
