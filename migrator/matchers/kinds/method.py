"""Kinds ``method`` and ``attribute``: members of tensors, modules and storages.

``.cuda(…)`` becomes ``.to(…)`` where ``.npu(…)`` means something else:

- TorchScript compiles ``.to("npu")``, and knows neither ``.npu()`` nor ``.is_npu``.
- ``torch.nn.Module.npu`` ignores the device that it is given before torch_npu 26.1, and takes nothing but a
  whole number since (the sources of each release; seen with torch_npu 2.13).
- A class of a library with a ``cuda()`` of its own has no ``npu()`` to it, or only the one of modules, that
  its own would have gone with.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, Said, found, instead_of, put_around
from migrator.matchers.npu_import import imports_package, torch_module
from migrator.matchers.packs import Options, Rule
from migrator.matchers.whole_numbers import as_device, surely_int
from migrator.names.conditions import is_guarded
from migrator.names.index import ModuleIndex
from migrator.names.made_from import made_from
from migrator.names.tree import (
    FUNCTIONS,
    Function,
    argument_of,
    attributes,
    bare_name,
    called_name,
    hands_on,
    holder_of,
    imported,
    is_none,
)
from migrator.names.what_is import (
    CLASS,
    FOREIGN,
    MAYBE,
    MODULE,
    TENSOR,
    UNKNOWN,
    Value,
    is_class_of_torch,
    options_like,
)
from migrator.project.frameworks import TORCH
from migrator.project.offers import LIGHTNING, SCRIPTS_MODULES, SET_DEVICE

_COMPILERS = frozenset({"torch.jit.script", "torch.jit.script_method", "torch.jit.export"})
_SCRIPTING = ("torch.jit.script", "torch.jit.script_if_tracing")
_LEFT_OUT = frozenset({"torch.jit.ignore", "torch.jit.unused"})
_KEYWORDS = frozenset({"device", "non_blocking", "memory_format"})
_MODULES = frozenset({"torch", "torch.version", "torch.backends", "torch._C"})
# Names of what has the method.
_MOVABLE = r"(?:^|_)(?:tensor|module|model|net|network|layer|encoder|decoder)_?\d*$"
# What may hold a comparison without parentheses around it.
HOLDS_COMPARISON = (ast.If, ast.While, ast.Assert, ast.Return, ast.Assign, ast.BoolOp, ast.IfExp, ast.keyword)
_DEVICE_NAME = re.compile(r"(?:^|_)(?:device|dev)$", re.IGNORECASE)
_MOST_VALUES = 20  # a name that is given more is not followed
_CURRENT = ("torch.cuda.current_device", "torch.npu.current_device")


class MethodOptions(Options):
    """``own``: classes of libraries with their own ``cuda()``. ``integers``: functions that give an int."""

    own: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()


def find_methods(context: FileContext, rules: list[Rule[MethodOptions]]) -> Iterator[Match]:
    """Calls of ``x.member(...)``, and the method itself as a value (``torch.Tensor.member``)."""
    for node, rule in _members(context, rules):
        call = context.index.call_of(node)
        if call:
            # torch's cuda(device=None, non_blocking=False), or a method of the project about tensors.
            fits = len(call.args) <= 2 and all(k.arg is None or k.arg in _KEYWORDS for k in call.keywords)
            fits = fits or (_is_method_of_ours(context, node) and not _is_of_library(context, node.value))
        else:
            fits = _method_as_value(context, node)
        if fits:
            yield from _judged(context, rule, node)
        elif not call and _handed_on(context, node):
            why = _("unknown whether this is a method of a tensor or a module")
            yield _left(context, rule, node, why)


def find_attributes(context: FileContext, rules: list[Rule]) -> Iterator[Match]:
    """Reads of ``x.member``; those that become nothing else are reported, where nobody asks first."""
    index = context.index
    for node, rule in _members(context, rules):
        if not isinstance(node.ctx, ast.Load) or (node.attr != "is_cuda" and _is_own(node)):
            continue
        if not rule.replace:
            name = index.qualified_name(node.value.func if isinstance(node.value, ast.Call) else node.value)
            # Another library has it, which is imported, or gives it by one of its calls.
            is_others = context.value(node.value).kind == FOREIGN or (name and not name.startswith("torch."))
            if not (is_others and TORCH in rule.framework) and not is_guarded(index, node, {node.attr}):
                yield found(context, rule, node, api=f".{node.attr}")
        elif node.attr == "is_cuda":
            # Of a tensor it is a bool: what is called, or has members, belongs to another class.
            is_bool = index.call_of(node) is None and not isinstance(index.parent(node), ast.Attribute)
            if is_bool or _is_method_of_ours(context, node):
                yield from _judged(context, rule, node)
        elif _is_handle(context, node):
            yield from _judged(context, rule, node)
        elif not any(isinstance(each.ctx, ast.Store) for each in index.members(node.attr)):
            yield _left(context, rule, node, _("unknown whether it belongs to torch"))


def _is_method_of_ours(context: FileContext, node: ast.Attribute) -> bool:
    """Whether a class of the project that is about tensors has a method of that name."""
    project = context.project
    return any(node.attr in facts.methods and project.related(facts) for facts in project.classes)


def _is_of_library(context: FileContext, holder: ast.expr) -> bool:
    """Whether another library than torch has what holds a method: its object, or its class itself."""
    index, project = context.index, context.project
    if context.value(holder).kind == FOREIGN:
        return True
    names = (index.qualified_name(each) for each in made_from(index, holder))
    others = (name for name in names if name and not name.startswith((".", "torch.")))
    return not all(project.owns(name, context.name) for name in others)


def _left(context: FileContext, rule: Rule, node: ast.Attribute, why: str, where: str = "it is") -> Match:
    """The message for a member that is left, and where it has to change."""
    api, message = f".{node.attr}", _(".{attr} is left unchanged: {why}", attr=node.attr, why=why)
    advice = _("Where {where}, write {replace}.", where=where, replace=rule.replace)
    return found(context, rule, node, api=api, message=message, advice=advice, severity="warning")


def _is_handle(context: FileContext, node: ast.Attribute) -> bool:
    """Whether ``.cuda_stream`` is read of a stream, by its name or by what it was made with."""
    kind, holder, index = node.attr.rpartition("_")[2], node.value, context.index
    made = index.assigned(holder) if isinstance(holder, ast.Name) else []
    made = index.stored_as(holder) if isinstance(holder, ast.Attribute) else made
    names = (called_name(each) or bare_name(each) for each in (holder, *made))
    return any(kind in name.lower() for name in names)


def _members(context: FileContext, rules: list[Rule]) -> Iterator[tuple[ast.Attribute, Rule]]:
    members = {name.lstrip("."): rule for rule in reversed(rules) for name in rule.match}
    for ref in context.index.refs:
        yield from ((node, members[node.attr]) for node in attributes(ref) if node.attr in members)


def _is_own(node: ast.Attribute) -> bool:
    """Whether it is a member of the object itself."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _method_as_value(context: FileContext, node: ast.Attribute) -> bool:
    if is_class_of_torch(context.index.qualified_name(node.value)):
        return True
    around, value = context.index.parent(node), context.value(node.value)
    branches = (around.body, around.orelse) if isinstance(around, ast.IfExp) else ()
    if any(isinstance(other, ast.Attribute) and other.attr == "cpu" for other in branches):
        return True
    facts = context.project.named(value.name)
    has_it = facts is not None and node.attr in facts.methods and context.project.related(facts)
    return value.kind in (TENSOR, MODULE) or has_it


