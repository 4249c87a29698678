"""The output formats for people: short (the default), full, concise, grouped; words of all formats."""

from __future__ import annotations

from itertools import groupby
from typing import TextIO

from migrator.files.errors import shown
from migrator.findings.finding import SEVERITIES, Finding
from migrator.language import N_, _, ngettext
from migrator.report.colors import paint, plain
from migrator.report.formats import LintReport

_COLORS = {N_("blocker"): "red", N_("error"): "red", N_("warning"): "yellow", N_("info"): "blue"}
_LONGEST = 160  # characters of a source line
_MOST_LINES = 4


def write_short(report: LintReport, stream: TextIO) -> None:
    """What each rule says, the gravest first, with its locations and each advice once; then the summary."""

    def rank(item: Finding) -> tuple[int, str]:
        return -SEVERITIES.index(item.severity), item.code

    for _rank, same in groupby(sorted(report.findings, key=rank), key=rank):
        said: dict[str, dict[str, list[Finding]]] = {}  # by advice and by what stands before the locations
        for item in same:
            head = f"{_code_of(item, report)} {item.message}"
            advice = "" if item.advice in item.message else item.advice
            said.setdefault(advice, {}).setdefault(head, []).append(item)
        for advice, heads in said.items():
            for head, items in heads.items():
                stream.write(wrapped(head, report.width))
                for file, places in groupby(items, key=lambda item: item.file):
                    where = ", ".join(f"{cell_of(item)}{item.line}:{item.column}" for item in places)
                    stream.write(
                        wrapped(f"  {paint(shown(file), 'bold', report.color)}:{where}", report.width)
                    )
            if advice:
                stream.write(wrapped(f"{paint(_('help'), 'cyan', report.color)}: {advice}", report.width))
        stream.write("\n")
    stream.writelines(wrapped(line, report.width) for line in summary(report))


def write_full(report: LintReport, stream: TextIO) -> None:
    """A heading, the place, the source with its marks and what to do, for each finding; then the summary."""
    for item in report.findings:
        color = report.color
        stream.write(wrapped(f"{_code_of(item, report)} {item.message}", report.width))
        source = _source(item, report)
        gutter = " " * max((len(number) for number, _, _ in source), default=1)
        bar = paint("|", "blue", color)
        stream.write(f"{gutter}{paint('-->', 'blue', color)} {_place_of(item, report)}\n")
        if source:
            stream.write(f"{gutter} {bar}\n")
        for number, line, marks in source:
            stream.write(f"{paint(number.rjust(len(gutter)), 'blue', color)} {bar} {line}\n")
            if marks:
                stream.write(f"{gutter} {bar} {paint(marks, _COLORS[item.severity], color)}\n")
        if source:
            stream.write(f"{gutter} {bar}\n")
        if item.advice and item.advice not in item.message:
            stream.write(wrapped(f"{paint(_('help'), 'cyan', color)}: {item.advice}", report.width))
        if item.fix is not None:
            kind = _("fix") if item.safely_fixable else _("unsafe fix")
            stream.write(wrapped(f"{paint(kind, 'cyan', color)}: {item.fix.message}", report.width))
        stream.write("\n")
    stream.writelines(wrapped(line, report.width) for line in summary(report))


def write_concise(report: LintReport, stream: TextIO) -> None:
    """``path:row:column: CODE message`` lines, then the summary."""
    for item in report.findings:
        sep = paint(":", "cyan", report.color)
        stream.write(f"{_place_of(item, report)}{sep} {_code_of(item, report)} {words_of(item)}\n")
    stream.writelines(wrapped(line, report.width) for line in summary(report))


def write_grouped(report: LintReport, stream: TextIO) -> None:
    """A heading for each file, and below it ``row:column CODE message`` in columns."""
    for path, group in groupby(report.findings, key=lambda item: item.file):
        items = list(group)
        stream.write(f"{paint(shown(path), 'bold', report.color)}:\n")
        places = [f"{cell_of(item)}{item.line}:{item.column}" for item in items]
        width = max(map(len, places))
        for item, place in zip(items, places):
            stream.write(f"  {place:<{width}}  {_code_of(item, report)} {words_of(item)}\n")
        stream.write("\n")
    stream.writelines(wrapped(line, report.width) for line in summary(report))


def _source(item: Finding, report: LintReport) -> list[tuple[str, str, str]]:
    """Line number, text and the marks below it, for the lines of the finding."""
    lines = report.lines(item)
    result = []
    last_row = min(item.end_line, item.line + _MOST_LINES - 1)
    for row, line in enumerate(lines[item.line - 1 : last_row], item.line):
        first = item.column if row == item.line else len(line) - len(line.lstrip()) + 1
        last = item.end_column if row == item.end_line else len(line) + 1
        # A line of a megabyte is nothing that anybody reads.
        cut = first - _LONGEST // 4 if first > _LONGEST else 0
        text = _plain(line[cut : cut + _LONGEST])
        marks = _plain(line[cut : first - 1])
        marked = _plain(line[max(first - 1, cut) : min(last - 1, cut + _LONGEST)])
        result.append((str(row), text, " " * _width(marks) + "^" * max(1, _width(marked))))
    return result


