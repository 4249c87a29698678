"""The command line's frame: which command is meant, and what a person sees of an error.

Nothing heavy is imported here: ``npumigrate --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Optional

from migrator import __version__
from migrator.cli.ending import DONE, WRONG_USE, ended, escape_unprintable, stop
from migrator.cli.parser import Given, Parser, paragraphs
from migrator.command_options import below, options_of
from migrator.language import N_

# Each command, in the order of the help; it is migrator.cli.NAME.NAME. Only the one that is asked for is
# imported.
COMMANDS = (
    *("migrate", "analyze", "lint", "check", "verify", "emulate", "report", "launch", "doctor", "fleet"),
    *("api", "rule", "db", "server", "mcp", "completion", "version"),
)
_ABOUT = {
    "": "Take PyTorch projects from CUDA and NCCL to Ascend NPUs (torch_npu and HCCL).\n\n"
    "Without a command it migrates: npumigrate SRC -o OUT -v 2.6",
    "check": "Another name for lint.",
    "launch": "Prepare the start of a program on several machines.",
    "db": "The tables that say which API works where: compare versions, show releases.",
}
# By themselves these can do nothing: they show their help.
_HELP_ALONE = ("migrate", "analyze", "verify", "report", "launch", "fleet", "api", "rule", "db", "completion")
_WITH_OTHERS = ("emulate", "launch mpi")  # behind their first word all is another program's


def version(_given: Given) -> None:
    """Show the version of npumigrate."""
    print(f"npumigrate {__version__}")


def function_of(name: str) -> Any:
    """The function of a command such as ``launch k8s``; None where only commands are below the name."""
    if name in ("", "launch", "db"):
        return None
    if name == "version":
        return version
    first, *rest = name.split()
    return getattr(import_module(f"migrator.cli.{first}"), (rest or [first])[-1].replace("-", "_"))


def about(name: str) -> str:
    """The help of a command, in English: several paragraphs."""
    return _ABOUT.get(name) or str(function_of(name).__doc__)


def parser(name: str) -> Parser:
    """The parser of a command; an empty name is for the list of all."""
    listed = {each: f"{name} {each}" for each in below(name)} if name else {each: each for each in COMMANDS}
    rows = options_of(name or "npumigrate")
    lines = {each: paragraphs(about(full))[0] for each, full in listed.items()}
    return Parser(name, about(name), rows, lines, name in _WITH_OTHERS)


def run(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command line, ``sys.argv`` without one, and return its exit code."""
    escape_unprintable()
    return ended(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(given: list[str]) -> int:
    if given in (["--version"], ["-V"]):  # with a value it is torch's, of a migration
        given = ["version"]
    if not given or (len(given) == 1 and given[0] in _HELP_ALONE):
        parser("".join(given)).print_help()
        return WRONG_USE
    if given in (["-h"], ["--help"]):
        parser("").print_help()
        print()
        given = ["migrate", "--help"]  # what most people look for
    elif given[0] not in COMMANDS:
        if not given[0].startswith("-") and not os.path.exists(given[0]):
            stop("there is no command {name!r} (npumigrate --help shows all)", name=given[0])
        given.insert(0, "migrate")
    if given[0] == "migrate":
        from migrator.cli.migrate import translated

        given = translated(given)
    name, *words = given
    name = "lint" if name == "check" else name
    while words and words[0] in below(name):
        name = f"{name} {words.pop(0)}"
    if words and words[0] not in ("-h", "--help") and function_of(name) is None:
        said = N_("there is no command {name!r} (npumigrate {first} --help shows all)")
        stop(said, name=f"{name} {words[0]}", first=name)
    given_to = parser(name).read(words)
    return function_of(name)(given_to) or DONE