def _handed_on(context: FileContext, node: ast.Attribute) -> bool:
    """Whether the member of something unknown is used as a function.

    ``map(x.cuda, …)`` hands it to a call, ``move = x.cuda`` to a name that is called; elsewhere
    (``{"move": model.cuda}``) the name of what has it has to say that it is a tensor or a module.
    """
    index, holder = context.index, node.value
    around = index.parent(node)
    if not isinstance(node.ctx, ast.Load) or _is_own(node):  # a setting, as often as not
        return False
    targets = around.targets if isinstance(around, ast.Assign) else ()
    names = [each for each in targets if isinstance(each, ast.Name)]
    holds = (ast.Assign, ast.Dict, ast.List, ast.Tuple, ast.Return, ast.keyword)
    if isinstance(around, ast.Call):
        likely = node in around.args
    else:
        likely = isinstance(around, holds) and bool(re.search(_MOVABLE, bare_name(holder)))
        likely = likely or any(index.call_of(use) for name in names for use in index.uses_of(name))
    is_setting = options_like(holder) or context.project.stores(node.attr)
    if not likely or index.qualified_name(holder) in _MODULES or is_setting:
        return False
    return context.value(holder).kind not in (FOREIGN, CLASS)


def _judged(context: FileContext, rule: Rule, node: ast.Attribute) -> Iterator[Match]:
    index, project, holder = context.index, context.project, node.value
    if index.qualified_name(holder) in _MODULES:
        return
    value, is_called, api = context.value(holder), index.call_of(node) is not None, f".{node.attr}"
    is_torch = value.kind in (TENSOR, MODULE)
    is_setting = not is_torch and options_like(holder)
    if is_setting and not is_called:
        return  # args.cuda, get_config().cuda
    if value.kind == FOREIGN:  # what a module of an unknown library, or of the project, holds may be a tensor
        plain = (each for each in index.imports if isinstance(each, ast.Import))
        may_be = value.name not in (name for each in plain for name in imported(each))
        if not (is_called and may_be and isinstance(holder, ast.Attribute)) or value.is_no_tensor:
            return
    facts = None if is_torch else project.named(value.name)
    own = facts.methods if facts is not None and not project.related(facts) else ()
    if node.attr in own or (facts is not None and node.attr in facts.stored):
        return
    owner = index.class_of(node) if called_name(holder) == "super" else None
    facts = project.named(owner.name) if owner is not None else None
    if facts is not None and not project.related(facts):
        return
    if why := "" if is_torch else _another_owner(context, node, value):
        yield _left(context, rule, node, why, _("the object is a tensor or a module"))
        return
    scripted = _in_torchscript(context, node)
    if scripted and node.attr == "is_cuda":  # the form that TorchScript compiles
        edits = compared_type(index, node, '"npu"', isinstance(index.parent(node), HOLDS_COMPARISON))
        yield found(context, rule, node, api=api, edits=edits)
        return
    end, options = index.end(node), rule.options
    said: Said | None = None
    if isinstance(options, MethodOptions):
        said = _moved_with_to(context, options, node, value, scripted)
    if said is None:
        said = {"edits": [Edit(end - len(node.attr.encode("utf-8")), end, rule.replace.lstrip("."))]}
    is_setting = is_setting and not isinstance(holder, ast.Call)  # Model.from_config(config).cuda()
    stored = project.defines_elsewhere(node.attr) or (not is_called and project.stores(node.attr))
    if not is_torch and (is_setting or value.kind == FOREIGN or stored):
        said["safety"] = "unsafe"
    said["api"] = api
    yield found(context, rule, node, **said)


