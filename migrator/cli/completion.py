"""``npumigrate completion``: what a shell offers behind ``npumigrate``, and the scripts that make it ask.

The scripts hand over the words of the line, and get one candidate a line. They are asked of the parsers
themselves, so they are always those of ``--help``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Optional

import typer

from migrator.cli.ending import DONE, stop

_SCRIPTS = {
    "bash": """\
_npumigrate() {
  local IFS=$'\\n'
  COMPREPLY=($("$1" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _npumigrate
""",
    "zsh": """\
#compdef npumigrate
_npumigrate() {
  local -a found
  found=("${(@f)$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$found" ]] && compadd -- $found || _files
}
compdef _npumigrate
""",
    "fish": """\
function __npumigrate
  npumigrate completion words -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete -c npumigrate -a '(__npumigrate)'
""",
}


def completion(
    shell: str,
    words: Optional[list[str]] = None,
) -> None:
    """Print the script that lets a shell complete commands, options and their values.

    \b
    bash:  npumigrate completion bash >> ~/.bashrc
    zsh:   npumigrate completion zsh >> ~/.zshrc
    fish:  npumigrate completion fish > ~/.config/fish/completions/npumigrate.fish
    """
    if shell == "words":
        for word in candidates(list(words or [""])):
            typer.echo(word)
    elif shell in _SCRIPTS:
        typer.echo(_SCRIPTS[shell], nl=False)
    else:
        stop(f"there is no shell {shell!r} here: choose one of {', '.join(_SCRIPTS)}")
    raise typer.Exit(DONE)


def candidates(words: list[str]) -> list[str]:
    """What may stand in place of the last of the words behind ``npumigrate``; nothing where a path may."""
    from migrator.cli.main import COMMANDS

    *before, last = words
    if not before and not last.startswith("-"):
        return sorted(name for name in COMMANDS if name.startswith(last))
    name = before[0] if before and before[0] in COMMANDS else "migrate"
    if "--" in before or name == "completion":
        return sorted(each for each in _SCRIPTS if each.startswith(last)) if len(before) == 1 else []
    options, below = _parts(name, before[1:])
    for spellings, values in options:
        if before and before[-1] in spellings and values:
            return sorted(value for value in values if value.startswith(last))
    if last.startswith("-"):
        return sorted(each for spellings, _ in options for each in spellings if each.startswith(last))
    return sorted(each for each in below if each.startswith(last))


_Option = tuple[tuple[str, ...], tuple[str, ...]]  # its spellings, and its values where they are known


def _parts(name: str, words: list[str]) -> tuple[list[_Option], list[str]]:
    """The options of a command, and the commands below it."""
    if name in ("lint", "check", "api"):
        return list(_of_argparse(name)), []
    from typer.main import get_command

    from migrator.cli.main import parser

    command: Any = get_command(parser(name))
    command = command.commands[name]
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return list(_of_typer(command)), list(getattr(command, "commands", ()))


def _of_typer(command: Any) -> Iterator[_Option]:
    for each in command.params:
        if getattr(each, "param_type_name", "") == "option":
            yield (*each.opts, *each.secondary_opts), _values(each)
    yield ("--help", "-h"), ()


def _values(option: Any) -> tuple[str, ...]:
    """The values of an option that has a few: typer tells them in one way or another, by its version."""
    kind = getattr(getattr(option, "type_descriptor", None), "annotation", None)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(str(each.value) for each in kind)
    return tuple(map(str, getattr(getattr(option, "type", None), "choices", ())))


def _of_argparse(name: str) -> Iterator[_Option]:
    if name == "api":
        from migrator.cli.api import parser
    else:
        from migrator.cli.lint import parser
    for action in parser()._actions:
        if action.option_strings:
            yield tuple(action.option_strings), tuple(map(str, action.choices or ()))
