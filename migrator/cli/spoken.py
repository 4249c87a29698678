"""What typer and argparse say, in the language of the run: loaded only where it is not English."""

from __future__ import annotations

import argparse
import gettext
from collections.abc import Iterable, Iterator
from typing import Any

from migrator.language import _, language
from migrator.wrapping import columns, wrap


def ask_catalogue() -> None:
    """Let the libraries that are loaded from now on find their words in our catalogue."""
    gettext.gettext = lambda message: _(message)
    gettext.ngettext = lambda msgid1, msgid2, n: _(msgid1 if n == 1 else msgid2)


def translate(command: Any) -> None:
    """Put the help of a command of typer's, and of those below it, into the language of the run."""
    for owner, name in _helps(command):
        setattr(owner, name, "\n\n".join(map(_, paragraphs(getattr(owner, name)))))
    for each in _with_those_below(command):
        formatter = _formatter(each.context_class.formatter_class)
        each.context_class = type("Context", (each.context_class,), {"formatter_class": formatter})


def texts(command: Any) -> Iterator[str]:
    """The texts of the help of a command of typer's, for the catalogue."""
    for owner, name in _helps(command):
        yield from paragraphs(getattr(owner, name))


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a help text, each on one line but for those whose lines stay."""
    parts = (part.strip(" \n") for part in text.split("\n\n"))
    return [part if part.startswith("\b") else " ".join(part.split()) for part in parts if part]


def usage_error(error: Any) -> str:
    """What typer says of a wrong command line."""
    name, words = type(error).__name__, " ".join(error.format_message().split())
    if language() == "en":
        return words
    if name == "NoSuchOption":
        near = ", ".join(sorted(error.possibilities or ()))
        hint = _("; did you mean {near}?", near=near) if near else ""
        return _("no such option: {option}", option=error.option_name) + hint
    hint = error.param.get_error_hint() if getattr(error, "param", None) else ""
    if name == "MissingParameter":
        return _("missing: {what}", what=hint)
    if name == "BadParameter" and hint:
        return _("invalid value for {what}: {why}", what=hint, why=error.message)
    return words


class Help(argparse.RawDescriptionHelpFormatter):
    """argparse's layout, with lines that fit though their characters are wide."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(text, width)


def _with_those_below(command: Any) -> Iterator[Any]:
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from _with_those_below(each)


def _helps(command: Any) -> Iterator[tuple[Any, str]]:
    """Whose help there is, and its name there."""
    for each in _with_those_below(command):
        for name in ("help", "short_help", "epilog"):
            if getattr(each, name, None):
                yield each, name
        for parameter in each.params:
            if getattr(parameter, "help", None):
                yield parameter, "help"


def _formatter(base: Any) -> Any:
    """typer's formatter, with lines that fit though their characters are wide."""

    def write_usage(self: Any, prog: str, args: str = "", prefix: str = "") -> None:
        base.write_usage(self, prog, args, prefix or _("Usage: "))

    def write_text(self: Any, text: str) -> None:
        self.write("\n\n".join(_fitting(text, self.width, " " * self.current_indent)) + "\n")

    def write_dl(self: Any, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        rows = list(rows)
        indent = " " * self.current_indent
        column = min(max(columns(first) for first, _second in rows), col_max) + col_spacing
        for first, second in rows:
            behind = "\n" + indent + " " * column
            gap = " " * (column - columns(first)) if columns(first) <= column - col_spacing else behind
            lines = wrap(_(second), max(self.width - column - len(indent), 10))
            self.write(f"{indent}{first}{gap}{behind.join(lines)}".rstrip() + "\n")

    methods = {"write_usage": write_usage, "write_text": write_text, "write_dl": write_dl}
    return type("Formatter", (base,), methods)


def _fitting(text: str, width: int, indent: str) -> Iterator[str]:
    for part in text.split("\n\n"):
        if part.startswith("\b"):
            yield "\n".join(indent + line for line in part.splitlines()[1:])
        else:
            yield "\n".join(wrap(part, width, indent, indent))
