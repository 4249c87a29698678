"""Fixes that are not made although a rule matched, and why; findings that are less grave at their place.

A question for CUDA that keeps an NPU from CUDA operators stays as it is: it takes the other way. A blocker
surely stops the program: a rule says what stops it, here the place is judged, and whether a program comes
there.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from migrator.files.document import is_of_ci
from migrator.findings.edits import extent
from migrator.findings.finding import Severity
from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match, TextContext
from migrator.names.conditions import (
    IMPORT_ERRORS,
    QUESTIONS,
    avoids_operators,
    catching,
    choices,
    chooses_for_npus,
    guards_cuda_build,
    has_npu_branch,
    is_caught,
    is_flag_for_nvidia,
    is_for_cuda_builds,
    is_inside,
    knows_npus,
    only_from,
    operator_uses,
    patches_cuda,
    surely_runs,
)
from migrator.names.goes_to import goes_to, taken_by
from migrator.names.index import ModuleIndex

_OF_CUDA = ("cuda.", "cudart.", "cupy.", "numba.cuda.", "pycuda.")
_WITHOUT_NPUS = ("ctranslate2.", "faster_whisper.")  # they take "cuda" and "cpu"
_BRANCH = N_("the code already has a branch for NPUs")
_TWIN = N_("the project has a separate file for NPUs")
_NAMED = N_("the name of the file refers to NPUs")
_QUOTE = r"[fFrRuUbB]*(\"\"\"|'''|\"|')"
_OPERATOR_USE, _OPERATOR_BUILD = "NPU653", "NPU651"
_IMPORTS = (ast.Import, ast.ImportFrom)
# What a call raises that an NPU does not know, and a program that is not there.
_RAISED = ("AttributeError", "RuntimeError", "NotImplementedError", "OSError", "FileNotFoundError")


def guarded(context: FileContext, matches: list[Match], aware: bool) -> list[Match]:
    """The matches, with the fixes taken away where they would do harm.

    ``aware``: the input speaks of NPUs, so it may have cases of its own.
    """
    index, has_twin = context.index, context.name in context.project.twins
    result = []
    for item in matches:
        reason = _(_TWIN) if has_twin else ""
        if not has_twin and (item.finding.fix or isinstance(item.node, _IMPORTS)):
            reason = _reason(index, item, aware) or _taker(context, item.node)
            reason = reason or (_(_TWIN) if _asks_project(context, item.node) else "")
            by_author = not (item.finding.fix or item.finding.status) and knows_npus(context.name)
            reason = reason or (_(_NAMED) if by_author else "")
        elif not reason and item.finding.severity != "info" and aware:
            reason = _(_BRANCH) if has_npu_branch(index, item.node) else ""
        result.append(without_fix(item, reason) if reason else _with_fitting_quotes(index, item))
    return result


def guarded_text(context: TextContext, matches: list[Match]) -> list[Match]:
    """The matches in a file that is not Python, without fixes where the project has such a file for NPUs.

    A CI system runs code outside the program, and the author of a file named after NPUs chose its values:
    what no fix changes there is an info.
    """
    name = context.index.name
    if name in context.project.twins:
        return [without_fix(item, _(_TWIN)) for item in matches]
    if is_of_ci(name):
        return [item._replace(finding=item.finding._replace(severity="info")) for item in matches]
    for_npus = knows_npus(name)
    return [item if item.finding.fix or not for_npus else without_fix(item, _(_NAMED)) for item in matches]


def without_fix(item: Match, reason: str, severity: Severity = "info") -> Match:
    """The match as a report only, and why."""
    message = _("{message}; left unchanged: {reason}", message=item.finding.message, reason=reason)
    message = message if item.finding.fix else f"{item.finding.message}; {reason}"
    return item._replace(finding=item.finding._replace(fix=None, severity=severity, message=message))


def _reason(index: ModuleIndex, item: Match, aware: bool) -> str:
    if aware and (has_npu_branch(index, item.node) or patches_cuda(index, item.node)):
        return _(_BRANCH)
    is_call = aware and isinstance(item.node, ast.Call)
    if is_call and chooses_for_npus(index, item.node, *extent(item.edits)):
        return _(_BRANCH)
    if isinstance(item.node, (ast.Constant, ast.JoinedStr)) and is_flag_for_nvidia(index, item.node):
        return _("the name of the result refers to NVIDIA GPUs")
    return _("it decides whether CUDA sources are compiled") if guards_cuda_build(index, item.node) else ""


def _asks_project(context: FileContext, node: ast.AST) -> bool:
    """Whether a project with files for NPUs compares its own word: ``get_accelerator().device_name()``."""
    compared, project = context.index.parent(node), context.project
    sides = [compared.left, *compared.comparators] if isinstance(compared, ast.Compare) else []
    asked = next((each for each in sides if each is not node), None) if project.twins else None
    while isinstance(asked, (ast.Attribute, ast.Call)):
        name = context.index.qualified_name(asked.func) if isinstance(asked, ast.Call) else ""
        if name and (name.startswith(".") or project.owns(name, context.name)):
            return True
        asked = asked.func if isinstance(asked, ast.Call) else asked.value
    return False


def _taker(context: FileContext, node: ast.AST) -> str:
    """That a value is handed to a library that is CUDA's, which has no use for an NPU's; empty where not."""
    index = context.index
    for child, parent in index.way_up(node):
        if isinstance(child, ast.IfExp):  # device = "cuda" if torch.cuda.is_available() else "cpu"
            takers = [getattr(sink.holder, "func", sink.holder) for sink in goes_to(index, child)]
            called = [index.qualified_name(each) for each in takers if isinstance(each, ast.expr)]
            if called and all(each.startswith(_WITHOUT_NPUS) for each in called):
                return _("it is passed to {name}, which does not support NPUs", name=called[0])
        if isinstance(parent, (ast.stmt, ast.Lambda)):
            return ""
        if isinstance(parent, ast.Call) and child is not parent.func:
            name = index.qualified_name(parent.func)
            if name.startswith(_OF_CUDA) and not context.project.owns(name, context.name):
                return _("it is passed to {name}, which supports CUDA only", name=name)
    return ""


def _with_fitting_quotes(index: ModuleIndex, item: Match) -> Match:
    """The fix with quotes that may stand inside the f-string that holds it.

    Before Python 3.12 a field cannot use the quotes of its f-string.
    """
    fix = item.finding.fix
    if fix is None or not any('"' in edit.text for edit in fix.edits):
        return item
    outer = enclosing_fstring(index, item.node)
    quote = re.match(_QUOTE, index.segment(outer)) if outer is not None else None
    if quote is None or not quote[1].startswith('"'):
        return item
    edits = tuple(edit._replace(text=edit.text.replace('"', "'")) for edit in fix.edits)
    return item._replace(finding=item.finding._replace(fix=fix._replace(edits=edits)))


def enclosing_fstring(index: ModuleIndex, node: ast.AST) -> ast.JoinedStr | None:
    """The outermost f-string around a node, None where there is none."""
    outer = None
    for parent in index.above(node):
        if isinstance(parent, ast.stmt):
            break
        outer = parent if isinstance(parent, ast.JoinedStr) else outer
    return outer


def kept(index: ModuleIndex, matches: list[Match]) -> list[Match]:
    """The matches, without the fixes of questions for CUDA that keep an NPU from CUDA operators.

    Uses of operators behind them are less grave.
    """
    used = [item for item in matches if item.finding.code == _OPERATOR_USE]
    operators = operator_uses(index, [item.node for item in used]) if used else set()
    fixed = [item.node for item in matches if item.finding.fix] if operators else []
    asking = {node for node in fixed if avoids_operators(choices(index, node), operators)}
    # A question for any device that is also what chooses one: its way has other places that change.
    several = (node for node in asking if getattr(node, "attr", "") in QUESTIONS)
    asking -= {node for node in several if any(is_inside(index, it, _skipped(index, node)) for it in fixed)}
    if not asking:
        return matches
    asking |= set(_beside(index, asking, fixed))
    skipped = [each for node in asking for each in _skipped(index, node)]
    built = (item for item in matches if item.finding.code == _OPERATOR_BUILD)
    avoided = {id(item) for item in (*used, *built) if only_from(index, item.node, skipped)}
    all_avoided = all(id(item) in avoided for item in used if not isinstance(item.node, _IMPORTS))
    result = []
    for item in matches:
        if item.node in asking and item.finding.fix:
            item = without_fix(item, _("it selects CUDA operators, and NPUs take the other branch"))
        elif id(item) in avoided:
            item = _less(item, "info")
        elif all_avoided and item.finding.code == _OPERATOR_USE and catching(index, item.node, IMPORT_ERRORS):
            item = _less(item, "warning")
        result.append(item)
    return result


def _beside(index: ModuleIndex, asking: set[ast.AST], fixed: list[ast.AST]) -> Iterator[ast.AST]:
    """Other questions for the type of a device in the same classes, on whose ways nothing else changes.

    They may speak of what the operators have made.
    """
    owners = {index.class_of(node) for node in asking if isinstance(node, ast.Constant)} - {None}
    for node in fixed:
        sink = taken_by(index, node)
        if sink.kind == "compared" and index.class_of(node) in owners:
            ways = _skipped(index, node)
            if not any(each is not node and is_inside(index, each, ways) for each in fixed):
                yield node


def _less(item: Match, severity: Severity) -> Match:
    message = _("{message}; NPUs take the other branch", message=item.finding.message)
    return item._replace(finding=item.finding._replace(severity=severity, message=message))


def _skipped(index: ModuleIndex, node: ast.AST) -> list[ast.AST]:
    return [each for choice in choices(index, node) for each in choice.skipped]


def judged(
    index: ModuleIndex, matches: list[Match], way: Callable[[], str] = lambda: "program"
) -> list[Match]:
    """The matches, with those blockers made less whose place is not sure to run, or to stop anything.

    ``way`` says how a program that can be started comes to the file.
    """
    result = []
    for item in matches:
        finding = item.finding
        # On an NPU torch.version.cuda is None.
        stops = finding.severity in ("blocker", "error") and not finding.fix
        if stops and is_for_cuda_builds(index, item.node):
            message = _("{message}; only a CUDA build of torch reaches this line", message=finding.message)
            finding = finding._replace(severity="info", message=message)
        if finding.severity == "blocker":
            surely = surely_runs(index, item.node, way() != "import")
            if surely and not way():
                said = N_("{message}; no program that the launcher can start reaches this line")
                finding = finding._replace(message=_(said, message=finding.message))
            if not surely or way() not in ("program", "import"):
                # What catches the error of an import, the rules of imports look at.
                caught = is_caught(index, item.node, _RAISED) and not isinstance(item.node, _IMPORTS)
                finding = finding._replace(severity="warning" if caught else "error")
        result.append(item._replace(finding=finding))
    return result
