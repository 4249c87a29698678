"""The verdict on the terminal: a screenful at 80 columns, and plain text in a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from migrator.insight.rows import size
from migrator.language import N_, _, ngettext
from migrator.report.terminal import WIDEST, show_block
from migrator.verify.diagnosis import process_name
from migrator.verify.observed import CPU
from migrator.verify.verdict import PASSED, WARNED, Original, Verdict
from migrator.wrapping import padded

_PROCESSES_SHOWN = 16
_OPERATORS_SHOWN = 8
_PLACES_SHOWN = 20
_PAIRS_SHOWN = 6
_PLACES = {
    "npu": N_("on NPUs"),
    "cpu": N_("on the CPU"),
    "mixed": N_("on NPUs and on the CPU"),
    "nowhere": N_("nothing ran"),
}


def show_verdict(console: Console, verdict: Verdict) -> None:
    """Print the verdict, and what it rests on."""
    width = min(console.width, WIDEST)
    color = {PASSED: "green", WARNED: "yellow"}.get(verdict.outcome, "red")
    console.print()
    head = _("Verdict: {outcome}", outcome=_(verdict.outcome))
    console.print(Text(head, style=f"bold {color}"))
    for reason in verdict.reasons:
        console.print(Text(f"  {reason}"))
    for line in _facts(verdict):
        console.print(line, soft_wrap=True)
    lacking = verdict.without_npu_kernel
    kernels = [*map(Text, lacking[:_OPERATORS_SHOWN]), *_rest(lacking, _OPERATORS_SHOWN)]
    original = _original_lines(verdict.original, width) if verdict.original else ()
    collectives = [
        f"{kind:<24} {ngettext('{n:,} call', '{n:,} calls', each['calls']):>14} {size(each['bytes']):>12}"
        for kind, each in verdict.collectives.items()
    ]
    for head, lines in (
        (_("Processes"), _process_lines(verdict, width)),
        (_("Collectives"), map(Text, collectives)),
        (_("No kernel in torch_npu (falls back to the CPU on NPUs)"), kernels),
        (_("New shapes in later steps (an NPU may recompile for each)"), _shape_lines(verdict, width)),
        (_("CUDA and NCCL names that this run reached"), _reached_lines(verdict, width)),
        (_("Compared with the original on the CPU"), original),
    ):
        show_block(console, lines, head)
    console.print()
    console.print(Text(_("Emulated NPUs: numbers and speed are those of the CPU."), style="dim"))


def _facts(verdict: Verdict) -> Iterator[Text]:
    ended = verdict.ended
    said = N_("Program  ended with exit code {code} after {seconds:.1f} s")
    yield Text(_(said, code=ended.code, seconds=ended.seconds))
    for process in verdict.course.bounded[:_PROCESSES_SHOWN]:
        what = ngettext("{n:,} forward pass", "{n:,} forward passes", process.passes)
        if process.steps:
            what = ngettext("{n:,} step", "{n:,} steps", process.steps)
        who = process_name(process.process, process.rank)
        yield Text(_("         {who} was ended after {what}", who=who, what=what))
    if verdict.course.only_followed(ended) and not ended.well:
        yield Text(_("         the rest of the program could then only wait or fail"), "yellow")
    for line in verdict.set_to:
        yield Text(_("Set      {what}", what=line))
    if verdict.other_torch:
        said = _("Torch    {its.torch}, but the project was migrated for {its.migrated_for}:", its=verdict)
        yield Text(said, "yellow")
        yield Text(_("         differences between the two were not tested"), "yellow")
    if ended.left:
        left = ngettext("{n:,} process", "{n:,} processes", ended.left)
        yield Text(_("         {left} kept running and had to be stopped", left=left), "yellow")
    shares = verdict.shares
    yield Text(_("Work     {where}", where=_(_PLACES[shares.place])))
    both = {_("forward"): shares.forward, _("backward"): shares.backward}
    parts = _(", ").join(f"{share:.1%} {what}" for what, share in both.items() if share is not None)
    if parts:
        yield Text(_("         NPU share of {measure}: {parts}", measure=_(shares.measure), parts=parts))


def _process_lines(verdict: Verdict, width: int) -> Iterator[Text]:
    working = []
    for process in verdict.processes:
        on_cpu = sum(work.products for work in process.work.get(CPU, {}).values())
        working += [(process, on_cpu)] if process.operators or on_cpu else []
    if not working:
        return
    program = max(12, width - 45)
    head = padded(_("program"), program)
    yield Text(_("rank  process  {program}  NPU  operators  CPU products", program=head))
    for process, on_cpu in working[:_PROCESSES_SHOWN]:
        name = Text(" ".join(process.command) or "python")
        name.truncate(program, overflow="ellipsis", pad=True)
        head = f"{process.rank or '-':>4} {process.process:>8}  {name.plain}"
        for device in process.operators or ("-",):
            count = sum(process.operators.get(device, {}).values())
            yield Text(f"{head} {device:>4} {count:>10,} {on_cpu:>13,}")
            head = " " * len(head)
    yield from _rest(working, _PROCESSES_SHOWN)


def _shape_lines(verdict: Verdict, width: int) -> Iterator[Text]:
    """What one process met again and again; a smaller last batch, or an evaluation, comes once."""
    most = max(verdict.processes, key=lambda process: len(process.new_shapes), default=None)
    found = [(entry, most.steps) for entry in most.new_shapes if entry.steps > 1] if most else []
    for entry, steps in found[:_OPERATORS_SHOWN]:
        line = _("{its.operator:<32} new in {its.steps} of {steps} steps", its=entry, steps=steps)
        yield _cut(_("{line}, {its.shapes} in all  {its.place}", line=line, its=entry), width)
    yield from _rest(found, _OPERATORS_SHOWN)


def _reached_lines(verdict: Verdict, width: int) -> Iterator[Text]:
    shown = verdict.reached[:_PLACES_SHOWN]
    if shown and verdict.transfer:
        yield Text(_("transfer_to_npu redirects them to the NPU."))
    for reached in shown:
        place = reached.place
        line = Text(f"{place.file}:{place.line}  ", style="yellow")
        line.append(f"{reached.count}× {place.kind}  ", style="default").append(place.source, style="dim")
        line.truncate(width, overflow="ellipsis")
        yield line
    yield from _rest(verdict.reached, _PLACES_SHOWN)
    if not shown:
        rest = _(", {not_reached} not reached", not_reached=verdict.not_reached)
        yield Text(_("none") + (rest if verdict.not_reached else ""))
    elif verdict.not_reached:
        yield Text(_("not reached: {not_reached}", not_reached=verdict.not_reached))


def _original_lines(original: Original, width: int) -> Iterator[Text]:
    yield Text(_("Original {folder}", folder=original.folder))
    times = sum(process.cuda_on_cpu for process in original.processes)
    if times:
        often = ngettext("{n:,} time", "{n:,} times", times)
        yield Text(_("         CUDA calls redirected to the CPU (NCCL to Gloo): {times}", times=often))
    comparison = original.comparison
    if comparison is None:
        return
    wrong, lines = comparison.wrong, len(comparison.compared)
    said = N_(
        "Compared {lines} with {numbers}, tolerance {its.tolerance:g}: {right} agree, "
        "largest difference {its.largest:.2g}"
    )
    counted = ngettext("{n:,} line", "{n:,} lines", lines)
    numbers = ngettext("{n:,} number", "{n:,} numbers", comparison.numbers)
    yield Text(_(said, lines=counted, numbers=numbers, right=lines - len(wrong), its=comparison))
    shown = wrong or comparison.compared
    if len(shown) > _PAIRS_SHOWN:
        shown = (*shown[: _PAIRS_SHOWN - 1], shown[-1])
    for pair in shown:
        if pair.agrees:
            yield _cut(f"  = {pair.migrated}", width)
            continue
        yield _cut(f"  original  {pair.original}", width, "red")
        yield _cut(f"  migrated  {pair.migrated}", width, "red")
    both = {_("original"): comparison.only_original, _("migrated"): comparison.only_migrated}
    for what, only in both.items():
        if only:
            lines_only = ngettext("{n:,} line", "{n:,} lines", len(only))
            yield Text(
                _("Numbers were printed only by the {what} ({only}), such as", what=what, only=lines_only)
            )
            yield _cut(f"    {only[0]}", width)


def _rest(items: Sequence[object], shown: int) -> Iterator[Text]:
    if len(items) > shown:
        yield Text(_("and {items} more (--json lists all)", items=len(items) - shown))


def _cut(text: str, width: int, style: str = "") -> Text:
    line = Text(text, style=style)
    line.truncate(width, overflow="ellipsis")
    return line
