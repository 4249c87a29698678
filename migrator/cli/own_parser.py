"""For the commands that read their options by argparse, not by typer as the others: see the package."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from itertools import groupby
from typing import Any, NoReturn

from migrator.command_options import Option
from migrator.language import MessageError, _, language


class UsageError(MessageError):
    """A command line that cannot be understood; its text is the user's line."""


class Parser(argparse.ArgumentParser):
    """argparse's, with help as wide as the other commands' and errors of one line: UsageError."""

    def __init__(self, command: str, usage: str, description: str, epilog: str) -> None:
        def layout(prog: str) -> argparse.HelpFormatter:
            columns = os.environ.get("COLUMNS", "")
            width = min(int(columns) if columns.isdecimal() else 80, 100)
            made: type[argparse.HelpFormatter] = argparse.RawDescriptionHelpFormatter
            if language() != "en":
                from migrator.cli.spoken import Help

                made = Help
            return made(prog, max_help_position=30, width=max(width, 40))

        self._command = f"npumigrate {command}"
        super().__init__(
            self._command,
            usage=f"{self._command} {usage}",
            description=_(description),
            epilog=_(epilog),
            formatter_class=layout,
            allow_abbrev=False,
        )

    def add_options(self, options: Iterable[Option]) -> None:
        """Take these options, in the groups of the help that they name."""
        for title, group in groupby(options, key=lambda option: option.group):
            part = self.add_argument_group(_(title)) if title else self
            for option in group:
                if option.spelled:
                    part.add_argument(*option.spelled.split(), help=_(option.help), **_taking(option))

    def error(self, message: str) -> NoReturn:
        """Raise UsageError; with the option that may be meant by one that there is not."""
        what = message + self._hint(message)
        raise UsageError("{what} ({command} --help shows all options)", what=what, command=self._command)

    def print_help(self, _file: object = None) -> None:
        """Print the help at once: argparse takes no notice where it cannot be written."""
        print(self.format_help(), end="", flush=True)

    def _hint(self, message: str) -> str:
        before = _("unrecognized arguments: %s").replace("%s", "")
        unknown = message.partition(before)[2].partition(" ")[0].partition("=")[0]
        if not unknown.startswith("--"):
            return ""
        from difflib import get_close_matches

        near = get_close_matches(unknown, self._option_string_actions, n=1)
        return _("; did you mean {near}?", near=near[0]) if near else ""


def _taking(option: Option) -> dict[str, Any]:
    """What argparse is told of an option's value. Without one it gives None, or False for a flag."""
    if option.kind == "flag":
        return {"action": "store_true"}
    if option.kind == "switch":
        return {"action": argparse.BooleanOptionalAction}
    if option.kind == "number":
        return {"metavar": option.metavar, "type": _jobs}
    if not option.metavar:
        return {"choices": option.choices, "default": option.default}
    return {"metavar": option.metavar, "action": "append" if option.repeated else "store"}


def _jobs(text: str) -> int:
    if not text.isdigit() or text == "0":
        raise argparse.ArgumentTypeError(_("{text!r} is not a number of processes", text=text))
    return int(text)
