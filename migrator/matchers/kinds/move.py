"""``.cuda(…)`` where ``.npu(…)`` means something else: there it becomes ``.to(…)``.

- TorchScript compiles ``.to("npu")``, and knows no ``.npu()``.
- ``torch.nn.Module.npu`` ignores the device that it is given before torch_npu 26.1, and takes nothing but a
  whole number since (the sources of each release; seen with torch_npu 2.13).
- A class of a library with a ``cuda()`` of its own has no ``npu()`` to it, or only the one of modules, that
  its own would have gone with.
"""

from __future__ import annotations

import ast
import re
from typing import NamedTuple, Optional

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, instead_of, put_around
from migrator.matchers.npu_import import imports_package
from migrator.matchers.packs import Options
from migrator.matchers.whole_numbers import as_device, surely_int
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, bare_name, called_name, hands_on, holder_of, is_none
from migrator.names.what_is import CLASS, MAYBE, MODULE, TENSOR, UNKNOWN, Value, is_class_of_torch
from migrator.project.offers import LIGHTNING, SET_DEVICE

_DEVICE_NAME = re.compile(r"(?:^|_)(?:device|dev)$", re.IGNORECASE)
_MOST_VALUES = 20  # a name that is given more is not followed
_CURRENT = ("torch.cuda.current_device", "torch.npu.current_device")


class MethodOptions(Options):
    """``own``: classes of libraries with their own ``cuda()``. ``integers``: functions that give an int."""

    own: tuple[str, ...] = ()
    integers: tuple[str, ...] = ()


class Move(NamedTuple):
    """How a call is written instead, and why; ``safety`` as a fix has it."""

    edits: list[Edit]
    message: str
    safety: str = ""


def moved_with_to(
    context: FileContext, options: MethodOptions, node: ast.Attribute, value: Value, scripted: bool
) -> Optional[Move]:
    """The call of a method ``cuda`` as one of ``to``; None where ``npu`` does the same.

    ``value`` is what has the method, ``scripted`` whether TorchScript compiles the call.
    """
    call = context.index.call_of(node)
    facts = context.project.named(value.name)
    if facts is not None and node.attr in facts.methods:
        return None  # it is renamed with its callers
    if call is None or node.attr != "cuda" or is_class_of_torch(context.index.qualified_name(node.value)):
        return None
    if hands_on(call):
        return None
    device = argument_of(call, "device", 0)
    if scripted:
        message = _("TorchScript compiles .to(), not .npu()")
    elif _has_own_method(context, options, node.value, value):
        message = _("the class overrides cuda() and to(), but not npu()")
    elif device is not None and _ignores_device(context, call, device, node.value, value):
        message = _("a module's .npu() ignores the device, or takes only a whole number; .to() takes it")
    else:
        return None
    return _written(context, options, node, call, device, message)


def _written(
    context: FileContext,
    options: MethodOptions,
    node: ast.Attribute,
    call: ast.Call,
    device: Optional[ast.expr],
    message: str,
) -> Optional[Move]:
    index, given, safety = context.index, list[Edit](), ""
    if device is None or is_none(device):
        pass
    elif surely_int(index, options.integers, device):
        given = as_device(index, device)
    elif not _names_device(context, device):
        torch = next((alias for alias in ("torch", "th") if _is_torch(context, call, alias)), None)
        if torch is None:
            return None
        given = put_around(index, device, f'{torch}.device("npu", ', ")")
        safety = "unsafe"
    return Move(called_to(index, node, call, '"npu"', given), message, safety)


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
    if len(call.args) > 1 or any(k.arg != "device" for k in call.keywords):
        return False  # only tensors take more
    if called_name(holder) == "super":
        return _is_filled_in(context, device)
    if value.kind in (TENSOR, MAYBE):
        return False
    bound = context.index.bindings(holder) if isinstance(holder, ast.Name) else ()
    if any(isinstance(binding.node, ast.Lambda) for binding in bound):  # a storage, in map_location
        return False
    if _may_be_none(context, device):
        return False
    chosen = context.project.offers.names(SET_DEVICE)
    if isinstance(device, ast.Constant) and device.value == 0:
        return bool(chosen)  # the first NPU is the current one where nobody chooses another
    if context.index.segment(device) in chosen or _is_current(context, device):
        return False
    return value.kind in (MODULE, CLASS) or not context.project.classes


