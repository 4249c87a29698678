"""Kind ``value``: what an option of a command or a key of a configuration is set to.

Kind ``program-option``: what programs that are not the project's take for devices, by ``api_db``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Optional

from migrator.api_support.program_options import ProgramOption, look_up
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import Match, TextContext, found_in_text
from migrator.matchers.packs import Options, Rule
from migrator.other_files.index import Content, Setting, TextIndex
from migrator.project.project import Project

if TYPE_CHECKING:
    from migrator.project.programs import Taken, Vocabularies

_NUMBER = re.compile(r"(?<!\d)\d+\Z")
_BLANKS = re.compile(rb"(?:[ \t]|\\\r?\n)+")
_NUMBERS = re.compile(r"\d+(?:,\d+)*\Z")


@dataclass(frozen=True)
class ValueOptions(Options):
    """``values``: what is written instead of a value; a ``*`` at the end is a number (``cuda:*: npu:*``).

    ``of``: options and positional arguments of commands, keys of configurations, variables that programs
    get and the cases of these. ``types``: the types of files, all without; ``programs``: only what these
    get; ``unless``: the values that are left. Without ``values`` all are reported, or only those that are
    ``reported``, or that hold a word of ``holding``. ``by_parser``: where a program of the project gets a
    value, or reads a variable, what it does with it decides, and no name. ``of_own``: what becomes of options
    that a parser of the project takes without a value: ``removed``, or ``left``, without a word.
    ``unless_adapted``: as of the kind ``key``.
    """

    values: dict[str, str] = field(default_factory=dict)
    of: tuple[str, ...] = ("option", "key")
    types: tuple[str, ...] = ()
    by_parser: bool = False
    unless_adapted: bool = False
    programs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    holding: tuple[str, ...] = ()
    of_own: dict[str, str] = field(default_factory=dict)


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
            if options.by_parser and known_option(context.index, setting) is not None:
                continue  # the table of such programs decides
            own = _taken(context, setting) if options.by_parser else None
            fits = setting.kind != "argument" and name_fits(rule.match, setting.name)
            if not (fits if own is None else own.device):
                continue
            becomes = next((do for name, do in options.of_own.items() if name_fits([name], setting.name)), "")
            flag = bool(becomes) and _is_own_flag(context, setting)
            if flag and becomes == "left":
                break
            fixed = new is not None and rule.fix != "none"
            span = setting.value_span if fixed else None
            edits = [Edit(*span, new)] if span and new else []
            if flag:
                edits = _without(context.index, setting)
            yield found_in_text(
                context,
                rule,
                setting.value_span or setting.name_span,
                api=(setting.value or setting.begins) if new else setting.name,
                edits=edits,
                message=rule.message
                or _(
                    "{name}: {value} is {new} on NPUs",
                    name=setting.name,
                    value=setting.value or setting.begins,
                    new=new,
                ),
                advice="" if span or new is None else _("Write {new}.", new=new),
                safety="safe" if own is not None and own.certain else "",
            )
            break


def known_option(index: TextIndex, setting: Setting) -> Optional[ProgramOption]:
    """What is known of an option or a key that a command gives to a program which is not the project's."""
    program = index.content.program_of(setting)
    if program is None or program.kind == "script":
        return None
    return look_up(program.name, setting.name)


def _is_meant(context: TextContext, options: ValueOptions, setting: Setting) -> bool:
    """Whether a rule is about the program that gets a setting, and about its value."""
    if options.unless_adapted and context.project.lightning:
        return False
    if setting.value in options.unless and setting.value is not None:
        return False
    if options.reported and setting.value not in options.reported:
        return False
    value = setting.value or setting.begins
    if options.holding and not any(each in value for each in options.holding):
        return False
    # All variables of other types of files are for the program that is started.
    given = setting.exported or context.index.type not in ("shell", "makefile", "markdown", "rst")
    if setting.kind == "variable" and (setting.reads or not given):
        return False
    program = context.index.content.program_of(setting)
    return not options.programs or (program is not None and program.name in options.programs)