def _another_owner(context: FileContext, node: ast.Attribute, value: Value) -> str:
    """Why a member may be the project's own, or a library's; empty where nothing speaks for that."""
    project, function, owner = context.project, context.index.function_of(node), context.index.class_of(node)
    if value.kind == FOREIGN and not project.owns(value.name, context.name):
        return _("{name} is unknown", name=value.name)
    if owner is not None and getattr(function, "name", "") in ("cuda", "is_cuda", "npu", "is_npu"):
        facts = project.named(owner.name)
        if facts is None or project.related(facts):
            return ""  # definitions move together with what they call
    if called_name(node.value) == "super":
        return ""
    other = project.unrelated_method(node.attr, context.index.text, context.name)
    if other is not None:
        about = {"name": other.name, "file": other.file}
        return _("it may belong to the class {name} in {file}, which is unrelated to torch", **about)
    stored = next((facts for facts in project.classes if node.attr in facts.stored), None)
    if stored is not None and stored.file == context.name and not context.index.call_of(node):
        return _("the class {name} stores its own value under that name", name=stored.name)
    return ""


def compared_type(index: ModuleIndex, node: ast.Attribute, value: str, bare: bool) -> list[Edit]:
    """The edits that compare the type of a device with ``value``, in parentheses if not ``bare``."""
    start, end = index.span(node)
    text = f"device.type == {value}"
    comparison = Edit(end - len("is_cuda"), end, text if bare else f"{text})")
    return [comparison] if bare else [Edit(start, start, "("), comparison]


