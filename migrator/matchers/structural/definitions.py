"""What a project defines for CUDA: the default tensor type, and methods of its classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field
from itertools import chain

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.npu_import import statement_separator
from migrator.matchers.packs import Options, Rule
from migrator.names.conditions import in_other_branch
from migrator.names.index import ModuleIndex
from migrator.names.made_from import given, made_from, parameter_of
from migrator.names.tree import FUNCTIONS, arguments_of, called_name, only_target, string_value, walk
from migrator.names.what_is import CLASS, MODULE
from migrator.project.offers import CUDA_DEFAULT, LIBRARY

_MOVES = frozenset({"to", "cuda", "npu", "cpu", "type", "type_as"})
_CPU = '"cpu"'
_BRANCHES = (ast.If, ast.With, ast.Try)


class TypeOptions(Options):
    """``dtypes``: torch's dtype for each tensor type, by its last name.

    ``split``: packages whose modules put tensors together that are made by ``torch.Tensor`` and by functions:
    while they are built, a default device would leave the first ones on the CPU.
    """

    dtypes: dict[str, str] = field(default_factory=dict)
    split: tuple[str, ...] = ()


def find_default_type(context: FileContext, rule: Rule[TypeOptions]) -> Iterator[Match]:
    """The call becomes ``set_default_device`` and ``set_default_dtype`` where torch has them.

    torch refuses ``torch.npu.FloatTensor`` here ("only floating-point types are supported as the default
    type", seen with torch_npu 2.13). A later call with a type of the CPU takes the device back, too.
    """
    index = context.index
    calls = [(call, api, _default(index, rule, call)) for call, api in context.calls_of(rule)]
    cuda = [call for call, _api, default in calls if default is not None and default[0] != _CPU]
    # What an earlier pass wrote in their place.
    cuda += [call for call in index.calls if index.qualified_name(call.func) == "torch.set_default_device"]
    for call, api, default in calls:
        if default is None:
            may_be = [each for argument in call.args for each in made_from(index, argument)]
            handed = (given(index, known) for each in may_be if (known := parameter_of(index, each)))
            if cuda or any("cuda" in index.segment(each) for each in chain(may_be, *handed)):
                yield found(context, rule, call, api=api, severity="error", claims=True)
            continue
        device, dtype = default
        # A CUDA type may be the default by then: not where the other branch chooses it.
        apart = bool(cuda) and all(in_other_branch(index, call, each) for each in cuda)
        if device == _CPU and (apart or not context.project.offers.of(CUDA_DEFAULT)):
            continue
        statement = index.parent(call)
        # Empty where it is imported by its name.
        base = index.segment(call.func)[: -len(api.rpartition(".")[2])]
        edits = []
        if base and isinstance(statement, ast.Expr) and context.version.has_set_default_device:
            new = [f"{base}set_default_device({device})", f"{base}set_default_dtype({base}{dtype})"]
            new = new[device != _CPU and _splits(context, rule) :]
            edits = [instead_of(index, call, statement_separator(index, statement).join(new))]
        severity = "" if edits else "error" if device != _CPU else "warning"
        yield found(context, rule, call, api=api, edits=edits, severity=severity, claims=True)


def _splits(context: FileContext, rule: Rule[TypeOptions]) -> bool:
    return not context.project.offers.names(LIBRARY).isdisjoint(rule.options.split)


def _default(index: ModuleIndex, rule: Rule[TypeOptions], call: ast.Call) -> tuple[str, str] | None:
    """The device, as source, and the dtype that a call makes the default; None where that is not seen."""
    arguments = arguments_of(call)
    choice = arguments[0] if len(arguments) == 1 else None
    devices, dtypes = [], set()
    for node in (choice.body, choice.orelse) if isinstance(choice, ast.IfExp) else arguments:
        module, _dot, last = (string_value(node) or index.qualified_name(node)).rpartition(".")
        if choice is None or last not in rule.options.dtypes or module not in ("torch", "torch.cuda"):
            return None
        devices.append('"npu"' if module == "torch.cuda" else _CPU)
        dtypes.add(rule.options.dtypes[last])
    if len(dtypes) != 1:
        return None
    test = f" if {index.segment(choice.test)} else " if isinstance(choice, ast.IfExp) else ""
    return test.join(devices), dtypes.pop()


def find_constructors(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``torch.Tensor(…)`` in a project that makes a CUDA type the default: it is moved."""
    index = context.index
    if not context.project.offers.of(CUDA_DEFAULT) or not context.version.has_set_default_device:
        return
    for call, api in context.calls_of(rule):
        if any(keyword.arg in ("device", None) for keyword in call.keywords) or _is_moved(index, call):
            continue
        end = index.end(call)
        yield found(context, rule, call, api=api, edits=[Edit(end, end, '.to("npu")')])


def find_modules(context: FileContext, rule: Rule[TypeOptions]) -> Iterator[Match]:
    """Modules that are built while a CUDA type is the default: they are moved as a whole."""
    index = context.index
    known: set[ast.AST] = set()
    calls = [call for call, _api in context.calls_of(rule)] if context.version.has_set_default_device else []
    for call in calls:
        device, _dtype = _default(index, rule, call) or (_CPU, "")
        region = [*_until_taken_back(index, calls, call)] if device != _CPU else []
        every = [(each, built) for each in region if (built := _built(context, each)) is not None]
        for statement, built in every:
            if built in known:
                continue
            known.add(built)
            text, later = f".to({device})", [each for each in calls if index.start(each) > index.end(built)]
            stays = all(index.function_of(each) is not index.function_of(call) for each in later)
            if _splits(context, rule) and stays and statement is every[-1][0]:
                base = index.segment(call.func)[: -len("set_default_tensor_type")]
                text += f"{statement_separator(index, statement)}{base}set_default_device({device})"
            edits = [Edit(index.end(built), index.end(built), text)]
            yield found(context, rule, built, api=index.segment(built.func), edits=edits)


def _until_taken_back(index: ModuleIndex, calls: list[ast.Call], call: ast.Call) -> Iterator[ast.Assign]:
    """The assignments behind a call, in its block and around it, until another one changes the default."""
    resets = [each for each in calls if each is not call]
    statement: ast.AST | None = index.statement_of(call)
    while statement is not None:
        for following in index.behind(statement):
            inside = [index.start(reset) for reset in resets if following in index.above(reset)]
            if not isinstance(following, (*FUNCTIONS, ast.ClassDef)):
                every = (node for node in ast.walk(following) if isinstance(node, ast.Assign))
                yield from (node for node in every if not inside or index.start(node) < min(inside))
            if inside:
                return
        around = index.parent(statement)
        statement = around if isinstance(around, _BRANCHES) else None


def _built(context: FileContext, statement: ast.Assign) -> ast.Call | None:
    """The call that builds a module, where nothing moves it."""
    index, target, value = context.index, only_target(statement), statement.value
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


def find_cuda(context: FileContext, rule: Rule) -> Iterator[Match]:
    """``def cuda`` becomes ``def npu``, unless the class has nothing to do with torch.

    All definitions of the name (a property and its setter) and what the class
    body says of it (``to_gpu = cuda``) move in one fix; tables of its methods with them.
    """
    index, project = context.index, context.project
    for owner in index.classes:
        methods = [item for item in owner.body if isinstance(item, FUNCTIONS)]
        names = {item.name for item in methods}
        if names.isdisjoint(rule.match):
            continue
        facts = next((f for f in project.classes if (f.name, f.file) == (owner.name, context.name)), None)
        for old in rule.match:
            new = old.replace("cuda", "npu")
            if old not in names or new in names or facts is None or not project.related(facts):
                continue
            definitions = [item for item in methods if item.name == old]
            starts = [index.data.index(b"def", index.start(item)) + 3 for item in definitions]
            starts = [index.data.index(old.encode(), start) for start in starts]
            edits = [Edit(start, start + len(old), new) for start in starts]
            span, scope = (edits[0].start, edits[0].end), index.scope_of(definitions[0])
            # @is_cuda.setter, gpu = property(is_cuda)
            uses = (use for use in index.uses_of(definitions[0]) if index.scope_of(use) is scope)
            edits += (instead_of(index, use, new) for use in uses)
            api = f"{owner.name}.{old}"
            yield found(context, rule, definitions[0], api=api, edits=sorted(edits), span=span)
            for node in _in_tables(index, owner, old, names - {old}):
                start = index.data.index(old.encode(), index.start(node))
                yield found(context, rule, node, api=api, edits=[Edit(start, start + len(old), new)])


def _in_tables(index: ModuleIndex, owner: ast.ClassDef, old: str, others: set[str]) -> Iterator[ast.AST]:
    """The name in tables of the class that also name another method: ``docs = dict(cpu=…, cuda=…)``."""
    for statement in owner.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            index.expand(statement)
            for names in map(_names, walk(statement)):
                if not others.isdisjoint(name for name, _node in names):
                    yield from (node for name, node in names if name == old)


def _names(table: ast.AST) -> list[tuple[str, ast.AST]]:
    """What a table names, each with its node: keywords of ``dict(…)``, keys, or the texts of a list."""
    if isinstance(table, ast.Call) and called_name(table) == "dict":
        return [(keyword.arg or "", keyword) for keyword in table.keywords]
    texts = table.keys if isinstance(table, ast.Dict) else getattr(table, "elts", ())
    return [(string_value(text) or "", text) for text in texts if text is not None]


def find_legacy_functions(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Classes of autograd functions whose ``forward`` is no static method, where one is made and called."""
    index = context.index
    for owner in index.classes:
        bases = [index.qualified_name(base) for base in owner.bases]
        name = next((each for each in bases if each in rule.match), "")
        forward = next((item for item in owner.body if getattr(item, "name", "") == "forward"), None)
        if name and isinstance(forward, ast.FunctionDef) and not forward.decorator_list:
            start = index.start(forward)
            yield found(context, rule, forward, api=name, span=(start, start + len("def forward")))
