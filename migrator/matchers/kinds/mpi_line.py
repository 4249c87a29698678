"""Kind ``mpi-line``: commands that start a program's ranks with mpirun or horovodrun."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.launch.launcher_lines import advice_for, is_of_python, message_for, one_command
from migrator.launch.mpi import LAUNCHERS
from migrator.launch.msrun import MSRUN
from migrator.matchers.context import Match, TextContext, found_in_text
from migrator.matchers.packs import Options, Rule
from migrator.other_files.index import Command, TextIndex

_QUOTES = frozenset("'\"\\")


@dataclass(frozen=True)
class LineOptions(Options):
    """``starter``: the launcher's ``script``, MindSpore's ``msrun``, or ``nothing`` that is known."""

    starter: Literal["script", "msrun", "nothing"] = "script"


def find(context: TextContext, rules: list[Rule[LineOptions]]) -> Iterator[Match]:
    """The commands, with what to write where all of the line is understood, and the launcher is there."""
    index = context.index
    in_shell = index.type in ("shell", "makefile")
    # What elsewhere starts PyTorch is found by the text: matchers/other_files.py.
    rules = [rule for rule in rules if in_shell or rule.options.starter != "script"]
    for command in index.content.commands if rules else ():
        launcher = next((each.name for each in command.programs if each.name in LAUNCHERS), "")
        line = index.text_of(command.span)
        if not launcher or not is_of_python(launcher, line):
            continue
        framework = context.project.framework_of(line.replace("::", " ").split())
        rule = next((rule for rule in rules if framework in rule.framework), None)
        if rule is None:
            continue
        known = in_shell or _is_in_one_piece(index, command)
        new, advice = _instead(context, rule, command, line) if known else ("", rule.advice)
        if not in_shell and not _QUOTES.isdisjoint(new):
            new, advice = "", _("Write {new}.", new=new)  # the file's own quotes may be around it
        edits = [Edit(*command.span, new)] if new else ()
        message = message_for(launcher)
        advice = "" if new else advice
        yield found_in_text(
            context, rule, command.span, api=launcher, edits=edits, message=message, advice=advice
        )


def _is_in_one_piece(index: TextIndex, command: Command) -> bool:
    """Whether a command stands in one line with blanks between its words: not so in lists of words."""
    if "\n" in index.text_of(command.span):
        return False
    spans = [word.span for word in command.words]
    return all(index.text_of((one[1], other[0])).isspace() for one, other in zip(spans, spans[1:]))


def _instead(context: TextContext, rule: Rule[LineOptions], command: Command, line: str) -> tuple[str, str]:
    """What to write for a line, and what to say where that is not sure."""
    if rule.options.starter == "nothing":
        return "", rule.advice
    if rule.options.starter == "msrun":
        return one_command(line, MSRUN, assumed=True), advice_for(line, MSRUN)
    new = one_command(line) if _starts_beside_launcher(context, command) else ""
    return new, advice_for(line)


def _starts_beside_launcher(context: TextContext, command: Command) -> bool:
    """Whether a command starts a script in the top folder, where the migrated project has its launcher."""
    project, program, content = context.project, command.programs[-1], context.index.content
    if project.programs is None or not any(start.candidate for start in project.starts):
        return False
    goes = any(
        each.programs and each.programs[0].name == "cd" and each.words[-1].text for each in content.commands
    )
    started = project.programs.started(context.index.name, content, program)
    return not goes and bool(started) and started == program.name and "/" not in started
