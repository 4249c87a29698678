"""Kind ``program-option``: what programs that are not the project's take for devices, by ``api_db``."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.api_support.program_options import ProgramOption
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import Match
from migrator.matchers.kinds.value import known_option, replaced
from migrator.matchers.options import Options
from migrator.matchers.other_context import TextContext, found_in_text
from migrator.matchers.packs import Rule
from migrator.other_files.index import Setting


def find(context: TextContext, rules: list[Rule[Options]]) -> Iterator[Match]:
    """The options of known programs that name CUDA."""
    for setting in context.index.content.settings:
        option = known_option(context.index, setting) if setting.value else None
        if option is not None and not _is_own(context, setting):
            new = replaced(option.values, str(setting.value))
            if new is not None and new != setting.value:
                yield _found(context, rules[0], setting, option, new)


def _is_own(context: TextContext, setting: Setting) -> bool:
    programs, content = context.project.programs, context.index.content
    program = content.program_of(setting)
    return bool(programs and program and programs.started(context.index.name, content, program))


def _found(
    context: TextContext, rule: Rule[Options], setting: Setting, option: ProgramOption, new: str
) -> Match:
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
