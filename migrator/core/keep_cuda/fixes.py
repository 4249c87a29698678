"""The fixes of the mode keep-cuda: of each finding the one that is right on CUDA, NPUs and the CPU.

Rules propose what an NPU needs. Here that becomes what every device has (``torch.accelerator``, the module
``shared_device`` of the result), or stands beside the original, and the device chooses; else nothing is
changed, and the finding says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import cache

from migrator.api_support import npu_names, tables, torch_names
from migrator.core.fix_guards import enclosing_fstring, guarded, without_fix
from migrator.core.keep_cuda import BACKEND, BACKEND_QUESTION, NAME, ON_NPU, PLACE, QUESTION, place_of
from migrator.core.rules import SPECIFY_DEVICE
from migrator.files.source import newline_of
from migrator.findings.edits import extent, part_with
from migrator.findings.finding import Edit
from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match, instead_of, put_around
from migrator.matchers.kinds.method import HOLDS_COMPARISON, called_to, compared_type
from migrator.matchers.packs import Rule
from migrator.names.conditions import is_answered_before
from migrator.names.device_strings import written
from migrator.names.goes_to import LISTS, behind
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, called_name, hands_on, is_read, parse, root, walk
from migrator.names.what_is import is_class_of_torch
from migrator.project.frameworks import TORCH

_MOST_LINES = 4  # what is longer is not written twice
# Where a conditional expression needs no parentheses.
_OPEN = (ast.keyword, ast.Assign, ast.AnnAssign, ast.Return, ast.List, ast.Set, ast.Dict)
_DEFINITIONS = "cuda-definition"  # callers keep the name, so definitions do
_CANNOT = N_("cannot be written for all devices here")
_NPU_WORD = re.compile(r"npu|hccl|ascend|cann|privateuse1|hf32", re.IGNORECASE)
_NPU_MODULE = re.compile(r"\b(?:torch_npu|torch|th)\.npu\.(?=\w)")
# What the module has for a name decides by what stands before it.
_PLACED = re.compile(
    r"(?P<asked>[=!]= *|\b(?:device_type|use_device)=)?"
    r"(?P<quote>[\"'])(?P<name>npu|hccl)(?P<rest>:\d+)?(?P=quote)"
)
_CUDA, _NPU = "torch.cuda", "torch.npu"
_MODULE_AS = re.compile(r"\b(?:from torch_npu import npu|import torch_npu\.npu) as (?=\w)")
_FROM_MODULE = re.compile(r"\bfrom torch_npu\.npu import (?!\*)")
_PLAIN = re.compile(r"([rRuU]?)('''|\"\"\"|'|\")(.*)\2", re.DOTALL)
# Calls whose argument is looked for in the name of a device.
_TESTS = frozenset(
    "startswith endswith replace split rsplit removeprefix partition strip lstrip count index find"
    " match fullmatch search sub compile".split()
)


def shared(
    context: FileContext, matches: list[Match], rules: Mapping[str, Rule], knows_npus: bool
) -> list[Match]:
    """The matches, with fixes that serve every device; ``knows_npus`` is what ``guarded`` takes."""
    if not place_of(context).statement(NAME):
        reason = _("cannot import {name} into a settings file that no file imports", name=NAME)
        return [_left(item, reason) for item in matches]
    result = []
    for item in matches:
        rule = rules[item.finding.code]
        if item.finding.fix is None or rule.kind == _DEFINITIONS:
            result += [item] if item.finding.fix is None else []
        elif _chosen_by_device(context.index, item.node, item.edits):
            changed = _shared(context, rule, item)
            result += [changed] if changed.finding.fix else []
        else:
            found = guarded(context, [item], knows_npus)[0]
            result.append(_shared(context, rule, found) if found.finding.fix else found)
    return result


def left_in_text(matches: list[Match]) -> list[Match]:
    """The matches of a file that is not Python: it stays, and its findings list what an NPU needs there."""
    reason = _("--keep-cuda changes Python only; this line must change on NPUs")
    return [_left(item, reason) for item in matches]


def _left(item: Match, reason: str) -> Match:
    """A match without its fix, with what to write in the file that is for machines with NPUs."""
    if not item.edits:
        return item
    left = without_fix(item, reason, "warning")
    written = next(filter(None, (edit.text.strip() for edit in item.edits)), "")
    if written:
        new = written.splitlines()[0]
        what = _("Keep a second copy of the file for NPU machines, with {new} here.", new=new)
    else:
        what = _("Keep a second copy of the file for NPU machines, without this.")
    advice = " ".join(filter(None, (what, left.finding.advice)))
    return left._replace(finding=left.finding._replace(advice=advice))


def _shared(context: FileContext, rule: Rule, item: Match) -> Match:
    if TORCH not in rule.framework:
        return without_fix(item, _(_CANNOT), "warning")  # the module is torch's
    index, node, edits = context.index, item.node, item.edits
    is_neutral = not any(_NPU_WORD.search(edit.text) for edit in edits)
    if (is_neutral and (rule.any_device or rule.kind == "name")) or rule.code == SPECIFY_DEVICE:
        return item._replace(needs_npu=False)
    is_import, needs_module = isinstance(node, (ast.Import, ast.ImportFrom)), True
    found: list[Edit] | None = None
    if rule.kind == "name":
        shown = (_imported(context, item), False) if is_import else _renamed(context, item)
        found, needs_module = shown if shown[0] is not None else (None, True)
    elif rule.kind == "string":
        found = _shared_string(context, rule, item)
    elif rule.kind == "method" and isinstance(node, ast.Attribute):
        found = _moved(context, node)
    elif rule.kind == "attribute" and isinstance(node, ast.Attribute) and node.attr == "is_cuda":
        if not _is_own(context, node):  # as a question for the type of its device
            parent = index.parent(node)
            is_argument = isinstance(parent, ast.Call) and node in parent.args
            bare = isinstance(parent, HOLDS_COMPARISON) or is_argument
            found = compared_type(index, node, QUESTION, bare)
    if found is None and not is_neutral and not is_import:
        # In words that hold everywhere, where none of it is an NPU's alone.
        texts = [_PLACED.sub(_placed, _NPU_MODULE.sub(f"{NAME}.", edit.text)) for edit in edits]
        if not any(map(_NPU_WORD.search, texts)):
            found = [edit._replace(text=text) for edit, text in zip(edits, texts)]
    if found is None and enclosing_fstring(index, node) is None:
        found = _guarded_by_device(index, node, edits)
    fix = item.finding.fix
    if found is None or fix is None:
        return without_fix(item, _(_CANNOT), "warning")
    message = _("{message}; works on all devices", message=item.finding.message)
    finding = item.finding._replace(message=message, fix=fix._replace(edits=tuple(sorted(found))))
    return item._replace(finding=finding, needs_npu=needs_module)


def _placed(found: re.Match[str]) -> str:
    asked, name, rest = found["asked"] or "", found["name"], found["rest"] or ""
    if name == "hccl":
        return asked + (BACKEND_QUESTION if asked else BACKEND)
    member = QUESTION if asked else PLACE
    return f'{asked}f"{{{member}}}{rest}"' if rest else asked + member


# -- names of ``torch.cuda`` that torch.accelerator, or the result's module, has for every device


def _shared_name(api: str, context: FileContext) -> tuple[str, bool]:
    """The name in ``torch.accelerator`` of a CUDA name, and whether it raises without a device."""
    name, without_device = _names().get(api, ("", ""))
    there = name and torch_names.of_version(context.version.text).present(name)
    return (name, without_device == "raises") if there else ("", False)


@cache
def _names() -> dict[str, tuple[str, str]]:
    return {cuda: (shared, without) for cuda, shared, without, _ in tables.rows("shared_names")}


def _renamed(context: FileContext, item: Match) -> tuple[list[Edit] | None, bool]:
    """The edits for a use of a name, and whether they need the module; None where there is no such name."""
    index, api, node = context.index, item.finding.api, item.node
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
        return None, True
    if not _is_parallel(context, api):
        return None, True
    name, raises = _shared_name(api, context)
    first, call = root(node), index.call_of(node)
    is_torch = isinstance(first, ast.Name) and index.qualified_name(first) == "torch"
    # torch.accelerator takes a device without a keyword only.
    fits = call is not None and not call.keywords
    asks = lambda part: called_name(part) == "is_available"  # noqa: E731
    if name and is_torch and (not raises or is_answered_before(index, node, asks)) and fits:
        return [instead_of(index, node, index.segment(first) + name[len("torch") :])], False
    return [instead_of(index, node, NAME + api[len(_CUDA) :])], True


def _imported(context: FileContext, item: Match) -> list[Edit] | None:
    """The edits for an import of names; None where the module does not have all of them."""
    if not all(_is_parallel(context, api) for api in item.finding.api.split(", ")):
        return None
    edits, place = [], place_of(context)
    for edit in item.edits:
        text = _MODULE_AS.sub(f"{place.statement(NAME)} as ", edit.text)
        edits.append(edit._replace(text=_FROM_MODULE.sub(f"from {place.module(NAME)} import ", text)))
    return None if any("torch_npu" in edit.text for edit in edits) else edits


def _is_parallel(context: FileContext, api: str) -> bool:
    """Whether torch.npu has a name of torch.cuda under the same name."""
    known = npu_names.look_up(api, context.version) if f"{api}.".startswith(f"{_CUDA}.") else None
    return known is not None and known.npu == _NPU + api[len(_CUDA) :]


# -- strings that name a device or a backend, as expressions that give the one of the machine


def _shared_string(context: FileContext, rule: Rule, item: Match) -> list[Edit] | None:
    """The edits for a string; None where it cannot be such an expression."""
    index, node = context.index, item.node
    if not isinstance(node, (ast.Constant, ast.JoinedStr)):
        return None
    shape, text = rule.options.shape, written(index, node)
    if shape == "api-name":
        name, _ = _shared_name(text, context)
        return [instead_of(index, node, repr(name))] if name else None
    if shape not in ("device", "backend", "attribute", "tensor-type") or "NCCL" in text or "Nccl" in text:
        return None
    asks = shape in ("attribute", "tensor-type") or (":" in text and "nccl" in text) or _asks(index, node)
    members = {"cuda": QUESTION if asks else PLACE, "nccl": BACKEND_QUESTION if asks else BACKEND}
    if text in members and isinstance(node, ast.Constant):
        return [instead_of(index, node, members[text])]
    named = [members.get(index.data[edit.start : edit.end].decode("utf-8")) for edit in item.edits]
    if None in named:
        return None
    edits = [edit._replace(text=f"{{{name}}}") for edit, name in zip(item.edits, named)]
    if isinstance(node, ast.Constant):
        return _as_fstring(index, node, edits)
    return [_in_field(index, each) for each in edits]


def _in_field(index: ModuleIndex, edit: Edit) -> Edit:
    """The edit for a part of an f-string, which may be a string in a field already: ``f"{'cuda'}:{i}"``."""
    start, end = edit.start - 1, edit.end + 1
    opens = index.data[start - 1 : edit.start] in (b"{'", b'{"')
    is_string = opens and index.data[start] == index.data[edit.end]
    return Edit(start, end, edit.text[1:-1]) if is_string else edit


def _as_fstring(index: ModuleIndex, node: ast.Constant, edits: list[Edit]) -> list[Edit] | None:
    plain = _PLAIN.fullmatch(index.segment(node))
    if plain is None or plain[2] in plain[3] or type(index.parent(node)).__name__ == "MatchValue":
        return None
    start = index.start(node) + len((plain[1] + plain[2]).encode("utf-8"))
    body, position = "", start
    for edit in edits:
        if edit.start < position:
            return None
        body += _doubled(index.data[position : edit.start]) + edit.text
        position = edit.end
    body += _doubled(index.data[position : start + len(plain[3].encode("utf-8"))])
    prefix = "f" + plain[1].lower().replace("u", "")
    return [instead_of(index, node, f"{prefix}{plain[2]}{body}{plain[2]}")]


def _doubled(data: bytes) -> str:
    return data.decode("utf-8").replace("{", "{{").replace("}", "}}")


def _asks(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a string is compared with the name of a device, and puts nothing there."""
    sink = behind(index, node, LISTS)
    if sink.kind == "argument":
        return sink.name == "choices" or (sink.place >= 0 and called_name(sink.holder) in _TESTS)
    return sink.kind in ("compared", "key", "look-up", "indexed", "case")


