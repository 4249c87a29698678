"""Kind ``setting``: what an option of a command, a variable, or a key of a configuration is set to.

Kind ``program-option``: what ``api_db`` knows of programs of others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Optional, get_args

from migrator.api_support.libraries import ProgramOption, program_options
from migrator.files.document import is_of_ci
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.context import Match, Said, TextContext, found_in_text
from migrator.matchers.packs import Options, Rule
from migrator.names.device_vocabulary import is_device_or_backend
from migrator.other_files.index import FILLED, Content, Kind, Setting, TextIndex
from migrator.project.offers import DEVICE_KEY, MEETS, VALUES
from migrator.project.project import Project

if TYPE_CHECKING:
    from migrator.project.programs import Programs, Taken, Vocabularies

_NUMBER = re.compile(r"(?<!\d)\d+\Z")
_BLANKS = re.compile(rb"(?:[ \t]|\\\r?\n)+")
_OPTION = re.compile(r"--?\w[\w.-]*")
_NUMBERS = re.compile(r"\d+(?:,\d+)*\Z")
# What Compose or OmegaConf takes where a variable is not set.
_OTHERWISE = re.compile(r"(\$\{(?:\w+:?-|oc\.env:\w+, ?))([\w:]+)\}")
# Hydra's list of files to put together: a value there is the name of a file.
_DEFAULTS = re.compile(r"defaults\.\d+\.")


class SettingOptions(Options):
    """``values``: what is written instead of a value; a ``*`` at the end is a number (``cuda:*: npu:*``).

    ``of``: options and positional arguments of commands, keys of configurations, variables that programs get
    and the cases of these. ``types``: the types of files, all without; ``programs``: only what these get;
    ``unless``: the values that are left; ``holding``: words of which a value holds one. Without ``values``
    all are reported; with patterns of values in ``reported`` only these. ``by_parser``: where a program of
    the project gets a value, or reads a variable, what it does with it decides, and no name. ``of_own``: what
    becomes of options that a parser of the project takes without a value: ``removed``, or ``left``, without a
    word. ``read_as_device``: only keys whose value the project's Python gives to a device. ``installing``:
    not of a command that installs other packages alone, from this index alone. ``only_ci``: only in files of
    CI systems. ``unless_adapted``: not where the result gets this module, by which a library finds NPUs.
    """

    values: dict[str, str] = field(default_factory=dict)
    of: tuple[str, ...] = ("option", "key")
    types: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    holding: tuple[str, ...] = ()
    of_own: dict[str, str] = field(default_factory=dict)
    by_parser: bool = False
    read_as_device: bool = False
    installing: str = ""
    only_ci: bool = False
    unless_adapted: str = ""


SettingRule = Rule[SettingOptions]


def find(context: TextContext, rules: list[SettingRule]) -> Iterator[Match]:
    """The values that a rule has another one for, or something to say of."""
    settings = context.index.content.settings
    called = (each for each in settings if each.name.endswith("._target_"))
    targets = {each.name[: -len("._target_")]: each.value for each in called}
    typed = [rule for rule in rules if context.index.type in (rule.options.types or (context.index.type,))]
    of = {kind: [rule for rule in typed if kind in rule.options.of] for kind in get_args(Kind)}
    for setting in settings:
        of_table = known_option(context.index, setting) is not None
        own_class = _own_class(context, targets, setting.name) if targets else ""
        for rule in of[setting.kind]:
            options, new = rule.options, new_value(rule.options.values, setting)
            if not _is_meant(context, options, setting, new):
                continue
            if of_table and (options.by_parser or setting.kind == "key"):
                continue  # the table of such programs decides
            if own_class and options.reported and not options.values:
                continue  # the rule is about a key of a library
            own = _taken(context, setting) if options.by_parser else None
            name = _without_items(setting.name) if setting.kind == "key" else setting.name
            fits = setting.kind != "argument" and name_fits(rule.match, name)
            is_one = fits or is_device_or_backend((setting.value or setting.begins).rstrip(":"))
            if not (fits if own is None else own.device and is_one):
                continue
            if options.read_as_device and not _is_read_as_device(context, setting, name, own_class):
                continue
            becomes = next((do for each, do in options.of_own.items() if name_fits([each], name)), "")
            flag = bool(becomes) and _is_own_flag(context, setting)
            if not flag or becomes != "left":
                about = _said(context, rule, setting, name, new, flag)
                about["safety"] = "safe" if own is not None and own.certain else ""
                if own is None and (other := _of_another(context, setting)):
                    left = N_("{message}; left unchanged: {name} is not a program of the project")
                    about["message"] = _(left, message=about["message"], name=other)
                    about |= {"edits": [], "severity": "info"}
                yield found_in_text(context, rule, setting.value_span or setting.name_span, **about)
            break


def _is_meant(context: TextContext, options: SettingOptions, setting: Setting, new: Optional[str]) -> bool:
    """Whether a rule is about the file, about what gets a setting, and about its value."""
    index, project, value = context.index, context.project, setting.value or setting.begins
    is_reported = any(fnmatchcase(value, one) for one in options.reported)
    if new is None and (options.reported or options.values) and not is_reported:
        return False
    holds = not options.holding or any(one in value for one in options.holding)
    if setting.value in options.unless or not holds:
        return False
    if options.installing and _installs_others(index, setting, options.installing):
        return False
    adapted = options.unless_adapted in project.added
    if adapted or (options.only_ci and not is_of_ci(index.name)):
        return False
    program = index.content.program_of(setting)
    if options.programs and (program is None or program.name not in options.programs):
        return False
    if setting.kind == "variable":
        # All variables of other types of files are for the program that is started.
        given = setting.exported or index.type not in ("shell", "makefile", "markdown", "rst")
        return given and not setting.reads
    if setting.kind != "key":
        return True
    if "option" not in options.of and program is not None and program.kind == "command" and program.name:
        return False  # make, cmake, docker build: whose device=cuda is another
    if is_value(project.programs, index, setting):
        return False
    programs = project.programs if setting.command is not None else None
    return not (_DEFAULTS.match(setting.name) or (programs and programs.is_choice(setting.name, value)))


def _installs_others(index: TextIndex, setting: Setting, pattern: str) -> bool:
    """Whether a command installs packages from one index alone, all of which are known and not meant."""
    from migrator.other_files.requirements import ONE_INDEX, requirements_of

    if setting.command is None or setting.name not in ONE_INDEX:
        return False
    words = index.content.commands[setting.command].words
    group = f"command {setting.command}"
    names = [each.name for each in requirements_of(index) if each.group == group]
    is_known = bool(names) and not any(word.text in (None, "-r", "--requirement") for word in words)
    return is_known and not any(fnmatchcase(name, pattern) for name in names)


def _said(
    context: TextContext, rule: SettingRule, setting: Setting, name: str, new: Optional[str], removed: bool
) -> Said:
    """The message for a setting whose value stays (None), becomes another one, or that is ``removed``."""
    span, value = setting.value_span, setting.value or setting.begins
    is_known = is_value(context.project.programs, context.index, setting) is not None
    fixed = span if new is not None and rule.fix != "none" and is_known else None
    about: Said = {"message": rule.message, "advice": "", "api": value if new else name}
    if new is not None:
        changed = _("on NPUs {name}: {value} is {new}", name=name, value=value, new=new)
        about["message"] = rule.message or changed
        about["advice"] = "" if fixed else _("Write {new}.", new=new)
    about["edits"] = [Edit(*fixed, new)] if fixed and new else []
    if removed:
        about["edits"] = _without(context.index, setting)
    return about


def known_option(index: TextIndex, setting: Setting) -> Optional[ProgramOption]:
    """What is known of an option or a key that a command gives to a program which is not the project's."""
    program = index.content.program_of(setting)
    if program is None or program.kind == "script":
        return None
    return program_options().get((program.name, setting.name))


