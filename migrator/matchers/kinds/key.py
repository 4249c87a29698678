"""Kind ``key``: what a key of a configuration is set to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Optional

from migrator.files.file_types import is_of_ci
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import Match, TextContext, found_in_text
from migrator.matchers.kinds.value import known_option, name_fits, replaced
from migrator.matchers.packs import Options, Rule
from migrator.other_files.index import Setting

# What Compose or OmegaConf takes where a variable is not set.
_OTHERWISE = re.compile(r"(\$\{(?:\w+:?-|oc\.env:\w+, ?))([\w:]+)\}")
# Hydra's list of files to put together: a value there is the name of a file.
_DEFAULTS = re.compile(r"defaults\.\d+\.")


@dataclass(frozen=True)
class KeyOptions(Options):
    """``values``: what is written instead of a value, as of the kind ``value`` (``cuda:*: npu:*``).

    ``reported``: patterns of values that are only reported. ``types``: the types of files, all without.
    ``read_as_device``: of the keys that fit, those whose value goes into a device in the project's Python.
    ``only_ci``: only in files that say what a CI system does. ``unless_adapted``: not where the result gets
    the module by which Lightning finds NPUs.
    """

    values: dict[str, str] = field(default_factory=dict)
    reported: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    read_as_device: bool = False
    only_ci: bool = False
    unless_adapted: bool = False


def find(context: TextContext, rules: list[Rule[KeyOptions]]) -> Iterator[Match]:
    """The keys that a rule has another value for, or something to say of."""
    for setting in context.index.content.settings:
        if setting.kind != "key" or setting.value is None or _DEFAULTS.match(setting.name):
            continue
        if known_option(context.index, setting) is not None:
            continue
        for rule in rules:
            new = _new_value(rule.options, setting.value)
            if new is None and not any(fnmatchcase(setting.value, one) for one in rule.options.reported):
                continue
            if _fits(context, rule, setting):
                yield _found(context, rule, setting, new)
                break


def _fits(context: TextContext, rule: Rule[KeyOptions], setting: Setting) -> bool:
    options = rule.options
    if options.types and context.index.type not in options.types:
        return False
    if options.unless_adapted and context.project.lightning:
        return False
    if options.only_ci and not is_of_ci(context.index.name):
        return False
    program = context.index.content.program_of(setting)
    if program is not None and program.kind == "command" and program.name:
        return False  # make, cmake, docker build: whose device=cuda is another
    name, programs = _without_items(setting.name), context.project.programs
    if setting.command is not None and programs and programs.is_choice(setting.name, setting.value or ""):
        return False
    if options.read_as_device and not _is_read_as_device(context, setting):
        return False
    return name_fits(rule.match, name)


def _is_read_as_device(context: TextContext, setting: Setting) -> bool:
    """Whether the project's Python gives what it looks up by a key to a device.

    Where other files are not read, only what stands there itself counts, not a variable that holds it.
    """
    name = _without_items(setting.name).rpartition(".")[2]
    if name.replace("-", "_").lower() in context.project.program.device_keys:
        return True
    programs, value = context.project.programs, setting.value
    if programs is None or value is None:
        return False
    return "certain" in programs.looked_up(name, value == "nccl", False, context.vocabularies())


def _found(context: TextContext, rule: Rule[KeyOptions], setting: Setting, new: Optional[str]) -> Match:
    span = setting.value_span
    name = _without_items(setting.name)
    if new is None:
        return found_in_text(context, rule, span or setting.name_span, api=name)
    edits = [Edit(*span, new)] if span else ()
    return found_in_text(
        context,
        rule,
        span or setting.name_span,
        api=str(setting.value),
        edits=edits,
        message=_("{name}: {value} is {new} on NPUs", name=name, value=setting.value, new=new),
        advice="" if span else _("Write {new}.", new=new),
    )


def _without_items(name: str) -> str:
    """A name without the numbers of items at its end."""
    list_, _, item = name.rpartition(".")
    while item.isdecimal():
        name = list_
        list_, _, item = name.rpartition(".")
    return name


def _new_value(options: KeyOptions, value: str) -> Optional[str]:
    otherwise = _OTHERWISE.fullmatch(value)
    if otherwise:
        new = _new_value(options, otherwise[2])
        return f"{otherwise[1]}{new}}}" if new is not None else None
    return replaced(options.values, value)
