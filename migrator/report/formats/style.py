"""What several of the formats share: words for people, and the names of files for other programs."""

from __future__ import annotations

import os
from pathlib import Path

from migrator.files.errors import shown
from migrator.findings.finding import SEVERITIES, Finding, Place
from migrator.language import N_, _, ngettext
from migrator.report.colors import paint, plain
from migrator.report.formats import LintReport

COLORS = {N_("blocker"): "red", N_("error"): "red", N_("warning"): "yellow", N_("info"): "blue"}


def code_of(item: Finding, report: LintReport) -> str:
    """The rule's code, a star where a fix would be made, and the severity, in its colour."""
    star = ""
    if item.fix is not None and (report.unsafe_fixes or item.safely_fixable):
        star = f" [{paint('*', 'cyan', report.color)}]"
    severity = paint(f"{_(item.severity)}:", COLORS[item.severity], report.color)
    return f"{paint(item.code, COLORS[item.severity], report.color)}{star} {severity}"


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


def place_of(item: Finding, report: LintReport) -> str:
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


def placed_words_of(item: Finding) -> str:
    """The words, with the place in a notebook's cell before them: for formats that know no cells."""
    place = f"{cell_of(item, ', ')}line {item.line}: " if item.cell is not None else ""
    return place + words_of(item)


def line_and_column(place: Place) -> dict[str, int]:
    """A place under the keys that several JSON formats have."""
    return {"line": place[0], "column": place[1]}


def summary(report: LintReport) -> list[str]:
    """The lines at the end: how many findings, how many of them can be fixed, and the notes."""
    if not report.summary:
        return []
    remaining = len(report.findings)
    fixed = sum(count for codes in report.fixed.values() for count in codes.values())
    lines = _fixes(report, fixed) if report.show_fixes and fixed else []
    if report.fix_only:
        if not lines:
            done = ngettext("Fixed {n} finding.", "Fixed {n} findings.", fixed)
            lines.append(done if fixed else _("No fixes to make."))
    elif remaining or fixed:
        detail = ""
        if fixed:
            detail = _(" ({fixed} fixed, {remaining} remaining)", fixed=fixed, remaining=remaining)
        blockers = sum(item.severity == "blocker" for item in report.findings)
        first = ngettext("{n} blocker among ", "{n} blockers among ", blockers) if blockers else ""
        every = ngettext("{n} finding", "{n} findings", remaining + fixed)
        lines.append(_("Found {first}{every}{detail}.", first=first, every=every, detail=detail))
        lines += _fixable(report) or _explained(report)
    elif report.complete:
        lines.append(_("All checks passed!"))
    return [*lines, *report.notes]


def _fixable(report: LintReport) -> list[str]:
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
    return []


def _explained(report: LintReport) -> list[str]:
    """The command that comes next where nothing can be fixed: it explains the gravest finding."""
    if not report.findings:
        return []
    gravest = max(report.findings, key=lambda item: SEVERITIES.index(item.severity))
    return [_("Next: {command}", command=f"npumigrate rule {gravest.code}")]


def _fixes(report: LintReport, total: int) -> list[str]:
    lines = [ngettext("Fixed {n} finding:", "Fixed {n} findings:", total)]
    rules = report.rules()
    for path, codes in report.fixed.items():
        lines.append(f"- {paint(shown(path), 'bold', report.color)}:")
        for code, count in sorted(codes.items(), key=lambda item: (-item[1], item[0])):
            name = f" ({rules[code].name})" if code in rules else ""
            lines.append(f"    {count:>3} × {paint(code, 'red', report.color)}{name}")
    return [*lines, ""]


def relative(path: str, root: str | None = None) -> str:
    """The path from ``root`` or the current folder; the whole path of a file outside of it; ``-`` stays."""
    if path == "-":
        return path
    whole = os.path.abspath(path)
    try:
        inside = os.path.relpath(whole, root or os.curdir)
    except ValueError:  # another drive
        return whole.replace(os.sep, "/")
    return (whole if inside.startswith(os.pardir + os.sep) else inside).replace(os.sep, "/")


def uri(path: str) -> str:
    """A URI reference: relative for files below the current folder, else with ``file://``."""
    from urllib.parse import quote  # few runs need it

    name = relative(path)
    return Path(name).as_uri() if os.path.isabs(name) else quote(os.fsencode(name))


def fingerprints(report: LintReport) -> list[str]:
    """For each finding a text that stays when lines move, and that no other finding of the run has.

    It is made of file, rule, and the source line without its indentation; equal ones are counted.
    """
    from hashlib import sha256  # few runs need it

    seen: dict[str, int] = {}
    result = []
    for item in report.findings:
        lines = report.lines(item)
        line = lines[item.line - 1] if 0 < item.line <= len(lines) else ""  # it may be gone
        parts = (relative(item.file), str(item.cell), item.code, item.api, line.strip())
        key = sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        number = seen[key] = seen.get(key, 0) + 1
        result.append(key if number == 1 else f"{key}-{number}")
    return result
