"""``torch.set_default_tensor_type('torch.cuda.FloatTensor')`` has no NPU equivalent.

A default device and a default dtype stand in for it. What they do not reach is made, or moved, by itself: the
legacy constructor ``torch.Tensor(…)``, also where a library calls it to build a module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.npu_import import statement_separator
from migrator.matchers.packs import Options, Rule
from migrator.names.execution import in_other_branch
from migrator.names.index import ModuleIndex
from migrator.names.tree import FUNCTIONS, Statement, arguments_of, called_name, only_target, string_value
from migrator.names.values import CLASS, MODULE

_MOVES = frozenset({"to", "cuda", "npu", "cpu", "type", "type_as"})
_BRANCHES = (ast.If, ast.With, ast.Try)


@dataclass(frozen=True)
class TypeOptions(Options):
    """``dtypes``: torch's dtype for each tensor type, by its last name."""

    dtypes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Default:
    """What becomes the default type: ``device`` is source, ``dtype`` a name of torch's."""

    device: str
    dtype: str

    @property
    def is_cuda(self) -> bool:
        return self.device != '"cpu"'


def find(context: FileContext, rule: Rule[TypeOptions]) -> Iterator[Match]:
    """The call becomes ``set_default_device`` and ``set_default_dtype`` where torch has them.

    torch refuses ``torch.npu.FloatTensor`` here ("only floating-point types are supported as the default
    type", seen with torch_npu 2.13). A later call with a type of the CPU takes the device back, too.
    """
    index = context.index
    calls = [(call, api, _default(index, rule, call)) for call, api in context.calls_of(rule)]
    cuda = [call for call, _, default in calls if default is not None and default.is_cuda]
    # What an earlier pass wrote in their place.
    cuda += [call for call in index.calls if index.qualified_name(call.func) == "torch.set_default_device"]
    for call, api, default in calls:
        if default is None:
            if any("cuda" in index.segment(argument) for argument in call.args):
                yield found(context, rule, call, api=api, severity="error", claims=True)
        elif default.is_cuda or _takes_back(context, call, cuda):
            edits = _defaults(context, call, api, default)
            severity = "" if edits else "error" if default.is_cuda else "warning"
            yield found(context, rule, call, api=api, edits=edits, severity=severity, claims=True)


def _default(index: ModuleIndex, rule: Rule[TypeOptions], call: ast.Call) -> Optional[_Default]:
    """What a call makes the default; None where that is not seen."""
    arguments = arguments_of(call)
    if len(arguments) != 1:
        return None
    if not isinstance(arguments[0], ast.IfExp):
        return _of_type(index, rule, arguments[0])
    one, other = _of_type(index, rule, arguments[0].body), _of_type(index, rule, arguments[0].orelse)
    if one is None or other is None or one.dtype != other.dtype:
        return None
    return _Default(f"{one.device} if {index.segment(arguments[0].test)} else {other.device}", one.dtype)


def _of_type(index: ModuleIndex, rule: Rule[TypeOptions], node: ast.expr) -> Optional[_Default]:
    name = string_value(node) or index.qualified_name(node)
    module, _, last = name.rpartition(".")
    if last not in rule.options.dtypes or module not in ("torch", "torch.cuda"):
        return None
    return _Default('"npu"' if module == "torch.cuda" else '"cpu"', rule.options.dtypes[last])


def _takes_back(context: FileContext, call: ast.Call, cuda: list[ast.Call]) -> bool:
    """Whether a CUDA type may be the default by then: not where the other branch chooses it."""
    if not context.project.program.cuda_default:
        return False
    return not cuda or not all(in_other_branch(context.index, call, each) for each in cuda)


def _defaults(context: FileContext, call: ast.Call, api: str, default: _Default) -> list[Edit]:
    """The edit that writes both defaults; none where they cannot stand there."""
    index, statement = context.index, context.index.parent(call)
    base = index.segment(call.func)[: -len(api.rpartition(".")[2])]  # empty where it is imported by its name
    if not base or not isinstance(statement, ast.Expr) or not context.version.has_set_default_device:
        return []
    separator = statement_separator(index, statement)
    text = (
        f"{base}set_default_device({default.device}){separator}{base}set_default_dtype({base}{default.dtype})"
    )
    return [instead_of(index, call, text)]


def find_constructors(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``torch.Tensor(…)`` in a project that makes a CUDA type the default: it is moved."""
    index = context.index
    if not context.project.program.cuda_default or not context.version.has_set_default_device:
        return
    for call, api in context.calls_of(rule):
        if any(keyword.arg in ("device", None) for keyword in call.keywords) or _is_moved(index, call):
            continue
        end = index.end(call)
        yield found(context, rule, call, api=api, edits=[Edit(end, end, '.to("npu")')])


def find_modules(context: FileContext, rule: Rule[TypeOptions]) -> Iterator[Match]:
    """Modules that are built while a CUDA type is the default: they are moved as a whole."""
    index = context.index
    if not context.version.has_set_default_device:
        return
    known: set[int] = set()
    for call, _ in context.calls_of(rule):
        default = _default(index, rule, call)
        if default is None or not default.is_cuda:
            continue
        for statement in _until_taken_back(context, rule, call):
            built = _built(context, statement)
            if built is not None and id(built) not in known:
                known.add(id(built))
                end = index.end(built)
                device = default.device if " if " not in default.device else f"({default.device})"
                edits = [Edit(end, end, f".to({device.strip('()')})")]
                yield found(context, rule, built, api=index.segment(built.func), edits=edits)


def _until_taken_back(context: FileContext, rule: Rule[TypeOptions], call: ast.Call) -> Iterator[Statement]:
    """The statements behind a call, in its block and around it, until another one changes the default."""
    index = context.index
    resets = [each for each, _ in context.calls_of(rule) if each is not call]
    statement: Optional[ast.AST] = index.statement_of(call)
    while statement is not None:
        for following in index.behind(statement):
            if any(following in index.above(reset) for reset in resets):
                return
            yield from _assignments(following)
        around = index.parent(statement)
        statement = around if isinstance(around, _BRANCHES) else None


def _assignments(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A statement, or those inside it that are no other function's."""
    if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                yield node


def _built(context: FileContext, statement: Statement) -> Optional[ast.Call]:
    """The call that builds a module, where nothing moves it."""
    index = context.index
    target, value = only_target(statement), getattr(statement, "value", None)
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
        return None
    index.expand(statement)
    named = called_name(value)[:1].isupper() and ("model" in target.id.lower() or "net" in target.id.lower())
    if not named and context.value(value).kind not in (MODULE, CLASS):
        return None
    return None if any(_is_moved(index, use) for use in index.uses_of(target)) else value


def _is_moved(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a call of a method behind an expression moves it."""
    around = index.parent(node)
    while isinstance(around, ast.Attribute):
        call = index.call_of(around)
        if call is None or around.attr in _MOVES:
            return call is not None
        node, around = call, index.parent(call)
    return False
