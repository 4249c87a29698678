"""The command line's frame: which command is meant, and what a person sees of an error.

Nothing heavy is imported here: ``npumigrate --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Optional

from migrator.cli.ending import DONE, WRONG_USE, ended, escape_unprintable, stop
from migrator.cli.options import Given, given_to
from migrator.command_options import commands_below, options_of
from migrator.language import _, did_you_mean

# All names of lint, which reads its options itself, and what the list of all commands says of them.
LINTS = {
    "lint": "Find what keeps a project from running on Ascend NPUs: for CI, hooks and editors.",
    "check": "Another name for lint.",
    "upgrade": "Find, and with --fix write, what another torch_npu needs in code for NPUs.",
}
# Each command, in the order of the help; it is migrator.cli.NAME.NAME. Only the one that is asked for is
# imported.
COMMANDS = (
    *("migrate", "analyze", "lint", "check", "upgrade", "verify", "emulate", "record", "compare", "profile"),
    *("report", "launch", "doctor", "explain", "fleet", "api", "rule", "db", "server", "mcp", "completion"),
    "version",
)
_HELP = ("-h", "--help")
ABOUT = """Migrate PyTorch projects from CUDA and NCCL to Ascend NPUs (torch_npu and HCCL).

Without a command it migrates: npumigrate SRC -o OUT -v 2.6
"""
# By themselves these can do nothing: they show their help.
_HELP_ALONE = (
    *("migrate", "analyze", "verify", "record", "compare", "profile", "report"),
    *("launch", "fleet", "api", "rule", "db", "completion"),
)


def version(_given: Given) -> None:
    """Show the version."""
    from migrator.this_copy import version as known

    print(f"npumigrate {known()}")


def command_of(name: str) -> tuple[Optional[Callable[[Given], Optional[int]]], str]:
    """The function of a command such as ``launch k8s``, None for ``launch`` alone, and what it is about."""
    top, _space, rest = name.partition(" ")
    module = import_module(f"migrator.cli.{top}") if top != "version" else None
    function = (
        version if module is None else getattr(module, "BELOW", {}).get(rest) or getattr(module, top, None)
    )
    return function, (function.__doc__ if function else getattr(module, "ABOUT", "")) or ""


def abouts() -> dict[str, str]:
    """What each command says of itself; lint in one line."""
    return {name: LINTS.get(name) or command_of(name)[1] for name in COMMANDS}


def run(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command line, ``sys.argv`` without one, and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["-V"] or given == ["--version"]:  # with a value it is torch's, of a migration
        given = ["version"]
    alone = not given or (len(given) == 1 and given[0] in _HELP_ALONE)
    if alone:
        given.append("--help")
    elif given[0] not in (*COMMANDS, *_HELP) and (given[0].startswith("-") or os.path.exists(given[0])):
        given.insert(0, "migrate")
    escape_unprintable()
    code = ended(lambda: _run(*given, alone=alone))
    return code or (WRONG_USE if alone else DONE)


def _run(name: str, *words: str, alone: bool = False) -> int:
    if name in _HELP:
        from migrator.cli.help import page

        print(page("", ABOUT, options_of("npumigrate"), abouts()))
        if alone:
            return DONE
        print()
        name, words = "migrate", ("--help",)  # what most people look for
    if name not in COMMANDS:
        what = _("no such command: {what}", what=name) + did_you_mean(name, COMMANDS)
        stop("{what} (npumigrate --help shows all options)", what=what)
    if name in LINTS:
        from migrator.cli.lint import lint

        # The rules of an upgrade have unsafe fixes only: who asks for them knows.
        asked = ("--select", "NPU10,NPU53", "--unsafe-fixes") if name == "upgrade" else ()
        return lint((*asked, *words))
    if name == "migrate":
        from migrator.cli.migrate import translated

        words = tuple(translated(words))
    return run_command(name, words)


def run_command(name: str, words: Sequence[str]) -> int:
    """Run a command, or one below it, with the words behind its name; gives its exit code."""
    while words and f"{name} {words[0]}" in commands_below(name):
        name, words = f"{name} {words[0]}", words[1:]
    function, about = command_of(name)
    below = {each.rpartition(" ")[2]: command_of(each)[1] for each in commands_below(name)}
    if function is None and words[:1] and not words[0].startswith("-"):
        what = _("no such command: {what}", what=words[0]) + did_you_mean(words[0], below)
        stop("{what} (npumigrate --help shows all options)", what=what)
    given = given_to(name, words, about, below)
    return (function(given) if function else None) or DONE