def _moved_with_to(
    context: FileContext, options: MethodOptions, node: ast.Attribute, value: Value, scripted: bool
) -> Said | None:
    """The call of a method ``cuda`` as one of ``to``, and why; None where ``npu`` does the same.

    ``value`` is what has the method, ``scripted`` whether TorchScript compiles the call.
    """
    index, facts, safety = context.index, context.project.named(value.name), ""
    call = index.call_of(node)
    if facts is not None and node.attr in facts.methods:
        return None  # it is renamed with its callers
    if call is None or node.attr != "cuda" or is_class_of_torch(index.qualified_name(node.value)):
        return None
    if hands_on(call) or _is_storage(index, node.value):
        return None
    device, given = argument_of(call, "device", 0), list[Edit]()
    if scripted:
        message = _("TorchScript compiles .to(), not .npu()")
    elif _has_own_method(context, options, node.value, value):
        message = _("its class may override cuda() and to(), but not npu()")
    elif device is not None and _ignores_device(context, call, device, node.value, value):
        message = _("a module's .npu() ignores the device or accepts an integer only; .to() accepts it")
    else:
        return None
    if device is None or is_none(device):
        pass
    elif surely_int(index, options.integers, device):
        given = as_device(index, device)
    elif not _names_device(index, device):
        torch = torch_module(index, call)
        if torch is None:
            return None
        given, safety = put_around(index, device, f'{torch}.device("npu", ', ")"), "unsafe"
    return {"edits": called_to(index, node, call, '"npu"', given), "message": message, "safety": safety}


def called_to(
    index: ModuleIndex, node: ast.Attribute, call: ast.Call, default: str, given: list[Edit]
) -> list[Edit]:
    """The edits that write ``x.to(…)`` for ``x.cuda(…)``.

    ``default`` is the device, as source, where the call has none; ``given`` are the edits of the one it has.
    """
    device, end = argument_of(call, "device", 0), index.end(node)
    edits = [Edit(end - len("cuda"), end, "to")]
    if device is None:
        opening = index.data.index(b"(", end) + 1
        edits.append(Edit(opening, opening, f"{default}, " if call.keywords else default))
    elif is_none(device):
        edits.append(instead_of(index, device, default))
    else:
        edits += given
    if len(call.args) > 1:  # the second parameter of to() is a dtype
        start = index.start(call.args[1])
        edits.append(Edit(start, start, "non_blocking="))
    return edits