# -- ``.cuda()`` and ``.is_cuda`` of tensors and modules


def _moved(context: FileContext, node: ast.Attribute) -> list[Edit] | None:
    """``x.cuda(1)`` as ``x.to(…)``; None where the method is no call, or a class's, which takes the value."""
    index = context.index
    call = index.call_of(node)
    if call is None or node.attr != "cuda" or hands_on(call):
        return None
    name = index.qualified_name(node.value)
    if isinstance(index.definition(node.value), ast.ClassDef) or is_class_of_torch(name):
        return None
    # A value may have a method of the program's own, or be a storage, of which ``to`` is another.
    lambdas = (up for up in index.above(node) if isinstance(up, ast.Lambda))
    names = {argument.arg for each in lambdas for argument in each.args.args}
    if _is_own(context, node) or (isinstance(node.value, ast.Name) and node.value.id in names):
        start, end = index.span(node.value)
        opening = index.data.index(b"(", index.end(node)) + 1
        between = ", " if call.args or call.keywords else ""
        return [Edit(start, start, f"{NAME}.move("), Edit(end, opening, between)]
    device = argument_of(call, "device", 0)
    given = [] if device is None else put_around(index, device, f"{NAME}.at(", ")")
    return called_to(index, node, call, PLACE, given)


def _is_own(context: FileContext, node: ast.Attribute) -> bool:
    """Whether a class of the project has an answer of its own."""
    return any(node.attr in facts.methods for facts in context.project.classes)


