"""For the commands that read their options by argparse, not by typer as the others: see the package."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial
from typing import Any, NoReturn

from migrator.cli.ending import stop
from migrator.command_options import Option
from migrator.language import _, did_you_mean


class Parser(argparse.ArgumentParser):
    """argparse's, with the help of the other commands, and errors of one line: UserError."""

    def __init__(self, command: str, about: str, options: Iterable[Option]) -> None:
        layout = partial(argparse.HelpFormatter, width=80)  # without one each option asks for the terminal's
        super().__init__(f"npumigrate {command}", formatter_class=layout, allow_abbrev=False)
        self._help = command, about, list(options)
        for option in self._help[2]:
            taken: dict[str, Any] = {"metavar": option.metavar}
            if not option.spelled:
                taken["nargs"] = None if option.required else "*"
            elif option.kind == "flag":
                taken = {"action": "store_true"}
            elif option.kind == "switch":
                taken = {"action": argparse.BooleanOptionalAction}
            elif option.kind == "number":
                taken["type"] = _jobs
            elif not option.metavar:
                taken = {"choices": option.choices, "default": option.default}
            elif option.repeated:
                taken["action"] = "append"
            if option.spelled or option.metavar:
                self.add_argument(*(option.spelled.split() or [option.name]), **taken)

    def error(self, message: str) -> NoReturn:
        """Raise UserError; with the option that may be meant by one that there is not."""
        before = _("unrecognized arguments: %s").replace("%s", "")
        unknown = message.partition(before)[2].partition(" ")[0].partition("=")[0]
        what = message + did_you_mean(unknown, self._option_string_actions if unknown[:2] == "--" else ())
        stop("{what} ({command} --help shows all options)", what=what, command=self.prog)

    def print_help(self, _file: object = None) -> None:
        """Print the help at once: argparse takes no notice where it cannot be written."""
        from migrator.cli.help import page

        print(page(*self._help), flush=True)


def _jobs(text: str) -> int:
    if not text.isdigit() or text == "0":
        raise argparse.ArgumentTypeError(_("{text!r} is not a number of processes", text=text))
    return int(text)
