"""Following values: to what they are made from, through names, lists and functions, and to who gives them."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Callable, NamedTuple, Optional, Union

from migrator.names.tree import Function, argument_of, arguments_of, called_name, parameters, string_value

if TYPE_CHECKING:
    from migrator.names.index import ModuleIndex

# Functions that give what they are given, as far as its dtype goes.
_KEEPING = frozenset(
    "torch.stack torch.cat torch.concat torch.hstack torch.vstack torch.sum torch.mean torch.add torch.div"
    " torch.mul torch.as_tensor torch.clone torch.squeeze torch.unsqueeze torch.flatten".split()
)
_BUILTINS = frozenset({"list", "tuple", "sorted", "reversed", "sum"})
# Methods behind which a tensor has another dtype, or is none.
_CHANGING = frozenset(
    "float half bfloat16 int long short bool byte type item tolist numpy type_as size".split()
)
_DTYPES = frozenset(
    "torch.float32 torch.float torch.float16 torch.half torch.bfloat16 torch.float64 torch.double torch.int32"
    " torch.int torch.int64 torch.long torch.int16 torch.short torch.int8 torch.uint8 torch.bool".split()
)
_DEEPEST = 12
# The keywords under which a reducing collective takes its tensors.
_TENSORS = ("tensor", "output", "input")


class Parameter(NamedTuple):
    """A parameter of a function of the file, by its place and its name."""

    function: Function
    place: int
    name: str


# A call, attribute or constant that a value is made from, or the parameter that it comes in by.
Source = Union[ast.expr, Parameter]


def sources(index: ModuleIndex, node: ast.expr) -> Iterator[Source]:
    """Everything that may be in a value. What only changes its shape, or its place, is looked through."""
    seen: set[int] = set()
    # With the key under which a value is asked for, where that is known.
    waiting: list[tuple[ast.AST, int, Optional[str]]] = [(node, 0, None)]
    while waiting:
        each, depth, key = waiting.pop()
        if id(each) in seen or depth > _DEEPEST:
            continue
        seen.add(id(each))
        if isinstance(each, ast.Name):
            parameter = parameter_of(index, each)
            if parameter is not None:
                yield parameter
            waiting += ((value, depth + 1, key) for value in _given(index, each, key))
            continue
        inner = _inside(index, each)
        if inner is None and isinstance(each, ast.expr):
            yield each
        key = string_value(each.slice) if isinstance(each, ast.Subscript) else None
        waiting += ((value, depth + 1, key) for value in inner or ())


def candidates(index: ModuleIndex, node: ast.expr, depth: int = 0) -> Iterator[ast.expr]:
    """What a function may be that a name, an attribute, a key or a function of the file stands for."""
    if depth > 3:
        return
    inner: list[ast.expr] = []
    if isinstance(node, ast.IfExp):
        inner = [node.body, node.orelse]
    elif isinstance(node, ast.BoolOp):
        inner = node.values
    elif isinstance(node, ast.Name):
        inner = index.assigned(node)
    elif isinstance(node, ast.Dict):
        inner = list(node.values)
    elif isinstance(node, ast.Subscript):
        inner = [node.value]
    elif isinstance(node, ast.Attribute):
        inner = index.stored_as(node)
    elif isinstance(node, ast.Call) and (function := index.function_called(node)) is not None:
        inner = returned_values(index, function)
    if not inner:
        yield node
    for each in inner:
        yield from candidates(index, each, depth + 1)


def made_with(index: ModuleIndex, source: Source, dtypes: Container[str]) -> Optional[ast.expr]:
    """What gives a tensor one of ``dtypes``: ``dtype=torch.float64``, ``.double()``, a constructor."""
    node = source
    while isinstance(node, ast.Call):
        for value in arguments_of(node):
            name = index.qualified_name(value) if isinstance(value, (ast.Name, ast.Attribute)) else ""
            if name in dtypes:
                return value
            if name in _DTYPES:
                return None
        if index.qualified_name(node.func) in dtypes:
            return node.func
        if not isinstance(node.func, ast.Attribute) or node.func.attr in _CHANGING:
            return None
        if node.func.attr == "double" and not node.args:
            return node.func
        node = node.func.value
    return None


def returned_values(index: ModuleIndex, function: Function) -> list[ast.expr]:
    """What a function's return statements give."""
    return [value for value in index.returned(function) if value is not None]


