"""Kinds ``command`` and ``mpi-line``: commands that NPU machines do not have, or that start ranks over MPI.

Kind ``body``: text of another language in a script, such as Python in a here-document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Literal, Optional

from migrator.findings.edits import line_edits
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.context import Match, Said, TextContext, found_in_text
from migrator.matchers.packs import Options, Rule
from migrator.other_files.index import Command, Program, Span, TextIndex
from migrator.project.frameworks import TORCH
from migrator.project.offers import LIBRARY

# What only asks whether there is such a command.
_CONTAINERS = frozenset({"docker run", "podman run"})
_ASKING = ("command", "which", "type", "hash")
_SILENCED = re.compile(r"\s2>\s*/dev/null\b")
_QUOTES = frozenset("'\"\\")
# What stands before the code of ``python -c``, and before a here-document that Python reads; quoted, a shell
# hands it on as it is written.
_CODE = re.compile(rb"\bpython[\d.]*[ \t]+(?:-[a-zA-Z]+[ \t]+)*-c[ \t]*\Z")
_DOCUMENT = re.compile(rb"\bpython[\d.]*(?:[ \t]+-)?[ \t]*<<-?[ \t]*([\"'\\])?\w[^\n]*\n\Z")
_FAR = 200  # so many bytes before it
_OF_PYTHON = N_("Python code in this script uses {api}")
_READ = N_("Review the migrated code: the script may depend on its output.")


class CommandOptions(Options):
    """``commands``: what is written for a program with its words (``nvidia-smi -L: npu-smi info -l``).

    It is written where a person, or nobody, reads what the command prints; what reads it knows other columns.
    ``beginning``: only where a word begins like one of them. ``pipelines``: what is written for a pipeline
    of a script (``nvidia-smi -L | wc -l``), errors thrown away or not, in projects of PyTorch alone.
    """

    commands: dict[str, str] = field(default_factory=dict)
    pipelines: dict[str, str] = field(default_factory=dict)
    beginning: tuple[str, ...] = ()


def find(context: TextContext, rules: list[Rule[CommandOptions]]) -> Iterator[Match]:
    """The commands that a rule names."""
    for command in context.index.content.commands:
        for program in command.programs:
            if program.place < 0 or program.kind != "command":
                continue
            words = [*(word.text or "" for word in command.words[program.place + 1 :]), ""]
            asked = ((each, each.options.beginning or "") for each in rules if program.name in each.match)
            about = (each for each, text in asked if any(word.startswith(text) for word in words))
            if rule := next(about, None):
                span, new = _instead(context, rule, command, program)
                edits = [Edit(*span, new)] if new and rule.fix != "none" else []
                advice = "" if edits else rule.advice
                yield found_in_text(context, rule, span, api=program.name, edits=edits, advice=advice)


def _instead(
    context: TextContext, rule: Rule[CommandOptions], command: Command, program: Program
) -> tuple[Span, Optional[str]]:
    """The place of a command, and what is written there."""
    if command.pipeline is not None and not {*context.project.frameworks} - {TORCH}:
        written = _SILENCED.sub(" ", context.index.text_of(command.pipeline)).split("|")
        known = rule.options.pipelines.get(" | ".join(" ".join(part.split()) for part in written))
        if known and rule.fix != "none":
            return command.pipeline, known
    words, table = command.words[program.place :], rule.options.commands
    if command.programs[0].name in _ASKING:
        span, new = words[0].span, table.get(program.name, "").split(" ")[0]
    else:
        span = words[0].span[0], words[-1].span[1]
        new = table.get(" ".join([program.name, *(word.text or "" for word in words[1:])]), "")
    # What a container has, its image says.
    inside = any(each.name in _CONTAINERS for each in command.programs)
    return span, None if command.captured or inside else new


def find_bodies(context: TextContext, rules: list[Rule]) -> Iterator[Match]:
    """The first place in each such text at which a word of a rule stands; Python is migrated."""
    index = context.index
    for rule in rules:
        word = re.compile(rb"\b(?:%s)\b" % b"|".join(each.encode("utf-8") for each in rule.match))
        for start, end in index.content.bodies:
            if found := word.search(index.data, start, end):
                api, edits = found.group().decode("utf-8"), _migrated(context, (start, end))
                said = Said(message=_(_OF_PYTHON), advice=_(_READ), edits=edits) if edits else Said()
                said["api"] = api
                yield found_in_text(context, rule, found.span(), **said)


def _migrated(context: TextContext, span: Span) -> list[Edit]:
    """What makes Python code in a script one for NPUs: where the shell hands it on as it is written."""
    data, (start, end) = context.index.data, span
    before, quote = data[max(0, start - _FAR) : start], data[start : start + 1].decode("ascii", "replace")
    if _CODE.search(before) and quote in "'\"" and data[end - 1 : end] == quote.encode("ascii"):
        start, end, changed_by_shell = start + 1, end - 1, quote if quote == "'" else '"$`\\'
    elif found := _DOCUMENT.search(before):
        changed_by_shell = "" if found[1] else "$`\\"
    else:
        return []
    code = data[start:end].decode("utf-8")
    new = None if any(map(code.__contains__, changed_by_shell)) else context.migrated(code)
    if new is None or any(map(new.__contains__, changed_by_shell)) or ("\n" in new) > ("\n" in code):
        return []
    edits = line_edits(data[start:end], new.encode("utf-8"))
    return [Edit(start + each.start, start + each.end, each.text) for each in edits]


class LineOptions(Options):
    """``starter``: the launcher's ``script``, MindSpore's ``msrun``, or ``nothing`` that is known.

    ``needs``: by library, the module of the result without which the project's lines stay.
    """

    starter: Literal["script", "msrun", "nothing"] = "script"
    needs: dict[str, str] = field(default_factory=dict)


def find_mpi_lines(context: TextContext, rules: list[Rule[LineOptions]]) -> Iterator[Match]:
    """The commands that start ranks, with what to write where all of the line is understood."""
    # A file with one of these commands is rare, and so is what reads them.
    from migrator.launch.mpi import LAUNCHERS, MSRUN, instead_of, is_of_python, message_for

    index, in_shell = context.index, context.index.type in ("shell", "makefile")
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
        starter, new, advice = rule.options.starter, "", rule.advice
        if starter != "nothing" and (in_shell or _is_in_one_piece(index, command)):
            new, advice = instead_of(line, MSRUN if starter == "msrun" else None)
            if starter == "script" and not _starts_beside_launcher(context, command, rule):
                new = ""
        if not in_shell and not _QUOTES.isdisjoint(new):
            new, advice = "", _("Write {new}.", new=new)  # the file's own quotes may be around it
        about: Said = {"api": launcher, "message": message_for(launcher), "advice": "" if new else advice}
        about["edits"] = [Edit(*command.span, new)] if new else []
        yield found_in_text(context, rule, command.span, **about)


def _is_in_one_piece(index: TextIndex, command: Command) -> bool:
    """Whether a command stands in one line with blanks between its words: not so in lists of words."""
    spans = [word.span for word in command.words]
    apart = all(index.text_of((one[1], other[0])).isspace() for one, other in zip(spans, spans[1:]))
    return apart and "\n" not in index.text_of(command.span)


def _starts_beside_launcher(context: TextContext, command: Command, rule: Rule[LineOptions]) -> bool:
    """Whether a command starts a script in the top folder, where the migrated project has its launcher."""
    project, program, parts = context.project, command.programs[-1], context.index.content
    needs = {rule.options.needs.get(each, "") for each in project.offers.names(LIBRARY)} - {""}
    if project.programs is None or needs - {*project.added} or not any(one.score for one in project.starts):
        return False
    goes = any(one.programs[0].name == "cd" and one.words[-1].text for one in parts.commands if one.programs)
    started = project.programs.started(context.index.name, parts, program)
    return not goes and bool(started) and started == program.name and "/" not in started
