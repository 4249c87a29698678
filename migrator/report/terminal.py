"""The summary of a run on the terminal: a screenful at 80 columns, and plain text in a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from migrator.project.frameworks import TORCH, described
from migrator.report.log_file import LOG_NAME
from migrator.report.rows import CHANGES, SKIPPED
from migrator.report.tally import OpenGroup, Tally

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
    console.print(_files_line(tally))
    if set(tally.frameworks) - {TORCH}:
        console.print(Text(f"Frameworks: {described(tally.frameworks)}"), soft_wrap=True)
    if conversion:
        console.print(Text(f"Multi-NPU: {conversion}"), soft_wrap=True)
    if tally.changes():
        show_block(console, _change_lines(tally, width))
    if tally.groups or tally.unsafe:
        show_block(console, _open_lines(tally, width, reports is not None))
    if tally.skipped:
        show_block(console, _skipped_lines(tally, reports is not None))
    if tally.other_files:
        where = f" ({SKIPPED})" if reports else ""
        console.print()
        console.print(Text(f"Other files that mention CUDA: {_number(tally.other_files, 'file')}{where}"))
    if reports:
        show_block(console, _place_lines(result, reports, files, launcher, not_copied))


def show_block(console: Console, lines: Iterable[Text]) -> None:
    """Print lines below an empty one."""
    console.print()
    for line in lines:
        # The lines are cut to the width where that makes sense; paths are for copying, and stay whole.
        console.print(line, soft_wrap=True)


def show_next(console: Console, commands: Iterable[str]) -> None:
    """Print the commands that come next, whole: they are for pasting."""
    lines = [Text(f"  {line}") for line in commands]
    if lines:
        show_block(console, [Text("Next", style="bold"), *lines])


def _files_line(tally: Tally) -> Text:
    changed = f"{tally.changed} changed, " if "migrate" in tally.runs else ""  # an analysis changes none
    what = "Python files and notebooks" if tally.notebooks else "Python files"
    line = Text(f"{what}: {tally.seen} seen, {changed}")
    if tally.others_changed:
        line = Text(f"{what}: {tally.seen} seen, {changed}other files: {tally.others_changed} changed, ")
    return line.append(f"{tally.skipped} skipped", style="yellow" if tally.skipped else "")


def _change_lines(tally: Tally, width: int) -> Iterator[Text]:
    rows = [(code, _rule_text(tally, code), count, unsafe) for code, count, unsafe in tally.changes_by_rule()]
    if len(rows) > _CHANGES_SHOWN:
        rest = rows[_CHANGES_SHOWN - 1 :]
        counts = sum(row[2] for row in rest), sum(row[3] for row in rest)
        rows = [*rows[: _CHANGES_SHOWN - 1], ("others", f"{len(rest)} more rules", *counts)]
    codes = max(len("Changes"), *(len(row[0]) for row in rows))
    middle = max(10, width - codes - 2 - 16)
    yield Text(f"{'Changes':<{codes}}  {'':<{middle}}   count  unsafe", style="bold")
    total = ("all", "", tally.changes(), sum(tally.unsafe.values()))
    for code, text, count, unsafe in [*rows, total]:
        first, *others = _wrapped(text, middle) or [""]
        line = Text(f"{code:<{codes}}", style="bold" if code == "all" else "cyan")
        line.append("  ").append(f"{first:<{middle}}", style="default").append(f"{count:>8}", style="default")
        yield line.append(f"{unsafe:>8}" if unsafe else "", style="yellow")
        for other in others:
            yield Text(f"{'':<{codes}}  {other}")


def _open_lines(tally: Tally, width: int, reports: bool) -> Iterator[Text]:
    groups = tally.open_groups()
    blockers = sum(group.count for group in groups if group.severity == "blocker")
    surely = (
        f": {_number(blockers, 'blocker')} surely {'stops' if blockers == 1 else 'stop'} the program"
        if blockers
        else ""
    )
    yield Text(f"Manual review{surely}", style="bold")
    for group in groups[:_GROUPS_SHOWN]:
        times = f"{group.count} × " if group.count > 1 else ""
        # What is said of several APIs is the rule's summary: their names stand below, with their places.
        text = group.message.replace("…", group.api) if group.api else group.message
        if not text or (not group.api and "…" in text):
            text = _rule_text(tally, group.code) or text
        first, *others = _wrapped(f"{times}{text}", width - 9 - len(group.code) - 2) or [""]
        line = Text(f"{group.severity:<7}", style=COLOURS.get(group.severity, ""))
        yield line.append(f"  {group.code}  {first}", style="default")
        for other in [*others, *_places(group, text, width - 9)]:
            yield Text(f"{'':9}{other}")
    hidden = groups[_GROUPS_SHOWN:]
    if hidden:
        codes = {group.code for group in hidden}
        yield Text(f"and {sum(group.count for group in hidden)} more by {_number(len(codes), 'rule')}")
    files = sorted(set().union(*(group.reports for group in groups)))
    if files and reports:
        yield from map(Text, _wrapped(f"All findings: {', '.join(files)}", width))
    unsafe = sum(tally.unsafe.values())
    if unsafe:
        where = f" ({CHANGES}, Safety = unsafe)" if reports else ""
        yield Text(f"Review the {_number(unsafe, 'unsafe change')}{where}")


def _rule_text(tally: Tally, code: str) -> str:
    rule = tally.rules.get(code)
    return (rule.summary or rule.name) if rule else ""


def _places(group: OpenGroup, text: str, width: int) -> list[str]:
    """The first places, with their APIs where ``text`` has them not, in lines of this width."""
    plain = [place for _, place in group.places]
    if not group.api:
        places = [f"{api} {place}".strip() for api, place in group.places]
    elif group.api in text:
        places = plain
    else:
        places = [f"{group.api}: {plain[0]}", *plain[1:]]
    more = group.count - len(places)
    return _wrapped(", ".join(places) + (f", and {more} more" if more else ""), width)


def _wrapped(text: str, width: int) -> list[str]:
    """The lines of a text; names and paths stay whole, even where they are longer."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _skipped_lines(tally: Tally, reports: bool) -> Iterator[Text]:
    yield Text("Left as they were", style="bold")
    for name, reason in tally.first_skipped:
        yield Text(f"{name}: {reason}")
    rest = tally.skipped - len(tally.first_skipped)
    if rest:
        yield Text(f"and {_number(rest, 'more file')}{f': {SKIPPED}' if reports else ''}")


def _place_lines(
    result: Path | None, reports: Path, files: Iterable[Path], launcher: str, not_copied: int
) -> Iterator[Text]:
    if result:
        yield Text(f"Result   {result}")
    yield Text(f"Reports  {reports}")
    for file in files:
        yield Text(f"         {file}")
    if launcher:
        yield Text(f"Launch   {launcher}")
    if not_copied:
        yield Text(f"Not copied: {not_copied} of caches, environments, pipes (see {LOG_NAME})")


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