def _inside(index: ModuleIndex, node: ast.AST) -> Optional[list[ast.expr]]:
    """What an expression only hands on; None where it is a source itself."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [item.value if isinstance(item, ast.Starred) else item for item in node.elts]
    if isinstance(node, ast.Dict):
        return list(node.values)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return [node.elt, *(generator.iter for generator in node.generators)]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return index.stored_as(node)
    return _of_call(index, node) if isinstance(node, ast.Call) else None


def _of_call(index: ModuleIndex, node: ast.Call) -> Optional[list[ast.expr]]:
    name = index.qualified_name(node.func)
    if name in _KEEPING:
        return None if any(keyword.arg == "dtype" for keyword in node.keywords) else node.args[:2]
    if isinstance(node.func, ast.Name):
        if node.func.id in _BUILTINS:
            return node.args[:1]
        function = index.function_called(node)
        return returned_values(index, function) if function is not None else None
    if isinstance(node.func, ast.Attribute) and not name:
        if node.func.attr in _CHANGING:
            return []
        if node.func.attr in ("values", "items"):
            return [node.func.value]
        return None if _names_dtype(index, node) else [node.func.value]
    return None


def _names_dtype(index: ModuleIndex, node: ast.Call) -> bool:
    """Whether a method may give its result a dtype: ``x.to(torch.float64)``, ``x.double()``."""
    if called_name(node) not in ("double", "to", "new_tensor", "new_zeros"):
        return False
    given = map(index.qualified_name, arguments_of(node))
    return called_name(node) == "double" or any(name.startswith("torch.") for name in given)


def _given(index: ModuleIndex, node: ast.Name, key: Optional[str]) -> list[ast.expr]:
    """What a name is assigned, what is looped over, and what is appended to it or put under the key."""
    found = index.assigned(node)
    holds = any(map(_is_mapping, found))
    for binding in index.bindings(node):
        if isinstance(binding.node, (ast.For, ast.AsyncFor)):
            index.expand(binding.node)
            found.append(binding.node.iter)
    for use in index.uses_of(node):
        around = index.parent(use)
        call = index.call_of(around)
        if call is not None and called_name(call) in ("append", "extend"):
            found += call.args[:1]
        if holds and isinstance(around, ast.Subscript) and around.value is use:
            put, other = index.parent(around), string_value(around.slice)
            if (
                isinstance(put, ast.Assign)
                and around in put.targets
                and (key == other or None in (key, other))
            ):
                found.append(put.value)
    return found


def _is_mapping(value: ast.expr) -> bool:
    """Whether a value is a dictionary by how it is made; what is put into a tensor takes its dtype."""
    if isinstance(value, ast.Call):
        return called_name(value) in ("dict", "OrderedDict", "defaultdict")
    return isinstance(value, (ast.Dict, ast.DictComp))


def parameter_of(index: ModuleIndex, node: ast.Name) -> Optional[Parameter]:
    """The parameter that a name is; None for any other name."""
    for binding in index.bindings(node):
        function = index.function_of(node)
        while function is not None and binding.kind == "param":
            names = [each.arg for each in parameters(function.args)]
            if node.id in names:
                return Parameter(function, names.index(node.id), node.id)
            outer = index.parent(function)
            function = index.function_of(outer) if outer is not None else None
    return None


def given(index: ModuleIndex, parameter: Parameter) -> Iterator[ast.expr]:
    """What the calls of a function or a method of the file give one of its parameters."""
    function, place, name = parameter
    if not isinstance(index.parent(function), ast.ClassDef):
        yield from filter(None, given_by_each(index, parameter))
    elif place:  # the first one is the object
        of_name = (call for call in index.calls if isinstance(call.func, ast.Attribute))
        found = (argument_of(call, name, place - 1) for call in of_name if called_name(call) == function.name)
        yield from filter(None, found)


def given_by_each(index: ModuleIndex, parameter: Parameter) -> list[Optional[ast.expr]]:
    """What a function's parameter is given wherever the file names the function; None for what is unknown."""
    calls = map(index.call_of, index.uses_of(parameter.function))
    return [argument_of(call, parameter.name, parameter.place) if call else None for call in calls]


class Reduced(NamedTuple):
    """An expression whose value is reduced over the ranks: by the collective ``api``."""

    value: ast.expr
    api: str


def reduced(index: ModuleIndex, reduces: Callable[[str], bool]) -> tuple[list[Reduced], list[Parameter]]:
    """The values of a file that collectives reduce, and the parameters by which others hand them in.

    ``reduces`` says of a qualified name whether it is such a collective.
    """
    found: list[Reduced] = []
    handed_in: dict[tuple[Function, int], Parameter] = {}
    waiting = [
        Reduced(value, name)
        for call in index.calls
        if (name := index.qualified_name(call.func)) and reduces(name)
        for value in (*call.args[:2], *(item.value for item in call.keywords if item.arg in _TENSORS))
    ]
    while waiting:
        item = waiting.pop()
        found.append(item)
        for source in sources(index, item.value):
            if isinstance(source, Parameter) and (source.function, source.place) not in handed_in:
                handed_in[source.function, source.place] = source
                waiting += [Reduced(value, item.api) for value in given(index, source)]
    return found, list(handed_in.values())
