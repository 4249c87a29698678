"""What reads the words behind ``npumigrate``: argparse, which loads fast, by ``reports/options.json``."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, NoReturn

from migrator.command_options import Option
from migrator.language import N_, MessageError, _


class UsageError(MessageError):
    """A command line that cannot be understood; its text is the user's line."""


class Given(SimpleNamespace):
    """What was given to a command: the values of its options and arguments, by their names in the table."""


class Parser(argparse.ArgumentParser):
    """The parser of one command, with its help from a docstring, and errors of one line: UsageError.

    ``below`` are the commands that follow its name, each with its line in the help. What stands behind the
    first word that is no option belongs to another program where ``others`` have it.
    """

    def __init__(
        self,
        command: str,
        about: str,
        rows: Iterable[Option],
        below: Mapping[str, str] = {},
        others: bool = False,
    ) -> None:
        every = list(rows)
        self._options = [row for row in every if row.spelled]
        self._arguments = [row for row in every if not row.spelled and not row.key]
        self._below, self._others, self._command = below, others, f"npumigrate {command}".rstrip()
        behind = [row.metavar or row.name.upper() for row in self._arguments if row.help]
        usage = " ".join([self._command, _("[options]"), *behind, *(["COMMAND"] if below else [])])
        super().__init__(
            self._command, usage.replace("%", "%%"), about, formatter_class=_layout, allow_abbrev=False
        )
        for title, group in groupby(self._options, key=lambda option: option.group):
            part = self.add_argument_group(_(title)) if title else self
            for option in group:
                part.add_argument(*option.spelled.split(), help=_help(option), **_taking(option))

    def read(self, words: Sequence[str]) -> Given:
        """What the words behind the command say. Raises UsageError; SystemExit behind ``--help``."""
        end = self._own_words(words)
        found, free = self.parse_known_args(words[:end], Given())
        unknown = [word for word in free if word.startswith("-") and word != "-"]
        free += words[end + (words[end : end + 1] == ["--"]) :]
        for row in self._arguments:
            some = row.kind in ("paths", "texts")
            taken, free = (free, []) if some else (free[:1], free[1:])
            if row.required and not taken and not unknown:
                self.error(_("missing: {what}", what=row.metavar or row.name.upper()))
            values = list(map(_value(row), taken))
            setattr(found, row.name, values if some else values[0] if values else row.default)
        for word in (*unknown, *free):
            near = get_close_matches(word.partition("=")[0], self._option_string_actions, n=1)
            hint = _("; did you mean {near}?", near=near[0]) if near and word.startswith("--") else ""
            said = (
                N_("no such option: {option}") if word in unknown else N_("one argument too many: {option}")
            )
            self.error(_(said, option=word) + hint)
        return found

    def _own_words(self, words: Sequence[str]) -> int:
        """How many of the words are about options of the command itself, or arguments among these."""
        end = words.index("--") if "--" in words else len(words)
        with_value = {name for row in self._options if row.kind != "flag" for name in row.spelled.split()}
        at = 0
        while self._others and at < end:
            if not words[at].startswith("-"):
                return at
            at += 2 if words[at] in with_value else 1
        return end

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        what = " ".join(message.split())
        raise UsageError("{what} ({command} --help shows all options)", what=what, command=self._command)

    def print_help(self, _file: object = None) -> None:
        """Print the help at once: argparse takes no notice where it cannot be written."""
        for row in self._arguments:
            self.add_argument(row.name, metavar=row.metavar or None, help=_(row.help) or argparse.SUPPRESS)
        if self._below:
            listed = self.add_argument_group(_("Commands"))
            for name, about in self._below.items():
                listed.add_argument(name, help=_(about))
        print(self.format_help(), end="", flush=True)


class _Layout(argparse.HelpFormatter):
    """argparse's layout, with the paragraphs of docstrings, and lines that fit also with wide characters."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, prefix or _("Usage: "))

    def _split_lines(self, text: str, width: int) -> list[str]:
        from migrator.wrapping import wrap

        return wrap(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        from migrator.wrapping import wrap

        parts = [
            part.splitlines()[1:] if part.startswith("\b") else wrap(_(part), width)
            for part in paragraphs(text)
        ]
        return "\n\n".join("\n".join(indent + line for line in part) for part in parts)


def _layout(prog: str) -> argparse.HelpFormatter:
    columns = os.environ.get("COLUMNS", "")
    width = min(int(columns) if columns.isdecimal() else 80, 100)
    return _Layout(prog, max_help_position=30, width=max(width, 40))


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a docstring, each on one line but for those whose lines stay, behind a ``\\b``."""
    parts = (part.strip(" \n") for part in re.split(r"\n\s*\n", text))
    stay = (
        re.sub(r"\n +", "\n", part) if part.startswith("\b") else " ".join(part.split()) for part in parts
    )
    return [part for part in stay if part]


def _help(option: Option) -> str:
    shown = option.kind != "flag" and option.default not in (None, "", True) and not option.group
    default = _(" (default: {default})", default=option.default) if shown else ""
    return (_(option.help) + default).replace("%", "%%")


def _taking(option: Option) -> dict[str, Any]:
    """What argparse is told of an option's value. Without one it gives the default; False for a flag."""
    about: dict[str, Any] = {"dest": option.name.replace("-", "_"), "required": option.required}
    if option.kind == "flag":
        return {**about, "action": "store_true"}
    about["default"] = option.default
    if option.kind == "switch":
        return {**about, "action": argparse.BooleanOptionalAction}
    if option.choices and not option.metavar:
        return {**about, "choices": option.choices}
    action = "append" if option.repeated else "store"
    return {**about, "metavar": option.metavar or None, "action": action, "type": _value(option)}


def _value(option: Option) -> Callable[[str], Any]:
    """What makes an option's value of a word."""
    if option.kind in ("path", "paths"):
        return str if "lint" in option.commands else Path
    if option.kind not in ("number", "amount"):
        return str
    kind: Callable[[str], Any] = int if option.kind == "number" else float
    least, most = option.least, sys.maxsize if option.most is None else option.most

    def number(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or value != value or not (least is None or least <= value) or value > most:
            wanted = _("from {least}", least=least) if least is not None else ""
            wanted += _(" to {most}", most=most) if option.most is not None else ""
            said = _("{text!r} is not a number {wanted}", text=text, wanted=wanted).rstrip()
            raise argparse.ArgumentTypeError(said)
        return value

    return number
