"""``npumigrate completion``: what a shell offers behind ``npumigrate``, and the scripts that make it ask.

The scripts hand over the words of the line, and get one candidate a line. They are those of the table that
``--help`` shows.
"""

from __future__ import annotations

from collections.abc import Sequence

import typer

from migrator.cli.ending import stop
from migrator.cli.options import Given
from migrator.command_options import every_option, options_of
from migrator.data_folders import data_folder

_SHELLS = ("bash", "zsh", "fish")  # each has a script in reports/completion


def completion(given: Given) -> None:
    """Print a shell completion script for commands, options and values.

    \b
    bash:  npumigrate completion bash >> ~/.bashrc
    zsh:   npumigrate completion zsh >> ~/.zshrc
    fish:  npumigrate completion fish > ~/.config/fish/completions/npumigrate.fish
    """
    shell = given.shell
    if shell == "words":
        for word in candidates(given.words or [""]):
            typer.echo(word)
    elif shell in _SHELLS:
        typer.echo((data_folder("reports") / "completion" / shell).read_text(encoding="utf-8"), nl=False)
    else:
        stop("SHELL: choose from {shells}, not {shell!r}", shells=", ".join(_SHELLS), shell=shell)


def candidates(words: list[str]) -> list[str]:
    """What may stand in place of the last of the words behind ``npumigrate``; nothing where a path may."""
    from migrator.cli.main import COMMANDS

    *before, last = words
    if not before and not last.startswith("-"):
        return sorted(name for name in COMMANDS if name.startswith(last))
    name = before[0] if before and before[0] in COMMANDS else "migrate"
    if "--" in before or name == "completion":
        return sorted(each for each in _SHELLS if each.startswith(last)) if len(before) == 1 else []
    known = {command for option in every_option() for command in option.commands}
    name = "lint" if name in ("check", "upgrade") else name
    for word in before[1:]:
        name = f"{name} {word}" if f"{name} {word}" in known else name
    options: list[tuple[list[str], Sequence[str]]] = [(["--help", "-h"], ())]
    for option in options_of(name):
        spelled = option.spelled.replace("/", " ").split()
        spelled += [f"--no-{option.name}"] if option.kind == "switch" else []
        options.append((spelled, option.choices))
    for spellings, values in options:
        if before and before[-1] in spellings and values:
            return sorted(value for value in values if value.startswith(last))
    if last.startswith("-"):
        return sorted(each for spellings, _ in options for each in spellings if each.startswith(last))
    below = [each.rpartition(" ")[2] for each in known if each.rpartition(" ")[0] == name]
    return sorted(each for each in below if each.startswith(last))
