"""The commands that come next, as they can be pasted into the shell that ran this one."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from migrator.cli.ending import PROBLEMS
from migrator.language import _


def shell_word(text: str) -> str:
    """A text as one word of bash, on one line: what cannot be printed becomes an escape in ``$'…'``."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = (
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\\\" else f"\\x{byte:02x}"
        for byte in os.fsencode(text)
    )
    return f"$'{''.join(escaped)}'"


def own_command() -> str:
    """How this npumigrate is called: by its name where a shell finds it, else by its path or its Python."""
    called = sys.argv[0]
    found = shutil.which("npumigrate")
    if os.path.basename(called) == "npumigrate":
        same = found is not None and os.path.realpath(found) == os.path.realpath(called)
        return "npumigrate" if same else shell_word(called)
    return f"{shell_word(sys.executable)} -m migrator"


def after_migration(result: Path, launcher: str, reported: bool) -> list[str]:
    """Look at a result; where it has a launcher, check it on emulated NPUs and start it on NPUs."""
    commands = [] if reported else [f"{own_command()} report {_path(result)}"]
    if launcher:
        commands.append(f"{own_command()} verify {_path(result)} --devices 2 -- bash {launcher}")
        commands.append(f"bash {_path(result, launcher)}")
    return commands


def after_preview(source: Path, version: str) -> list[str]:
    """Make the changes that a diff has shown."""
    return [f"{own_command()} -i {_path(source)} -o out -v {version}"]


def after_analysis(source: Path, reports: Path, version: str, reported: bool) -> list[str]:
    """Look at the tables, and migrate."""
    shown = [] if reported else [f"{own_command()} report {_path(reports)}"]
    return [*shown, *after_preview(source, version)]


def after_verification(
    migrated: Path, launcher: str, code: int, reported: bool, again: str, command: Sequence[str]
) -> list[str]:
    """Start on NPUs what ran on emulated ones; repair, or explain, what failed; else look at what is CUDA's.

    ``code`` is the exit code of the run of this ``command``; ``again`` are the options for another one.
    """
    made = (migrated / "migration_report").is_dir()  # any program can be verified
    if code == PROBLEMS:
        words = f"{own_command()} verify {_path(migrated)} {again}"
        program = " ".join(map(shell_word, command))
        repair = [f"{words} --repair -- {program}"] if made and "--repair" not in again else []
        return [*repair, f"{words} -- {program} 2>&1 | {own_command()} explain -"]
    if code:
        return [f"{own_command()} lint {_path(migrated)}"]
    commands = [f"{own_command()} report {_path(migrated)}"] if made and not reported else []
    return [*commands, *([f"bash {_path(migrated, launcher)}"] if launcher else [])]


def after_report(folder: Path) -> list[str]:
    """Run the result of a migration whose reports were built, on emulated NPUs."""
    result = folder.parent if folder.name == "migration_report" else folder
    if not (result / "migration_report").is_dir():  # of an analysis
        return []
    return [f"npumigrate verify {_path(result)}"]


def say_next(*commands: str) -> None:
    """Print the commands that come next where people look on: nothing of a program's input or log."""
    if commands and sys.stdout.isatty() and sys.stderr.isatty():
        from migrator.report.colors import paint, wanted

        sys.stdout.flush()
        print("", paint(_("Next"), "bold", wanted()), sep="\n", file=sys.stderr)
        for command in commands:
            program, space, rest = command.partition(" ")
            print(f"  {own_command() if program == 'npumigrate' else program}{space}{rest}", file=sys.stderr)


def _path(path: Path, *inside: str) -> str:
    """A path as one word of bash that no command takes for an option."""
    return shell_word(os.path.join(f"./{path}" if str(path).startswith("-") else path, *inside))