def _without_items(name: str) -> str:
    """``train.device`` of ``train.device.0``, an item of its list."""
    parts = name.split(".")
    while len(parts) > 1 and parts[-1].isdecimal():
        parts.pop()
    return ".".join(parts)


def _is_read_as_device(context: TextContext, setting: Setting, name: str, own_class: str) -> bool:
    """Whether the project's Python gives what it looks up by a key to a device.

    Where other files are not read, only what stands there itself counts, not a variable that holds it.
    """
    last, programs, value = name.rpartition(".")[2], context.project.programs, setting.value
    if last.replace("-", "_").lower() in context.project.offers.names(DEVICE_KEY):
        return True
    file = context.index.name.rpartition("/")[2]
    if any(each.name == file and last in each.detail for each in context.project.offers.of(VALUES)):
        return True
    met = context.project.offers.elsewhere(MEETS, f"{own_class}({last})") if own_class else None
    if met is not None and (met.detail[1] or context.vocabularies()[value == "nccl"].says(last)):
        return True
    if programs is None or value is None:
        return False
    return "certain" in programs.looked_up(last, value == "nccl", False, context.vocabularies())


def _own_class(context: TextContext, targets: Mapping[str, Optional[str]], name: str) -> str:
    """What of the project Hydra calls with a key, or with one around it; empty where it is a library's."""
    above = name.rpartition(".")[0]
    if above and above not in targets:
        return _own_class(context, targets, above)
    target = targets.get(above) or ""
    return target if target and context.project.owns(target, context.index.name) else ""


