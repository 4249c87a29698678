"""The summary of a run on the terminal: a screenful at 80 columns, and plain text in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from migrator.findings.finding import SEVERITIES
from migrator.language import N_, _, ngettext
from migrator.project.frameworks import TORCH, described
from migrator.report.csv_tables import CHANGES, SKIPPED
from migrator.report.log_file import LOG_NAME
from migrator.report.tally import OpenGroup, Tally
from migrator.wrapping import columns, padded, wrap

_GROUPS_SHOWN = 6
_CHANGES_SHOWN = 15
WIDEST = 110
COLOURS = {"blocker": "bold reverse red", "error": "bold red", "warning": "yellow", "info": "cyan"}


def show_summary(
    console: Console,
    tally: Tally,
    head: str,
    not_copied: int,
    result: Path | None,
    reports: Path | None,
    launcher: str = "",
    conversion: str = "",
    files: Iterable[Path] = (),
) -> None:
    """Print what was done, what is left to a person, and where the results are.

    ``result`` and ``reports`` are None where nothing was written, and so there is no file to point to;
    ``launcher`` is what is to say of the launch script, ``conversion`` of the training on many NPUs;
    ``files`` are reports that were built from the tables.
    """
    width = min(console.width, WIDEST)
    console.print(Text(head, style="bold"), soft_wrap=True)
    what = _("Python files and notebooks") if tally.notebooks else _("Python files")
    parts = [_("{what}: {n} seen", what=what, n=tally.seen)]
    if "migrate" in tally.runs:  # an analysis changes none
        parts.append(_("{n} changed", n=tally.changed))
    if tally.others_changed:
        parts.append(_("other files: {n} changed", n=tally.others_changed))
    line = Text(_(", ").join([*parts, ""]))
    console.print(line.append(_("{n} skipped", n=tally.skipped), style="yellow" if tally.skipped else ""))
    if set(tally.frameworks) - {TORCH}:
        console.print(Text(_("Frameworks: {names}", names=described(tally.frameworks))), soft_wrap=True)
    if conversion:
        console.print(Text(_("Multi-NPU: {conversion}", conversion=conversion)), soft_wrap=True)
    if tally.changes():
        show_block(console, _change_lines(tally, width))
    if tally.groups or tally.unsafe:
        show_block(console, _open_lines(tally, width, reports is not None))
    if tally.skipped:
        skipped = [Text(f"{name}: {reason}") for name, reason in tally.first_skipped]
        rest = tally.skipped - len(skipped)
        if rest:
            where = f": {SKIPPED}" if reports else ""
            skipped.append(Text(ngettext("and {n} more file", "and {n} more files", rest) + where))
        show_block(console, skipped, _("Left unchanged"))
    if tally.other_files:
        where = f" ({SKIPPED})" if reports else ""
        console.print()
        console.print(Text(_("Other files that mention CUDA: {count}", count=tally.other_files) + where))
    if reports:
        lines = [f"{_('Result')}   {result}"] if result else []
        lines += [f"{_('Reports')}  {reports}", *(f"         {file}" for file in files)]
        lines += [f"{_('Launch')}   {launcher}"] if launcher else []
        what = N_("Not copied: {n} caches, environments or pipes (see {file})")
        lines += [_(what, n=not_copied, file=LOG_NAME)] if not_copied else []
        show_block(console, map(Text, lines))


def show_block(console: Console, lines: Iterable[Text], head: str = "") -> None:
    """Print lines below an empty one, and below a heading; nothing where there are none."""
    lines = list(lines)
    if not lines:
        return
    console.print()
    for line in [Text(head, style="bold"), *lines] if head else lines:
        # The lines are cut to the width where that makes sense; paths are for copying, and stay whole.
        console.print(line, soft_wrap=True)


def show_next(console: Console, commands: Iterable[str]) -> None:
    """Print the commands that come next, whole: they are for pasting."""
    show_block(console, (Text(f"  {line}") for line in commands), _("Next"))


def _change_lines(tally: Tally, width: int) -> Iterator[Text]:
    rows = [(code, _rule_text(tally, code), count, unsafe) for code, count, unsafe in tally.changes_by_rule()]
    if len(rows) > _CHANGES_SHOWN:
        rest = rows[_CHANGES_SHOWN - 1 :]
        counts = sum(row[2] for row in rest), sum(row[3] for row in rest)
        rows = [*rows[: _CHANGES_SHOWN - 1], (_("others"), _("{n} more rules", n=len(rest)), *counts)]
    head = _("Changes")
    codes = max(columns(head), *(columns(row[0]) for row in rows))
    middle = max(10, width - codes - 2 - 16)
    yield Text(f"{padded(head, codes)}  {'':<{middle}}{_('   count  unsafe')}", style="bold")
    total = (_("all"), "", tally.changes(), sum(tally.unsafe.values()))
    for code, text, count, unsafe in [*rows, total]:
        first, *others = wrap(text, middle) or [""]
        line = Text(padded(code, codes), style="bold" if code == total[0] else "cyan")
        line.append(f"  {padded(first, middle)}{count:>8}", style="default")
        yield line.append(f"{unsafe:>8}" if unsafe else "", style="yellow")
        for other in others:
            yield Text(f"{'':<{codes}}  {other}")


def _open_lines(tally: Tally, width: int, reports: bool) -> Iterator[Text]:
    order = lambda one: (-SEVERITIES.index(one.severity), -one.count, one.code)  # noqa: E731
    groups = sorted(tally.groups.values(), key=order)
    blockers = sum(group.count for group in groups if group.severity == "blocker")
    surely = ngettext(": {n} blocker will stop the program", ": {n} blockers will stop the program", blockers)
    if groups:
        yield Text(_("Manual review") + (surely if blockers else ""), style="bold")
    for group in groups[:_GROUPS_SHOWN]:
        times = f"{group.count} × " if group.count > 1 else ""
        # The message for several APIs is the rule's summary: their names stand below, with their places.
        text = group.message.replace("…", group.api) if group.api else group.message
        if not text or (not group.api and "…" in text):
            text = _rule_text(tally, group.code) or text
        first, *others = wrap(f"{times}{text}", width - 9 - len(group.code) - 2) or [""]
        line = Text(padded(_(group.severity), 7), style=COLOURS.get(group.severity, ""))
        yield line.append(f"  {group.code}  {first}", style="default")
        for other in [*others, *_places(group, text, width - 9)]:
            yield Text(f"{'':9}{other}")
    hidden = groups[_GROUPS_SHOWN:]
    if hidden:
        rules, more = len({group.code for group in hidden}), sum(group.count for group in hidden)
        yield Text(ngettext("and {more} more by {n} rule", "and {more} more by {n} rules", rules, more=more))
    files = sorted(set().union(*(group.reports for group in groups)))
    if files and reports:
        yield from map(Text, wrap(_("All findings: {files}", files=", ".join(files)), width))
    unsafe = sum(tally.unsafe.values())
    if unsafe:
        where = _(" ({changes}, Safety = unsafe)", changes=CHANGES) if reports else ""
        yield Text(ngettext("Review {n} unsafe change", "Review {n} unsafe changes", unsafe) + where)


def _rule_text(tally: Tally, code: str) -> str:
    rule = tally.rules.get(code)
    return (rule.summary or rule.name) if rule else ""


def _places(group: OpenGroup, text: str, width: int) -> list[str]:
    """The first places, with their APIs where ``text`` has them not, in lines of this width."""
    if group.api:
        places = [place for _api, place in group.places]
        places[0] = places[0] if group.api in text else f"{group.api}: {places[0]}"
    else:
        places = [f"{api} {place}".strip() for api, place in group.places]
    more = group.count - len(places)
    return wrap(", ".join(places) + (_(", and {more} more", more=more) if more else ""), width)
