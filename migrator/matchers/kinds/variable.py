"""Kind ``variable``: environment variables of CUDA and NCCL in scripts and configurations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from migrator.api_support import env_vars
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import Match, TextContext, found_in_text
from migrator.matchers.packs import Options, Rule
from migrator.other_files.index import Setting


@dataclass(frozen=True)
class VariableOptions(Options):
    """``rename`` for variables that an NPU has with the value that is set; ``report`` for the others."""

    verdict: Literal["rename", "report"] = "rename"


def find(context: TextContext, rules: list[Rule[VariableOptions]]) -> Iterator[Match]:
    """The variables that are set or asked for."""
    by_verdict: dict[str, Rule] = {rule.options.verdict: rule for rule in reversed(rules)}
    settings = context.index.content.settings
    # What keeps its old name where it is set, is asked for by it.
    kept = {each.name for each in settings if not each.reads and each.kind == "variable" and _stays(each)}
    for setting in settings:
        known = env_vars.look_up(setting.name) if setting.kind == "variable" else None
        if known is None or known.npu == known.name:
            continue
        rename = _renames(known, setting) and not (setting.reads and setting.name in kept)
        rule = by_verdict.get("rename" if rename else "report")
        if rule is not None:
            yield found_in_text(
                context,
                rule,
                setting.name_span,
                api=known.name,
                edits=[Edit(*setting.name_span, known.npu)] if rename else (),
                message=_message(known, setting, rename),
                advice="" if rename else known.advice,
                severity="info" if not known.npu else "",
            )


def _stays(setting: Setting) -> bool:
    known = env_vars.look_up(setting.name)
    return known is not None and not _renames(known, setting)


def _renames(known: env_vars.EnvVar, setting: Setting) -> bool:
    """Whether the NPU's variable takes what stands there; what only a shell knows is taken to be right."""
    if not known.npu:
        return False
    if setting.begins:
        return env_vars.carries_over(known, setting.begins)
    if setting.reads or not setting.value:
        return known.keeps_values
    return env_vars.carries_over(known, setting.value)


def _message(known: env_vars.EnvVar, setting: Setting, rename: bool) -> str:
    if rename or not known.npu:
        return known.on_npus()
    if known.same_values:
        return known.refuses(setting.value)
    return _("{name} is {npu} on NPUs, with other values", name=known.name, npu=known.npu)
