"""What ``--help`` shows: one layout for all commands, in the language of the run."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import groupby

from migrator.command_options import Option
from migrator.language import N_, _
from migrator.wrapping import columns, padded, wrap

_COLUMN = 30  # the widest names that have their text beside them
_HELP = Option((), "help", "-h --help", help=N_("Show this message and exit."), kind="flag")


def page(command: str, about: str, options: Sequence[Option], below: Mapping[str, str] = {}) -> str:
    """The help of a command: its usage, what it is ``about``, its options and the commands ``below`` it."""
    width = max(min(shutil.get_terminal_size().columns, 100), 40)
    arguments = [row for row in options if not row.spelled and row.help]
    words = ["[OPTIONS]"]
    for row in arguments:
        name = _taken(row)
        words.append(name if row.required or "|" in name or name.startswith("[") else f"[{name}]")
    words += ["COMMAND …"] if below else []
    lines = wrap(_("Usage: ") + " ".join([f"npumigrate {command}".rstrip(), *words]), width, "", "  ")
    for part in paragraphs(about):
        free, *kept = _(part).splitlines()
        lines += ["", *([f"  {line.strip()}" for line in kept] or wrap(free, width, "  ", "  "))]
    lines += _section(_("Arguments"), [(_taken(row), _text(row)) for row in arguments], width)
    rows = sorted([row for row in options if row.spelled] + [_HELP], key=lambda row: bool(row.group))
    for title, group in groupby(rows, lambda row: row.group):
        lines += _section(_(title or N_("Options")), [(_spelled(row), _text(row)) for row in group], width)
    commands = [(name, _(paragraphs(each)[0])) for name, each in below.items() if each]
    return "\n".join([*lines, *_section(_("Commands"), commands, width)])


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a help text, each on one line but for those whose lines stay."""
    parts = (part.strip(" \n") for part in text.split("\n\n"))
    return [part if part.startswith("\b") else " ".join(part.split()) for part in parts if part]


def _section(title: str, rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """A heading, and below it rows of two columns; nothing without rows."""
    column = 4 + min(max((columns(name) for name, _ in rows), default=0), _COLUMN)
    lines = ["", _("{title}:", title=title)] if rows else []
    for name, text in rows:
        beside = columns(name) + 4 <= column
        lines += [] if beside else [f"  {name}"]
        lines += wrap(text, width, padded(f"  {name}" if beside else "", column), " " * column)
    return lines


def _spelled(row: Option) -> str:
    """``-o, --output OUT``: the short spelling first, and what it takes."""
    if row.kind == "switch":
        return f"--[no-]{row.name}"
    names = ", ".join(sorted(row.spelled.split(), key=lambda name: name.startswith("--")))
    return names if row.kind == "flag" else f"{names} {_taken(row)}"


def _taken(row: Option) -> str:
    return row.metavar or "|".join(row.choices) or row.name.upper().replace("_", "-")


def _text(row: Option) -> str:
    """What it does, with its default and its limits."""
    more = [_("{least} to {most}", least=row.least, most=row.most)] if row.most else []
    if row.default not in (None, "") and not isinstance(row.default, bool):
        shown = f"{row.default:g}" if isinstance(row.default, float) else row.default
        more.append(_("default: {default}", default=shown))
    more += [_("required")] if row.required else []
    return " ".join([_(row.help), *([f"[{_('; ').join(more)}]"] if more else [])])
