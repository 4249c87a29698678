"""What a recorded run teaches, on the terminal: the first rows of each kind, and the facts in a line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from migrator.insight import memory, roofline
from migrator.insight.report import KINDS, title
from migrator.insight.rows import Row, Run, size
from migrator.language import N_, _
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
    facts = list(map(Text, _facts(run)))
    if facts:
        show_block(console, facts)
    console.print()
    count = "1 row" if len(rows) == 1 else _("{rows} rows", rows=len(rows))
    console.print(
        Text(_("Insight  {count} in {where}", count=count, where=where), style="dim"), soft_wrap=True
    )


def _lines(rows: Sequence[Row], width: int) -> Iterator[Text]:
    for row in rows[:_SHOWN]:
        place = f"{row.place.file}:{row.place.line}" if row.place.file else "-"
        line = Text(f"{place}  ", style=_COLORS[row.severity]).append(row.message, style="default")
        yield from line.wrap(Console(width=width), width)
    if len(rows) > _SHOWN:
        yield Text(_("… and {rows} more", rows=len(rows) - _SHOWN), style="dim")


def _facts(run: Run) -> Iterator[str]:
    fullest = max(memory.facts(run), key=lambda fact: max(fact["peaks"].values()), default=None)
    if fullest is not None:
        peak, device = size(max(fullest["peaks"].values())), fullest["device"]
        fits = _(" and ").join(name for name, fitting in fullest["fits"].items() if fitting)
        fits = fits or _("none of the two")
        yield _("Memory   peak {peak} on NPU {device}, fits: {fits}", peak=peak, device=device, fits=fits)
        batch, now = fullest["largest_batch"]["32 GiB"], fullest["batch"]
        if batch and batch < _SENSIBLE * now:
            said = N_("         the batch of {now} may be up to about {batch} in 32 GiB (inferred)")
            yield _(said, now=now, batch=batch)
    estimate = roofline.estimate(run)
    if estimate:
        seconds = {end: 1000.0 * each for end, each in estimate["seconds"].items()}
        bound = max(estimate["bound_by"], key=lambda name: float(estimate["bound_by"][name]))
        yield _(
            "Step     {at_best:.3g} to {at_worst:.3g} ms of operators on {hardware} "
            "(estimate, bound by {bound}), {amount:.3g} multiply-adds",
            **{**seconds, "hardware": run.hardware, "bound": bound, "amount": estimate["multiply_adds"]},
        )