def _plain(text: str) -> str:
    """Tabs as blanks, and nothing that a terminal would take for an order."""
    text = text.expandtabs(4)
    return text if text.isprintable() else "".join(c if c.isprintable() else shown(c) for c in text)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from migrator.wrapping import columns  # few lines need it

    return columns(text)


def _code_of(item: Finding, report: LintReport) -> str:
    """The rule's code, a star where a fix would be made, and the severity, in its colour."""
    star = ""
    if item.fix is not None and (report.unsafe_fixes or item.safely_fixable):
        star = f" [{paint('*', 'cyan', report.color)}]"
    severity = paint(f"{_(item.severity)}:", _COLORS[item.severity], report.color)
    return f"{paint(item.code, _COLORS[item.severity], report.color)}{star} {severity}"


def wrapped(text: str, width: int) -> str:
    """A line, or the lines of ``width`` columns that it becomes on a terminal; names stay whole."""
    if not width:
        return f"{text}\n"
    from migrator.wrapping import columns, wrap  # a hook's lines stay whole

    if columns(plain(text)) <= width:
        return f"{text}\n"
    return "".join(f"{line}\n" for line in wrap(text, width, others="  ", shown=plain))


def cell_of(item: Finding, sep: str = ":") -> str:
    """What goes before the row in a notebook: ``cell 3:``; empty elsewhere."""
    return f"cell {item.cell}{sep}" if item.cell is not None else ""


def _place_of(item: Finding, report: LintReport) -> str:
    """``path:row:column``, with the cell in a notebook."""
    sep = paint(":", "cyan", report.color)
    path = paint(shown(item.file), "bold", report.color)
    return f"{path}{sep}{cell_of(item, sep)}{item.line}{sep}{item.column}"


def words_of(item: Finding) -> str:
    """The message, and what to do about it, on one line."""
    message = item.message.rstrip(".。")
    if item.advice and item.advice not in item.message:
        return _("{message}: {advice}", message=message, advice=item.advice.rstrip(".。"))
    return message


def summary(report: LintReport) -> list[str]:
    """The lines at the end: how many findings, how many of them can be fixed, and the notes."""
    if not report.summary:
        return []
    remaining = len(report.findings)
    fixed = sum(count for codes in report.fixed.values() for count in codes.values())
    lines = []
    if report.show_fixes and fixed:
        lines.append(ngettext("Fixed {n} finding:", "Fixed {n} findings:", fixed))
        rules = report.rules()
        for path, codes in report.fixed.items():
            lines.append(f"- {paint(shown(path), 'bold', report.color)}:")
            for code, count in sorted(codes.items(), key=lambda item: (-item[1], item[0])):
                name = f" ({rules[code].name})" if code in rules else ""
                lines.append(f"    {count:>3} × {paint(code, 'red', report.color)}{name}")
        lines.append("")
    if report.fix_only:
        if not lines:
            done = ngettext("Fixed {n} finding.", "Fixed {n} findings.", fixed)
            lines.append(done if fixed else _("Nothing to fix."))
    elif remaining or fixed:
        detail = ""
        if fixed:
            detail = _(" ({fixed} fixed, {remaining} remaining)", fixed=fixed, remaining=remaining)
        blockers = sum(item.severity == "blocker" for item in report.findings)
        first = ngettext("{n} blocker among ", "{n} blockers among ", blockers) if blockers else ""
        every = ngettext("{n} finding", "{n} findings", remaining + fixed)
        lines.append(_("Found {first}{every}{detail}.", first=first, every=every, detail=detail))
        lines += _fixable(report)
    elif report.complete:
        lines.append(_("All checks passed!"))
    return [*lines, *report.notes]


def _fixable(report: LintReport) -> list[str]:
    """How many findings can be fixed, and how; or else the command that comes next."""
    safe = sum(item.safely_fixable for item in report.findings)
    unsafe = sum(item.fix is not None for item in report.findings) - safe
    star = f"[{paint('*', 'cyan', report.color)}]"
    if report.unsafe_fixes:
        safe, unsafe = safe + unsafe, 0
    hidden = ngettext(
        "{n} hidden fix can be enabled with the `--unsafe-fixes` option",
        "{n} hidden fixes can be enabled with the `--unsafe-fixes` option",
        unsafe,
    )
    if safe and unsafe:
        return [_("{star} {n} fixable with the `--fix` option ({hidden}).", star=star, n=safe, hidden=hidden)]
    if safe:
        return [_("{star} {n} fixable with the `--fix` option.", star=star, n=safe)]
    if unsafe:
        return [_("No fixes available ({hidden}).", hidden=hidden)]
    # What explains the gravest finding comes next.
    gravest = sorted(report.findings, key=lambda item: -SEVERITIES.index(item.severity))[:1]
    return [_("Next: {command}", command=f"npumigrate rule {item.code}") for item in gravest]
