"""The insight reports of a run: tables, JSON, the terminal; and what it comes to on a product line."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Optional

from rich.console import Console
from rich.text import Text

from migrator import __version__
from migrator.api_support.versions import UnknownVersion, newest, resolve
from migrator.data_folders import reports_yaml
from migrator.insight import kinds
from migrator.insight.recorded import Held, Memory, Recorded, Sum, most_steps, read_recorded
from migrator.insight.rows import HALVES, NOWHERE, Row, Run, Tally, names_of, size, text
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
    for torch in (version or installed, installed):
        try:
            known.append(resolve(torch))
        except UnknownVersion:
            known.append(newest())
    return Run(tuple(read_recorded(notes, old)), known[0], product_line(soc), known[1])


def find_rows(run: Run, root: Path) -> list[Row]:
    """Everything that there is to say, by severity, kind and effect."""
    finders = (
        *(kinds.fallbacks, kinds.limits, kinds.new_shapes, kinds.host_sync),
        *(kinds.waits_and_calls, too_large),
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
                "basis": text(row.kind, "basis"),  # what of it is measured and what is inferred
            }
            tables.write(TABLE, cells)
        for changed in kinds.vendor_rows(run):
            tables.write(VENDOR, changed)
    content = json.dumps(as_json(run, rows), indent=1, ensure_ascii=False)
    (folder / JSON).write_text(content + "\n", encoding="utf-8", errors="backslashreplace")


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
        "basis": {kind: text(kind, "basis") for kind in KINDS},
        "rows": [
            {**{name: {**vars(row), **vars(row.place)}[name] for name in _IN_JSON}, **row.more}
            for row in rows
        ],
        "communication": [
            {
                **{key: value for key, value in asdict(fact["call"]).items() if key != "rank"},
                **{key: fact[key] for key in ("bytes", "calls", "per_step", "ranks")},
            }
            for fact in kinds.collectives(run)
        ],
        "memory": memory_facts(run),
        "roofline": step_time(run),
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
        show_block(console, lines, text(kind, "title"))
    show_block(console, map(Text, _facts(run)))
    count = "1 row" if len(rows) == 1 else _("{rows} rows", rows=len(rows))
    show_block(console, [Text(_("Insight  {count} in {where}", count=count, where=where), style="dim")])


def _facts(run: Run) -> Iterator[str]:
    fullest = max(memory_facts(run), key=lambda fact: max(fact["peaks"].values()), default=None)
    if fullest is not None:
        peak, device = size(max(fullest["peaks"].values())), fullest["device"]
        fits = _(" and ").join(name for name, fitting in fullest["fits"].items() if fitting)
        fits = fits or _("neither")
        yield _("Memory   peak {peak} on NPU {device}, fits: {fits}", peak=peak, device=device, fits=fits)
        batch, now = fullest["largest_batch"]["32 GiB"], fullest["batch"]
        if batch and batch < _SENSIBLE * now:
            said = N_("         batch size in 32 GiB: up to about {batch}, now {now} (inferred)")
            yield _(said, now=now, batch=batch)
    estimate = step_time(run)
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


_LIMITS = (32, 64)  # GiB
_GIB = 1 << 30
# What CANN, its workspaces and the gaps between blocks take besides the tensors.
_FREE = 0.9
_PLACES = 10
_TENSORS = 20


def too_large(run: Run) -> Iterator[Row]:
    """A row for each NPU whose peak does not fit into the smallest memory of the product line."""
    limit = min(reports_yaml("insight.yaml")["product_lines"][run.hardware]["memory"])
    for process in run.processes:
        for device, memory in process.memory.items():
            if _fits(memory, limit):
                continue
            placed = (held for held in memory.held if held.place is not None)
            largest = max(placed, key=lambda held: held.bytes, default=Held(None, "", 0, 0))
            batch = _largest_batch(process, memory, limit)
            words = {"peak": size(memory.peak), "device": device, "limit": f"{limit} GiB", "batch": batch}
            words |= {"part": size(largest.bytes), "number": largest.number}
            tally = Tally(largest.place or NOWHERE, Sum(largest.number, memory.peak), None, [process.who])
            advice = "full_advice_to" if batch else "full_advice"
            yield tally.row("memory", "warning", f"NPU {device}", "full", words, advice)


def _fits(memory: Memory, limit: int) -> bool:
    return memory.peak <= limit * _GIB * _FREE


def memory_facts(run: Run) -> list[dict[str, Any]]:
    """Of each NPU: peaks, the largest tensors with their places, what fits, and how far the batch can go."""
    return [
        {
            "rank": process.who,
            "device": device,
            "peaks": dict(memory.peaks),
            "reserved": memory.reserved,
            "kept_between_steps": memory.kept,
            "fits": {f"{limit} GiB": _fits(memory, limit) for limit in _LIMITS},
            "batch": _batch_of(process),
            "largest_batch": {f"{limit} GiB": _largest_batch(process, memory, limit) for limit in _LIMITS},
            "tensors": [
                {
                    "file": each.place.file if each.place else None,
                    "line": each.place.line if each.place else None,
                    "operator": each.operator,
                    "bytes": each.bytes,
                    "number": each.number,
                }
                for each in sorted(memory.held, key=lambda each: -each.bytes)[:_TENSORS]
            ],
        }
        for process in run.processes
        for device, memory in process.memory.items()
    ]


def _batch_of(process: Recorded) -> Optional[int]:
    """The first size of the largest tensor that goes to the NPU in each step."""
    copies = [r for r in process.records if r.crossing.startswith("to_npu") and r.later.calls and r.examples]
    largest = max(copies, key=lambda record: record.later.bytes / record.later.calls, default=None)
    shape = largest.examples[0].partition(">")[2] or largest.examples[0].split()[0] if largest else ""
    first = shape.split("x")[0]
    return int(first) if first.isdigit() and "x" in shape else None


def _largest_batch(process: Recorded, memory: Memory, limit: int) -> Optional[int]:
    """About how large a batch can be: what a step adds to what stays is taken as proportional to it."""
    batch = _batch_of(process)
    if batch is None or memory.kept is None or memory.peak <= memory.kept:
        return None
    room = limit * _GIB * _FREE - memory.kept
    return max(0, int(batch * room / (memory.peak - memory.kept)))


def step_time(run: Run) -> Optional[dict[str, Any]]:
    """The estimate, with its range and what it assumes; None without a step after the first."""
    process = max(run.processes, key=lambda each: each.steps)
    steps = process.steps - 1
    if steps < 1:
        return None
    data = reports_yaml("insight.yaml")
    line, ways = data["product_lines"][run.hardware], data["roofline"]
    speed, bandwidth = ([1e12 * each for each in line[name]] for name in ("matrix", "bandwidth"))
    worst: dict[tuple[str, int], float] = defaultdict(float)  # seconds by file and line
    best = 0.0
    bound = {"products": 0.0, "memory": 0.0}  # the time at peak speed in which it waits for each of them
    for record in process.records:
        if record.crossing:
            continue
        halves = not record.types or set(record.types).intersection(HALVES)
        operations = 2.0 * record.later.multiply_adds / (1 if halves else ways["float32"])
        low, high = (
            max(
                operations / (speed[end] * ways["matrix"][end]),
                record.later.bytes / (bandwidth[end] * ways["bandwidth"][end]),
            )
            for end in (0, 1)
        )
        worst[(record.place.file, record.place.line) if record.place else ("", 0)] += low / steps
        best += high / steps
        products, memory = operations / speed[1], record.later.bytes / bandwidth[1]
        bound["products" if products > memory else "memory"] += max(products, memory)
    late = [record.later for record in process.records]
    whole, at_peak = sum(worst.values()), sum(bound.values())
    bounds = {
        f"{end}_{name}": ways[name][number]
        for name in ("matrix", "bandwidth")
        for number, end in enumerate(("low", "high"))
    }
    return {
        "product_line": run.hardware,
        "figures": line,
        "rank": process.who,
        "multiply_adds": sum(each.multiply_adds for each in late) / steps,
        "bytes": sum(each.bytes for each in late) / steps,
        "seconds": {"at_best": best, "at_worst": whole},
        "bound_by": {name: part / at_peak if at_peak else 0.0 for name, part in bound.items()},
        "places": [
            {"file": file, "line": number, "share": seconds / max(1e-30, whole)}
            for (file, number), seconds in sorted(worst.items(), key=lambda item: -item[1])[:_PLACES]
        ],
        "assumptions": [each.format(**bounds) for each in ways["assumptions"]],
    }