def _taken(context: TextContext, setting: Setting) -> Optional[Taken]:
    index, programs = context.index, context.project.programs
    if setting.kind in ("variable", "case") and programs is not None:
        value = setting.value or setting.begins
        return programs.taken_variable(setting.name, value, context.vocabularies())
    if setting.kind not in ("option", "argument"):
        return None
    return taken_by_own(context.project, index.name, index.content, setting, context.vocabularies)


def is_value(programs: Optional[Programs], index: TextIndex, setting: Setting) -> Optional[bool]:
    """Whether a key of a command is the value of the option before it, such as ``--name device=cuda``.

    None where no parser of a program of the project tells.
    """
    content = index.content
    words = content.commands[setting.command].words if setting.command is not None else ()
    at = next((n for n, word in enumerate(words) if word.span[0] <= setting.name_span[0] < word.span[1]), 0)
    before, program = words[at - 1].text or "" if at else "", content.program_of(setting)
    if setting.kind != "key" or program is None or at <= program.words[0] or not _OPTION.fullmatch(before):
        return False
    parsers = programs.asked(index.name, content, setting) if programs is not None else None
    return None if parsers is None else any(option.takes == 1 for _, option in parsers.named(before))


def _of_another(context: TextContext, setting: Setting) -> str:
    """The program of another project that a document gives a setting to; empty where it may be this one's."""
    index, project = context.index, context.project
    program, programs = index.content.program_of(setting), project.programs
    if program is None or programs is None or index.type not in ("markdown", "rst") or not program.name:
        return ""
    is_own = FILLED in program.name or bool(programs.started(index.name, index.content, program))
    name, own = program.name.lower().replace("-", "_"), tuple(map(str.lower, project.main_packages))
    is_own = is_own or project.owns(program.name, index.name) or name.startswith(own)
    return "" if is_own else program.name


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
    parsers = project.programs.asked(file, content, setting) if project.programs is not None else None
    if parsers is None:
        return None
    from migrator.project.programs import taken

    return taken(parsers, content, setting, vocabularies())


def name_fits(patterns: Iterable[str], name: str) -> bool:
    """Whether a name ends as a pattern does: ``device`` fits ``--device`` and ``train.device``.

    A ``*`` stands for the rest of one part; case, and ``-`` or ``_``, make no difference.
    """
    have, *every = (each.lstrip("-").replace("-", "_").lower().split(".") for each in (name, *patterns))
    fitting = (wanted for wanted in every if len(wanted) <= len(have))
    return any(all(map(fnmatchcase, have[-len(wanted) :], wanted)) for wanted in fitting)


def new_value(values: Mapping[str, str], setting: Setting) -> Optional[str]:
    """What is written instead of a setting's value; None where that stays."""
    if setting.value is not None:
        return replaced(values, setting.value)
    kept = values.get(f"{setting.begins}*", "") if setting.begins else ""  # cuda:$RANK
    return kept.rstrip("*") if kept.endswith("*") else None


def replaced(values: Mapping[str, str], value: str) -> Optional[str]:
    """What a table has for a value; a ``*`` at the end of what it has is a number, which is kept.

    A ``#`` are numbers with commas between them.
    """
    if value in values:
        return values[value]
    if "#" in values and _NUMBERS.match(value):
        return values["#"].replace("#", value)
    if otherwise := _OTHERWISE.fullmatch(value):
        new = replaced(values, otherwise[2])
        return f"{otherwise[1]}{new}}}" if new is not None else None
    number = _NUMBER.search(value)
    kept = values.get(f"{value[: number.start()]}*") if number else None
    return kept.replace("*", number.group()) if number and kept is not None else None


def find_program_options(context: TextContext, rules: list[Rule]) -> Iterator[Match]:
    """The options of known programs that name CUDA."""
    index, programs, version = context.index, context.project.programs, context.version
    for setting in index.content.settings:
        option, value = known_option(index, setting), setting.value
        program = index.content.program_of(setting)
        if not value or option is None or program is None:
            continue
        new, span = replaced(option.values, value), setting.value_span
        if new in (None, value) or (programs and programs.started(index.name, index.content, program)):
            continue
        # What the sentences speak of; each takes what it names.
        about = {"name": program.name, "name2": setting.name, "value": value, "new": new}
        advice, edits = option.advice, list[Edit]()
        if not new:
            message = _("{name}: {name2} {value} is not supported on NPUs", **about)
        elif version.autoloads_backends or not option.needs_autoload:
            message = _("on NPUs {name} takes {new} for {name2}", **about)
            advice = "" if span else _("Write {new}.", new=new)
            edits = [Edit(*span, new)] if span else []
        else:
            said = N_("{name} does not import torch_npu, and torch {text} does not load it automatically")
            message = _(said, text=version.text, **about)
            advice = advice or _("Start it from a program that imports torch_npu, and write {new}.", new=new)
        where = span or setting.name_span
        yield found_in_text(context, rules[0], where, api=value, edits=edits, message=message, advice=advice)
