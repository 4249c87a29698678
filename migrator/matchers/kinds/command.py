"""Kind ``command``: a command of a shell that is not available on NPU machines.

Kind ``body``: text of another language in a script, such as Python in a here-document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional

from migrator.findings.finding import Edit
from migrator.matchers.context import Match, TextContext, found_in_text
from migrator.matchers.packs import Options, Rule
from migrator.other_files.index import Command, Program, Span
from migrator.project.frameworks import TORCH

# What only asks whether there is such a command.
_ASKING = ("command", "which", "type", "hash")
_SILENCED = re.compile(r"\s2>\s*/dev/null\b")


@dataclass(frozen=True)
class CommandOptions(Options):
    """``commands``: what is written for a program with its words (``nvidia-smi -L: npu-smi info -l``).

    It is written where a person, or nobody, reads what the command prints; what reads it knows other columns.
    ``pipelines``: what is written for a whole pipeline of a script (``nvidia-smi -L | wc -l``), errors thrown
    away or not, in projects of PyTorch alone.
    """

    commands: dict[str, str] = field(default_factory=dict)
    pipelines: dict[str, str] = field(default_factory=dict)


def find(context: TextContext, rules: list[Rule[CommandOptions]]) -> Iterator[Match]:
    """The commands that a rule names."""
    for command in context.index.content.commands:
        for program in command.programs:
            rule = next((rule for rule in rules if program.name in rule.match), None)
            if rule is not None and program.place >= 0 and program.kind == "command":
                yield _found(context, rule, command, program)


def _found(context: TextContext, rule: Rule[CommandOptions], command: Command, program: Program) -> Match:
    if command.pipeline is not None and (written := _for_pipeline(context, rule, command.pipeline)):
        edits = [Edit(*command.pipeline, written)]
        return found_in_text(context, rule, command.pipeline, api=program.name, edits=edits)
    words = command.words[program.place :]
    asked = command.programs[0].name in _ASKING
    texts = [program.name] if asked else [word.text or "" for word in words]
    new = rule.options.commands.get(" ".join([program.name, *texts[1:]]))
    span = (words[0].span[0], words[0 if asked else -1].span[1])
    if asked and new:
        new = new.split()[0]
    made = new is not None and not command.captured and rule.fix != "none"
    edits = [Edit(*span, new)] if made and new is not None else []
    advice = "" if made else rule.advice
    return found_in_text(context, rule, span, api=program.name, edits=edits, advice=advice)


def _for_pipeline(context: TextContext, rule: Rule[CommandOptions], pipeline: Span) -> Optional[str]:
    """What is written for a whole pipeline; None where nothing is."""
    if rule.fix == "none" or {*context.project.frameworks} - {TORCH}:
        return None
    written = context.index.lines.data[slice(*pipeline)].decode("utf-8", "replace")
    parts = _SILENCED.sub(" ", written).split("|")
    return rule.options.pipelines.get(" | ".join(" ".join(part.split()) for part in parts))


def find_bodies(context: TextContext, rules: list[Rule]) -> Iterator[Match]:
    """The first place in each such text at which a word of a rule stands; it is not migrated."""
    index = context.index
    for rule in rules:
        word = re.compile(rb"\b(?:%s)\b" % b"|".join(each.encode("utf-8") for each in rule.match))
        for start, end in index.content.bodies:
            found = word.search(index.data, start, end)
            if found is not None:
                api = found.group().decode("utf-8")
                yield found_in_text(context, rule, found.span(), api=api)
