"""What a recorded run teaches, on the terminal: the first rows of each kind, and the facts in a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from migrator.insight import memory, roofline
from migrator.insight.report import KINDS, title
from migrator.insight.rows import Row, Run, size
from migrator.report.terminal import WIDEST, show_block

_SHOWN = 3
_SENSIBLE = 1000  # times a batch: nobody asks how far a tiny model's can go
_COLORS = {"error": "red", "warning": "yellow", "info": "cyan"}


def show_insight(console: Console, run: Run, rows: Sequence[Row], where: str) -> None:
    """Print the first rows of each kind, and where the rest is."""
    width = min(console.width, WIDEST)
    for kind in KINDS:
        found = [row for row in rows if row.kind == kind]
        if found:
            show_block(console, [Text(title(kind), style="bold"), *_lines(found, width)])
    facts = list(_facts(run))
    if facts:
        show_block(console, facts)
    console.print()
    count = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    console.print(Text(f"Insight  {count} in {where}", style="dim"), soft_wrap=True)


def _lines(rows: Sequence[Row], width: int) -> Iterator[Text]:
    for row in rows[:_SHOWN]:
        place = f"{row.place.file}:{row.place.line}" if row.place.file else "-"
        line = Text(f"{place}  ", style=_COLORS[row.severity]).append(row.message, style="default")
        yield from line.wrap(Console(width=width), width)
    if len(rows) > _SHOWN:
        yield Text(f"… and {len(rows) - _SHOWN} more", style="dim")


def _facts(run: Run) -> Iterator[Text]:
    fullest = max(memory.facts(run), key=lambda fact: max(fact["peaks"].values()), default=None)
    if fullest is not None:
        peak = max(fullest["peaks"].values())
        fits = " and ".join(name for name, fitting in fullest["fits"].items() if fitting) or "none of the two"
        yield Text(f"Memory   peak {size(peak)} on NPU {fullest['device']}, fits: {fits}")
        batch, now = fullest["largest_batch"]["32 GiB"], fullest["batch"]
        if batch and batch < _SENSIBLE * now:
            yield Text(f"         the batch of {now} may be up to about {batch} in 32 GiB (inferred)")
    estimate = roofline.estimate(run)
    if estimate:
        seconds = estimate["seconds"]
        bound = max(estimate["bound_by"], key=lambda name: float(estimate["bound_by"][name]))
        yield Text(
            f"Step     {seconds['at_best'] * 1e3:.3g} to {seconds['at_worst'] * 1e3:.3g} ms of operators on "
            f"{run.hardware} (estimate, bound by {bound}), {estimate['multiply_adds']:.3g} multiply-adds"
        )
