"""Kind ``value``: what an option of a command or a key of a configuration is set to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Optional

from migrator.findings.finding import Edit
from migrator.matchers.context import Match
from migrator.matchers.options import Options
from migrator.matchers.other_context import TextContext, found_in_text
from migrator.matchers.packs import Rule
from migrator.other_files.index import Content, Setting
from migrator.project.project import Project

if TYPE_CHECKING:
    from migrator.project.programs import Taken, Vocabularies

_NUMBER = re.compile(r"(?<!\d)\d+\Z")


@dataclass(frozen=True)
class ValueOptions(Options):
    """``values``: what is written instead of a value; a ``*`` at the end is a number (``cuda:*: npu:*``).

    ``of``: options of commands, keys of configurations, variables that programs get. ``types``: the types of
    files, all without; ``programs``: only what these get; ``unless``: the values that are left. Without
    ``values`` all are reported, or those that hold the word ``holding``. ``by_parser``: where a program of
    the project gets an option, what its parser does with the value decides, and no name.
    """

    values: dict[str, str] = field(default_factory=dict)
    of: tuple[str, ...] = ("option", "key")
    types: tuple[str, ...] = ()
    by_parser: bool = False
    programs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    holding: str = ""


def find(context: TextContext, rules: list[Rule[ValueOptions]]) -> Iterator[Match]:
    """The values that a rule has another one for."""
    for setting in context.index.content.settings:
        for rule in rules:
            options = rule.options
            if setting.kind not in options.of or (options.types and context.index.type not in options.types):
                continue
            new = new_value(options.values, setting)
            if (new is None and options.values) or not _is_meant(context, options, setting):
                continue
            own = _taken(context, setting) if options.by_parser else None
            if not (name_fits(rule.match, setting.name) if own is None else own.device):
                continue
            fixed = new is not None and rule.fix != "none" and not _is_read(context, setting)
            span = setting.value_span if fixed else None
            yield found_in_text(
                context,
                rule,
                setting.value_span or setting.name_span,
                api=(setting.value or setting.begins) if new else setting.name,
                edits=[Edit(*span, new)] if span and new else (),
                message=rule.message or f"{setting.name}: {setting.value or setting.begins} is {new} on NPUs",
                advice="" if span or new is None else f"Write {new}.",
                safety="safe" if own is not None and own.certain else "",
            )
            break


def _is_meant(context: TextContext, options: ValueOptions, setting: Setting) -> bool:
    """Whether a rule is about the program that gets a setting, and about its value."""
    if setting.value in options.unless and setting.value is not None:
        return False
    if options.holding not in (setting.value or setting.begins):
        return False
    if setting.kind == "variable" and (setting.reads or not (setting.exported or _is_environment(context))):
        return False
    program = context.index.content.program_of(setting)
    return not options.programs or (program is not None and program.name in options.programs)


def _is_environment(context: TextContext) -> bool:
    """Whether all variables of a file are for the program that is started."""
    return context.index.type not in ("shell", "makefile")


def _is_read(context: TextContext, setting: Setting) -> bool:
    """Whether the script itself asks for a variable that it sets."""
    settings = context.index.content.settings if setting.kind == "variable" else ()
    return any(other.reads and other.name == setting.name for other in settings)


def _taken(context: TextContext, setting: Setting) -> Optional[Taken]:
    if setting.kind != "option" or context.vocabularies is None:
        return None
    index = context.index
    return taken_by_own(context.project, index.name, index.content, setting, context.vocabularies)


def taken_by_own(
    project: Project, file: str, content: Content, setting: Setting, vocabularies: Callable[[], Vocabularies]
) -> Optional[Taken]:
    """What a program of the project does with an option that a command of a file gives it.

    None where it starts none of the project's, and where nobody knows.
    """
    if project.programs is None:
        return None
    parsers = project.programs.asked(file, content, setting)
    if parsers is None:
        return None
    from migrator.project.programs import taken

    return taken(parsers, setting.name, setting.value or setting.begins, vocabularies())


def name_fits(patterns: Iterable[str], name: str) -> bool:
    """Whether a name ends as a pattern does: ``device`` fits ``--device`` and ``train.device``.

    A ``*`` stands for the rest of one part; case, and ``-`` or ``_``, make no difference.
    """
    have = _parts(name)
    every = (wanted for wanted in map(_parts, patterns) if len(wanted) <= len(have))
    return any(all(map(fnmatchcase, have[-len(wanted) :], wanted)) for wanted in every)


def _parts(name: str) -> list[str]:
    return name.lstrip("-").replace("-", "_").lower().split(".")


def new_value(values: Mapping[str, str], setting: Setting) -> Optional[str]:
    """What is written instead of a setting's value; None where that stays."""
    value = setting.value
    if value is None:
        kept = values.get(f"{setting.begins}*") if setting.begins else None  # cuda:$RANK
        return kept.rstrip("*") if kept else None
    return replaced(values, value)


def replaced(values: Mapping[str, str], value: str) -> Optional[str]:
    """What a table has for a value; a ``*`` at the end of what it has is a number, which is kept."""
    if value in values:
        return values[value]
    number = _NUMBER.search(value)
    kept = values.get(f"{value[: number.start()]}*") if number else None
    return kept.replace("*", number.group()) if number and kept else None