# -- what cannot be shared stands beside what CUDA has, and the device chooses


def _guarded_by_device(index: ModuleIndex, node: ast.AST, edits: Sequence[Edit]) -> list[Edit] | None:
    """The edits that make some others on NPUs only; None where code cannot be written twice there."""
    statement = index.statement_of(node) if hasattr(node, "lineno") else None
    if not isinstance(statement, ast.stmt) or _chosen_by_device(index, node, edits):
        return None
    start, end = extent(edits)
    expression = _smallest(index, statement, start, end)
    if expression is not None:
        conditional = _conditional(index, expression, edits)
        if conditional or not isinstance(index.parent(expression), ast.Expr):
            return conditional
    if hasattr(statement, "body") or hasattr(statement, "cases"):
        return None
    return _branches(index, statement, edits, start, end)


def _chosen_by_device(index: ModuleIndex, node: ast.AST, edits: Sequence[Edit]) -> bool:
    """Whether the device decides already whether a node runs, or what stands where the edits are."""
    if not hasattr(node, "lineno"):
        return False
    start, end = extent(edits)
    every = (each for each in walk(index.statement_of(node)) if isinstance(each, ast.IfExp))
    inside = (each for each in every if index.start(each) <= end and start <= index.end(each))
    around = (up for up in index.above(node) if isinstance(up, (ast.If, ast.IfExp)))
    return any(ON_NPU in index.segment(each.test) for each in (*around, *inside))


