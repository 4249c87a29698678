"""The fixes of the mode keep-cuda: of each finding the one that is right on CUDA, NPUs and the CPU.

Rules propose what an NPU needs. Here that becomes what every device has (``torch.accelerator``, the module
``shared_device`` of the result), or stands beside the original, and the device chooses; else nothing is
changed, and the finding says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Optional

from migrator.core.fix_guards import enclosing_fstring, guarded, without_fix
from migrator.core.keep_cuda import module
from migrator.core.keep_cuda.guard import chosen_by_device, guarded_by_device
from migrator.core.keep_cuda.moves import device_type, moved
from migrator.core.keep_cuda.names import imported, renamed
from migrator.core.keep_cuda.strings import shared_string
from migrator.core.rules import SPECIFY_DEVICE
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match
from migrator.matchers.packs import Rule
from migrator.project.frameworks import TORCH

_DEFINITIONS = "cuda-definition"  # callers keep the name, so definitions do
_CANNOT = N_("it cannot be written for all devices there")
_NPU_WORD = re.compile(r"npu|hccl|ascend|cann|privateuse1|hf32", re.IGNORECASE)
_NPU_MODULE = re.compile(r"\b(?:torch_npu|torch|th)\.npu\.(?=\w)")
# What the module has for a name decides by what stands before it.
_PLACED = re.compile(
    r"(?P<asked>[=!]= *|\b(?:device_type|use_device)=)?"
    r"(?P<quote>[\"'])(?P<name>npu|hccl)(?P<rest>:\d+)?(?P=quote)"
)


def shared(
    context: FileContext, matches: list[Match], rules: Mapping[str, Rule], knows_npus: bool
) -> list[Match]:
    """The matches, with fixes that serve every device; ``knows_npus`` is what ``guarded`` takes."""
    if not module.import_statement(context):
        reason = _("a file of settings that no file imports takes no import of {name}", name=module.NAME)
        return [_left(item, reason) for item in matches]
    result = []
    for item in matches:
        rule = rules[item.finding.code]
        if item.finding.fix is None or rule.handler == _DEFINITIONS:
            result += [item] if item.finding.fix is None else []
        elif chosen_by_device(context.index, item.node, item.edits):
            changed = _shared(context, rule, item)
            result += [changed] if changed.finding.fix else []
        else:
            found = guarded(context, [item], knows_npus)[0]
            result.append(_shared(context, rule, found) if found.finding.fix else found)
    return result


def left_in_text(matches: list[Match]) -> list[Match]:
    """The matches of a file that is no Python: it stays, and what an NPU needs there is told."""
    reason = _("--keep-cuda changes Python only; on NPUs it has to be changed")
    return [_left(item, reason) for item in matches]


def _left(item: Match, reason: str) -> Match:
    """A match without its fix, with what to write in the file that is for machines with NPUs."""
    if not item.edits:
        return item
    left = without_fix(item, reason, "warning")
    written = next(filter(None, (edit.text.strip() for edit in item.edits)), "")
    if written:
        new = written.splitlines()[0]
        what = _("Keep a copy of the file for machines with NPUs, with {new} here.", new=new)
    else:
        what = _("Keep a copy of the file for machines with NPUs, without this.")
    advice = " ".join(filter(None, (what, left.finding.advice)))
    return left._replace(finding=left.finding._replace(advice=advice))


def _shared(context: FileContext, rule: Rule, item: Match) -> Match:
    if TORCH not in rule.framework:
        return without_fix(item, _(_CANNOT), "warning")  # the module is torch's
    edits = item.edits
    is_neutral = not any(_NPU_WORD.search(edit.text) for edit in edits)
    if (is_neutral and (rule.any_device or rule.kind == "name")) or rule.code == SPECIFY_DEVICE:
        return item._replace(needs_npu=False)
    is_import = isinstance(item.node, (ast.Import, ast.ImportFrom))
    if rule.kind == "name" and is_import:
        found = imported(context, item)
        if found is not None:
            return _with_edits(item, found, needs_module=False)
    elif rule.kind == "name":
        named = renamed(context, item)
        if named is not None:
            return _with_edits(item, named[0], named[1])
    found = _by_kind(context, rule, item)
    if found is None and not is_neutral and not is_import:
        found = _translated(edits)
    if found is None and enclosing_fstring(context.index, item.node) is None:
        found = guarded_by_device(context.index, item.node, edits)
    return without_fix(item, _(_CANNOT), "warning") if found is None else _with_edits(item, found, True)


def _by_kind(context: FileContext, rule: Rule, item: Match) -> Optional[list[Edit]]:
    if rule.kind == "string":
        return shared_string(context, rule, item)
    if rule.kind == "method" and isinstance(item.node, ast.Attribute):
        return moved(context, item.node)
    if rule.kind == "attribute" and isinstance(item.node, ast.Attribute) and item.node.attr == "is_cuda":
        return device_type(context, item.node)
    return None


def _translated(edits: Sequence[Edit]) -> Optional[list[Edit]]:
    """What rules write for NPUs in words that hold everywhere; None where some of it is an NPU's alone."""
    result = []
    for edit in edits:
        text = _PLACED.sub(_placed, _NPU_MODULE.sub(f"{module.NAME}.", edit.text))
        if _NPU_WORD.search(text):
            return None
        result.append(edit._replace(text=text))
    return result


def _placed(found: re.Match[str]) -> str:
    asked, name, rest = found["asked"] or "", found["name"], found["rest"] or ""
    if name == "hccl":
        return asked + (module.BACKEND_QUESTION if asked else module.BACKEND)
    member = module.QUESTION if asked else module.PLACE
    return f'{asked}f"{{{member}}}{rest}"' if rest else asked + member


def _with_edits(item: Match, edits: list[Edit], needs_module: bool) -> Match:
    fix = item.finding.fix
    assert fix is not None
    ordered = tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
    message = _("{message}; written for all devices", message=item.finding.message)
    finding = item.finding._replace(message=message, fix=fix._replace(edits=ordered))
    return item._replace(finding=finding, needs_npu=needs_module)