def _taken(context: TextContext, setting: Setting) -> Optional[Taken]:
    index, programs = context.index, context.project.programs
    if setting.kind in ("variable", "case") and programs is not None:
        value = setting.value or setting.begins
        return programs.taken_variable(setting.name, value, context.vocabularies())
    if setting.kind not in ("option", "argument"):
        return None
    return taken_by_own(context.project, index.name, index.content, setting, context.vocabularies)


def _is_own_flag(context: TextContext, setting: Setting) -> bool:
    """Whether an option is given to a program of the project, which takes it without a value."""
    programs = context.project.programs
    if programs is None or setting.kind != "option":
        return False
    parsers = programs.asked(context.index.name, context.index.content, setting)
    found = parsers.named(setting.name) if parsers is not None else []
    return bool(found) and all(option.takes == 0 for _, option in found)


def _without(index: TextIndex, setting: Setting) -> list[Edit]:
    """The edit that removes an option and the blanks before it; none where more than blanks is there."""
    words = index.content.commands[setting.command].words if setting.command is not None else ()
    at = next((at for at, word in enumerate(words) if word.span == setting.name_span), 0)
    if not at:
        return []
    end_before, (start, end) = words[at - 1].span[1], words[at].span
    return [Edit(end_before, end, "")] if _BLANKS.fullmatch(index.data[end_before:start]) else []


def taken_by_own(
    project: Project, file: str, content: Content, setting: Setting, vocabularies: Callable[[], Vocabularies]
) -> Optional[Taken]:
    """What a program of the project does with an option or an argument that a command of a file gives it.

    None where it starts none of the project's, and where nobody knows.
    """
    if project.programs is None:
        return None
    parsers = project.programs.asked(file, content, setting)
    if parsers is None:
        return None
    from migrator.project.programs import taken

    return taken(parsers, content, setting, vocabularies())


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
        return kept.rstrip("*") if kept and kept.endswith("*") else None
    return replaced(values, value)


def replaced(values: Mapping[str, str], value: str) -> Optional[str]:
    """What a table has for a value; a ``*`` at the end of what it has is a number, which is kept.

    A ``#`` are numbers with commas between them.
    """
    if value in values:
        return values[value]
    if "#" in values and _NUMBERS.match(value):
        return values["#"].replace("#", value)
    number = _NUMBER.search(value)
    kept = values.get(f"{value[: number.start()]}*") if number else None
    return kept.replace("*", number.group()) if number and kept is not None else None


def find_program_options(context: TextContext, rules: list[Rule]) -> Iterator[Match]:
    """The options of known programs that name CUDA."""
    for setting in context.index.content.settings:
        option = known_option(context.index, setting) if setting.value else None
        if option is not None and not _is_of_own_program(context, setting):
            new = replaced(option.values, str(setting.value))
            if new is not None and new != setting.value:
                yield _of_program(context, rules[0], setting, option, new)


def _is_of_own_program(context: TextContext, setting: Setting) -> bool:
    programs, content = context.project.programs, context.index.content
    program = content.program_of(setting)
    return bool(programs and program and programs.started(context.index.name, content, program))


def _of_program(context: TextContext, rule: Rule, setting: Setting, option: ProgramOption, new: str) -> Match:
    program = context.index.content.program_of(setting)
    name = program.name if program is not None else ""
    span, value = setting.value_span, str(setting.value)
    known = bool(new) and (context.version.autoloads_backends or not option.needs_autoload)
    # What the sentences speak of; each takes what it names.
    about = {"name": name, "name2": setting.name, "value": value, "new": new, "text": context.version.text}
    advice = option.advice
    if known:
        message = _("{name} takes {new} for {name2} on NPUs", **about)
        advice = "" if span else _("Write {new}.", new=new)
    elif new:
        message = _(
            "{name} does not import torch_npu, and torch {text} does not load it automatically", **about
        )
        advice = advice or _("Start it from a program that imports torch_npu, and write {new}.", new=new)
    else:
        message = _("{name}: {name2} {value} is not supported on NPUs", **about)
    edits = [Edit(*span, new)] if known and span else ()
    return found_in_text(
        context, rule, span or setting.name_span, api=value, edits=edits, message=message, advice=advice
    )