def _smallest(index: ModuleIndex, statement: ast.stmt, start: int, end: int) -> ast.expr | None:
    """The smallest expression around a place that can be another expression."""
    best: ast.expr | None = None
    for node in walk(statement):
        if not isinstance(node, ast.expr) or not _may_be_conditional(index, node):
            continue
        first, last = index.span(node)
        inside = first < start and end < last if start == end else first <= start and end <= last
        if inside and (best is None or last - first <= index.end(best) - index.start(best)):
            best = node
    return best


def _may_be_conditional(index: ModuleIndex, node: ast.expr) -> bool:
    if isinstance(node, (ast.Starred, ast.Slice, ast.FormattedValue)) or not is_read(node):
        return False
    if index.call_of(node) and not isinstance(root(node), ast.Name):
        return False  # the method of a value goes with its call
    parent = index.parent(node)
    return not isinstance(parent, ast.JoinedStr) and type(parent).__name__ != "MatchValue"


def _conditional(index: ModuleIndex, node: ast.expr, edits: Sequence[Edit]) -> list[Edit] | None:
    old = index.segment(node)
    if old.count("\n") >= _MOST_LINES:
        return None
    new = part_with(index.data, index.span(node), edits)
    if not isinstance(node, (ast.Constant, ast.JoinedStr)):
        new = new.replace("torch_npu.", f"{NAME}.torch_npu.")
    try:
        parse(f"({new})")
    except SyntaxError:
        return None
    text = f"{new} if {ON_NPU} else {old}"
    parent = index.parent(node)
    is_open = isinstance(parent, _OPEN) or (isinstance(parent, ast.Call) and node in parent.args)
    is_open = is_open or (isinstance(parent, ast.Subscript) and node is parent.slice)
    return [instead_of(index, node, text if is_open else f"({text})")]


def _branches(
    index: ModuleIndex, statement: ast.stmt, edits: Sequence[Edit], start: int, end: int
) -> list[Edit] | None:
    first, last = index.span(statement)
    before, behind = (part.decode("utf-8") for part in index.lines.beside((first, last)))
    if before.strip() or behind.split("#")[0].strip():
        return None  # other code stands on its lines
    old, newline = index.segment(statement), newline_of(index.text)
    if old.count("\n") >= _MOST_LINES:
        return None
    if start >= first and end <= last:
        new = part_with(index.data, index.span(statement), edits)
    elif len(edits) == 1 and start <= first and last <= end:
        new = edits[0].text
    else:
        return None
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        new = new.replace("torch_npu.", f"{NAME}.torch_npu.")
    inner = f"{newline}{before}    "
    old = old.replace(newline + before, inner)
    new = new.strip().replace(newline + before, inner)
    if new in ("", "pass"):
        return [Edit(first, last, f"if not {ON_NPU}:{inner}{old}")]
    return [Edit(first, last, f"if {ON_NPU}:{inner}{new}{newline}{before}else:{inner}{old}")]