def _may_be_none(context: FileContext, device: ast.expr) -> bool:
    """Whether a device may be left out: ``.to(None)`` moves nothing."""
    if isinstance(device, ast.Name):
        return any(is_none(each.value) for each in context.index.bindings(device))
    return is_none(device)


def _is_filled_in(context: FileContext, device: ast.expr) -> bool:
    """Whether a device that was left out is made first: ``if device is None: device = torch.device(…)``."""
    index = context.index
    if not isinstance(device, ast.Name):
        return False
    made = [each for each in index.assigned(device) if _is_device(context, each)]
    tests = (parent.test for each in made for parent in index.above(each) if isinstance(parent, ast.If))
    return any(
        isinstance(test, ast.Compare)
        and bare_name(test.left) == device.id
        and isinstance(test.ops[0], (ast.Is, ast.Eq))
        and is_none(test.comparators[0])
        for test in tests
    )


def _is_device(context: FileContext, value: ast.expr) -> bool:
    """Whether a value is a ``torch.device(…)``."""
    return isinstance(value, ast.Call) and context.index.qualified_name(value.func) == "torch.device"


def _is_current(context: FileContext, device: ast.expr) -> bool:
    """Whether a device is the current one: ``torch.cuda.current_device()``."""
    index = context.index
    values = index.assigned(device) if isinstance(device, ast.Name) else [device]
    return bool(values) and all(
        isinstance(each, ast.Call) and index.qualified_name(each.func) in _CURRENT for each in values
    )


def _names_device(context: FileContext, device: ast.expr) -> bool:
    """Whether an expression is a string or a torch.device, or is called one."""
    if isinstance(device, (ast.Constant, ast.JoinedStr)):
        return True
    if isinstance(device, ast.BinOp):
        return any(isinstance(part, ast.Constant) for part in (device.left, device.right))
    if isinstance(device, ast.Call):
        is_format = called_name(device) == "format" and isinstance(holder_of(device), ast.Constant)
        return _is_device(context, device) or is_format
    assigned = context.index.assigned(device) if isinstance(device, ast.Name) else []
    return any(_is_device(context, each) for each in assigned) or bool(_DEVICE_NAME.search(bare_name(device)))


def _is_torch(context: FileContext, node: ast.AST, name: str) -> bool:
    """Whether a name stands for the module torch where a node is."""
    found = context.index.scope_of(node).look_up(name)
    return len(found) == 1 and found[0].kind == "import" and found[0].name == "torch"


def _has_own_method(context: FileContext, options: MethodOptions, holder: ast.expr, value: Value) -> bool:
    """Whether what has the method is, or may well be, of a class that has the method itself."""
    index, lightning = context.index, context.project.offers.names(LIGHTNING)
    packages = _packages(context, options)
    if not packages and not lightning:
        return False
    made = _class_name(context, holder, value)
    if made:
        last = made.rpartition(".")[2]
        if made in options.own or last in lightning:
            return True
        owner = next((each for each in index.classes if each.name == last), None)
        if owner is not None:
            index.expand(owner)
            return any(index.qualified_name(base) in options.own for base in owner.bases)
        if "." in made and not made.startswith("."):
            return False
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

    return context.index.once((_("packages with a cuda() of their own"),), find)


def _class_name(context: FileContext, holder: ast.expr, value: Value, depth: int = 0) -> str:
    """The name of the class of an expression: of what makes it, or of a class method that does."""
    index = context.index
    if value.kind == CLASS:
        return value.name
    if isinstance(holder, ast.Call):
        name = index.qualified_name(holder.func)
        parent, _, last = name.rpartition(".")
        if last[:1].islower() and parent.rpartition(".")[2][:1].isupper():
            return parent  # Net.load_from_checkpoint(path)
        if name:
            return name
        if isinstance(holder.func, ast.Attribute):
            maker = holder.func.value
            if isinstance(maker, ast.Name) and maker.id[:1].isupper():
                return maker.id
            return _class_name(context, maker, context.value(maker), depth + 1) if depth < 3 else ""
        return holder.func.id if isinstance(holder.func, ast.Name) else ""
    if isinstance(holder, ast.Name) and depth < 3:
        assigned = index.assigned(holder)
        if len(assigned) > _MOST_VALUES:
            return ""
        assigned = [each for each in assigned if not _mentions(each, holder.id)]
        names = {_class_name(context, each, context.value(each), depth + 1) for each in assigned}
        return names.pop() if len(names) == 1 else ""
    return ""


def _mentions(node: ast.expr, name: str) -> bool:
    """Whether an expression is made from the name itself: ``net = net.cuda()``."""
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