def _ignores_device(
    context: FileContext, call: ast.Call, device: ast.expr, holder: ast.expr, value: Value
) -> bool:
    """Whether the call may be that of a module, and its device another than the current NPU."""
    index = context.index
    if len(call.args) > 1 or any(k.arg != "device" for k in call.keywords):
        return False  # only tensors take more
    if called_name(holder) == "super":
        return _is_filled_in(index, device)
    if value.kind in (TENSOR, MAYBE):
        return False
    # It may be left out: .to(None) moves nothing.
    bound = index.bindings(device) if isinstance(device, ast.Name) else ()
    if is_none(device) or any(is_none(binding.value) for binding in bound):
        return False
    chosen = context.project.offers.names(SET_DEVICE)
    if isinstance(device, ast.Constant) and device.value == 0:
        return bool(chosen)  # the first NPU is the current one where nobody chooses another
    # torch.cuda.current_device(), or a name for it.
    values = index.assigned(device) if isinstance(device, ast.Name) else [device]
    made = [index.qualified_name(each.func) if isinstance(each, ast.Call) else "" for each in values]
    if index.segment(device) in chosen or (made and all(name in _CURRENT for name in made)):
        return False
    return value.kind in (MODULE, CLASS) or not context.project.classes


def _is_storage(index: ModuleIndex, holder: ast.expr) -> bool:
    """Whether it is what ``map_location`` gets: the ``to`` of a storage takes its device by name only."""
    if not isinstance(holder, ast.Name):
        return bare_name(holder) == "storage"
    every = index.bindings(holder)

    def find() -> tuple[object, bool]:
        lambdas = [each.node.args.args for each in every if isinstance(each.node, ast.Lambda)]
        return every, any(len(given) == 2 and given[0].arg == holder.id for given in lambdas)

    # The list stays in use, as the answer holds it: each of thousands of uses asks.
    return holder.id == "storage" or index.once(("storage", id(every)), find)[1]


def _is_filled_in(index: ModuleIndex, device: ast.expr) -> bool:
    """Whether a device that was left out is made first: ``if device is None: device = torch.device(…)``."""
    if not isinstance(device, ast.Name):
        return False
    made = [each for each in index.assigned(device) if _is_device(index, each)]
    tests = (parent.test for each in made for parent in index.above(each) if isinstance(parent, ast.If))
    compared = (test for test in tests if isinstance(test, ast.Compare) and is_none(test.comparators[0]))
    asks = (test for test in compared if isinstance(test.ops[0], (ast.Is, ast.Eq)))
    return device.id in (bare_name(test.left) for test in asks)


def _is_device(index: ModuleIndex, value: ast.expr) -> bool:
    """Whether a value is a ``torch.device(…)``."""
    return isinstance(value, ast.Call) and index.qualified_name(value.func) == "torch.device"


def _names_device(index: ModuleIndex, device: ast.expr) -> bool:
    """Whether an expression is a string or a torch.device, or is called one."""
    if isinstance(device, (ast.Constant, ast.JoinedStr)):
        return True
    if isinstance(device, ast.BinOp):
        return any(isinstance(part, ast.Constant) for part in (device.left, device.right))
    if isinstance(device, ast.Call):
        is_format = called_name(device) == "format" and isinstance(holder_of(device), ast.Constant)
        return _is_device(index, device) or is_format
    assigned = index.assigned(device) if isinstance(device, ast.Name) else []
    return any(_is_device(index, each) for each in assigned) or bool(_DEVICE_NAME.search(bare_name(device)))


def _has_own_method(context: FileContext, options: MethodOptions, holder: ast.expr, value: Value) -> bool:
    """Whether what has the method is, or may well be, of a class that has the method itself."""
    index, lightning = context.index, context.project.offers.names(LIGHTNING)
    packages = _packages(context, options)
    if not packages and not lightning:
        return False
    made = _class_name(context, holder, value)
    if made:
        last = made.rpartition(".")[2]
        owner = next((each for each in index.classes if each.name == last), None)
        if owner is not None:  # and none of that name in another file
            index.expand(owner)
            bases = [*map(index.qualified_name, owner.bases)]
            return any(each in options.own or each.rpartition(".")[2] in lightning for each in bases)
        if made in options.own or last in lightning:
            return True
        if "." in made and not made.startswith(".") and not context.project.owns(made, context.name):
            return False
    if lightning and value.kind != TENSOR:  # what derives from such a class in another file
        return not any("cuda" in facts.methods for facts in context.project.classes)
    # What a library with such classes gives, as the batches of its loaders.
    return value.kind == UNKNOWN and not context.project.classes and bool(packages - {"torch"})


def _packages(context: FileContext, options: MethodOptions) -> frozenset[str]:
    """The packages with such classes that the file imports; torch where it names one of its own."""

    def find() -> frozenset[str]:
        own = {name.partition(".")[0] for name in options.own} - {"torch"}
        named = (name for name in options.own if name.startswith("torch."))
        of_torch = any(name.rpartition(".")[2] in context.index.text for name in named)
        imported = {each for each in own if imports_package(context.index, each)}
        return frozenset(imported | ({"torch"} if of_torch else set()))

    return context.index.once((_("packages with their own cuda()"),), find)


def _class_name(context: FileContext, holder: ast.expr, value: Value, depth: int = 0) -> str:
    """The name of the class of an expression: of what makes it, or of a class method that does."""
    index = context.index

    def asked(node: ast.expr) -> str:
        return _class_name(context, node, context.value(node), depth + 1)

    if value.kind == CLASS:
        return value.name
    if isinstance(holder, ast.Call):
        name, maker = index.qualified_name(holder.func), holder_of(holder)
        parent, _, last = name.rpartition(".")
        if last[:1].islower() and parent.rpartition(".")[2][:1].isupper():
            return parent  # Net.load_from_checkpoint(path)
        if name or maker is None:
            return name or bare_name(holder.func)
        if isinstance(maker, ast.Name) and maker.id[:1].isupper():
            return maker.id
        return asked(maker) if depth < 3 else ""
    assigned = index.assigned(holder) if isinstance(holder, ast.Name) and depth < 3 else []
    if len(assigned) > _MOST_VALUES:
        return ""
    # Not what is made from the name itself: net = net.cuda().
    own = f"Name(id={bare_name(holder)!r},"
    names = {asked(each) for each in assigned if own not in ast.dump(each)}
    return names.pop() if len(names) == 1 else ""


def _in_torchscript(context: FileContext, node: ast.AST) -> bool:
    """Whether TorchScript compiles the function that a node is in.

    It compiles what has a decorator, or is given to torch.jit.script: of a module ``forward`` and what that
    calls, here and in other files. Which module a call means is seldom seen, so all of them are taken for
    compiled: what TorchScript compiles does the same elsewhere.
    """
    function = context.index.function_of(node)
    return function is not None and _is_compiled(context, function)


def _is_compiled(context: FileContext, function: Function) -> bool:
    index, owner = context.index, context.index.class_of(function)

    def find() -> bool:
        for each in filter(None, (function, owner)):
            index.expand(each)
        decorators = {index.qualified_name(each) for each in function.decorator_list}
        if not decorators.isdisjoint(_LEFT_OUT | _COMPILERS):
            return decorators.isdisjoint(_LEFT_OUT)
        if owner is None:
            uses = index.uses_of(function)
            takers = (each for each in map(index.parent, uses) if isinstance(each, ast.Call))
            scripted = any(index.qualified_name(taker.func) in _SCRIPTING for taker in takers)
            scripted = scripted or context.project.is_scripted(function.name, context.name)
            return scripted or any(_in_torchscript(context, use) for use in uses)
        if any(index.qualified_name(base) == "torch.jit.ScriptModule" for base in owner.bases):
            return True
        if not owner.bases or not context.project.offers.of(SCRIPTS_MODULES):
            return False
        own = rf"self\.{function.name}\b"
        methods = (each for each in owner.body if isinstance(each, FUNCTIONS) and each is not function)
        callers = (each for each in methods if re.search(own, index.segment(each)))
        return function.name == "forward" or any(_is_compiled(context, each) for each in callers)

    return index.ask("is it compiled?", function, find, False)
