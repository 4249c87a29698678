"""Where a value comes from: what an expression may be, through names, attributes, keys, branches and calls.

``made_from`` answers for rules and conversions; the other functions are its steps, for those who need one.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Callable, Optional

from migrator.light import NamedTuple
from migrator.names.tree import (
    FUNCTIONS,
    LOOPS,
    Function,
    argument_of,
    arguments_of,
    bare_name,
    called_name,
    parameters,
    string_value,
)

if TYPE_CHECKING:
    from migrator.names.index import ModuleIndex
    from migrator.names.outline import Binding

# Functions that give what they are given, as far as its dtype goes.
_KEEPING = frozenset(
    "torch.stack torch.cat torch.concat torch.hstack torch.vstack torch.sum torch.mean torch.add torch.div"
    " torch.mul torch.as_tensor torch.clone torch.squeeze torch.unsqueeze torch.flatten".split()
)
_BUILTINS = frozenset({"list", "tuple", "sorted", "reversed", "sum", "range"})
# Methods behind which a tensor has another dtype, or is none.
_CHANGING = frozenset(
    "float half bfloat16 int long short bool byte type item tolist numpy type_as size".split()
)
# Methods that may be given a dtype for their result.
_TYPING = ("to", "new_tensor", "new_zeros")
_DTYPES = frozenset(
    "torch.float32 torch.float torch.float16 torch.half torch.bfloat16 torch.float64 torch.double torch.int32"
    " torch.int torch.int64 torch.long torch.int16 torch.short torch.int8 torch.uint8 torch.bool".split()
)
_MOST_STEPS = 1000  # back from one expression; no person's program has as many
_BLOCKS_OF_THEIR_OWN = (*FUNCTIONS, ast.ClassDef)
# The keywords under which a reducing collective takes its tensors.
_TENSORS = ("tensor", "output", "input")


class Parameter(NamedTuple):
    """A parameter of a function of the file, by its place and its name."""

    function: Function
    place: int
    name: str


def made_from(index: ModuleIndex, node: ast.expr, inside: bool = False) -> Iterator[ast.expr]:
    """Everything that the value of an expression may be, as far back as the file shows.

    What is known last may be the name of a parameter. With ``inside`` also all that may be in it, or that
    gives it its dtype: what only changes the shape of a tensor, or its place, is looked through.
    """
    seen: set[ast.AST] = set()
    # With the key under which a value is asked for, where that is known.
    waiting: list[tuple[ast.expr, Optional[str]]] = [(node, None)]
    while waiting and len(seen) < _MOST_STEPS:
        each, key = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        before = one_step_back(index, each)
        if inside and isinstance(each, ast.Name):
            before = [*(before or ()), *_put_in(index, each, key)] or None
        elif inside and before is None:
            before = _inside(index, each)
        if before is None or parameter_of(index, each) is not None:
            yield each
        key = string_value(each.slice) if isinstance(each, ast.Subscript) else None
        waiting += ((value, key) for value in before or ())


def one_step_back(index: ModuleIndex, node: ast.expr) -> Optional[list[ast.expr]]:
    """The expressions of which one gives an expression its value; None where the file shows none."""
    if isinstance(node, ast.Name):
        return index.assigned(node) or None
    if isinstance(node, ast.Attribute):
        return index.stored_as(node) or None
    if isinstance(node, ast.Call):
        function = index.function_called(node)
        return (returned_values(index, function) or None) if function is not None else None
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, (ast.Subscript, ast.NamedExpr, ast.Await, ast.Starred)):
        return [node.value]
    return (list(node.values) or None) if isinstance(node, ast.Dict) else None


def made_with(index: ModuleIndex, source: ast.expr, dtypes: Container[str]) -> Optional[ast.expr]:
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


def _inside(index: ModuleIndex, node: ast.expr) -> Optional[list[ast.expr]]:
    """What may be in a value, or gives it its dtype; None where nothing in the file does."""
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return node.elts
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return [node.elt, *(generator.iter for generator in node.generators)]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if not isinstance(node, ast.Call):
        return None
    name = index.qualified_name(node.func)
    if name in _KEEPING:
        return None if any(keyword.arg == "dtype" for keyword in node.keywords) else node.args[:2]
    if isinstance(node.func, ast.Name):
        return node.args[:1] if node.func.id in _BUILTINS else None
    if not isinstance(node.func, ast.Attribute) or name:
        return None
    if node.func.attr in _CHANGING:
        return []
    given = map(index.qualified_name, arguments_of(node) if node.func.attr in _TYPING else ())
    names_dtype = node.func.attr == "double" or any(name.startswith("torch.") for name in given)
    return None if names_dtype else [node.func.value]


def _put_in(index: ModuleIndex, node: ast.Name, key: Optional[str]) -> list[ast.expr]:
    """What a name loops over, what is appended or added to it, and what is put under the key."""
    found = [loop.iter for loop in loops(index, node)]
    added = [each.node.value for each in index.bindings(node) if isinstance(each.node, ast.AugAssign)]
    found += (each for each in added if isinstance(each, (ast.List, ast.Tuple)))
    holds = any(map(_is_mapping, index.assigned(node)))
    for use in index.uses_of(node):
        around = index.parent(use)
        call = index.call_of(around)
        if call is not None and called_name(call) in ("append", "extend"):
            found += call.args[:1]
        if holds and isinstance(around, ast.Subscript) and around.value is use:
            put, other = index.parent(around), string_value(around.slice)
            fits = key == other or None in (key, other)
            if isinstance(put, ast.Assign) and around in put.targets and fits:
                found.append(put.value)
    return found


def loops(index: ModuleIndex, node: ast.Name) -> list[ast.For | ast.AsyncFor | ast.comprehension]:
    """The loops that give a name one value after the other, those in comprehensions as well."""
    found: list[ast.For | ast.AsyncFor | ast.comprehension] = []
    for binding in index.bindings(node):
        if isinstance(binding.node, (ast.For, ast.AsyncFor)):
            index.expand(binding.node)
            found.append(binding.node)
        made = getattr(binding.node, "generators", ())
        found += (each for each in made if node.id in map(bare_name, ast.walk(each.target)))
    return found


def _is_mapping(value: ast.expr) -> bool:
    """Whether a value is a dictionary by how it is made; what is put into a tensor takes its dtype."""
    if isinstance(value, ast.Call):
        return called_name(value) in ("dict", "OrderedDict", "defaultdict")
    return isinstance(value, (ast.Dict, ast.DictComp))


def parameter_of(index: ModuleIndex, node: ast.expr) -> Optional[Parameter]:
    """The parameter of a function that a name is; None for any other expression."""
    bindings = index.bindings(node) if isinstance(node, ast.Name) else []
    if not isinstance(node, ast.Name) or not any(isinstance(each.node, ast.arg) for each in bindings):
        return None
    owner = index.scope_of(node).owner(node.id)
    if owner is None or not isinstance(owner.node, FUNCTIONS):
        return None
    names = [each.arg for each in parameters(owner.node.args)]
    return Parameter(owner.node, names.index(node.id), node.id)


class Bound(NamedTuple):
    """What binds a name, in the order of ``lines``; ``every`` is it in the order of the text's walk."""

    every: list[Binding]
    bindings: list[Binding]
    lines: list[int]


def bound(index: ModuleIndex, node: ast.Name, changes: bool = True) -> Bound:
    """What binds a name, with ``changes`` also what only changes it (``+=``); each of its uses asks."""
    every = index.bindings(node)

    def find() -> Bound:
        bindings = [each for each in every if changes or not isinstance(each.node, ast.AugAssign)]
        bindings.sort(key=lambda each: each.node.lineno)
        return Bound(every, bindings, [each.node.lineno for each in bindings])

    return index.once(("bound", id(every), changes), find)  # the list stays in use, as the answer holds it


def last_assigned(index: ModuleIndex, node: ast.Name, changes: bool = True) -> Optional[Binding]:
    """The binding that gave a name its value: the only one, or the last one before it in a block around it.

    None where a branch, a later round of a loop or another function may have given it another one.
    """
    _, bindings, lines = bound(index, node, changes)
    here = index.statement_of(node)
    if len(bindings) == 1:
        return bindings[0]
    place = bisect_left(lines, getattr(here, "lineno", 0))
    if not place:
        return None
    last = bindings[bisect_left(lines, lines[place - 1])]
    for child, around in index.way_up(node):
        if isinstance(child, ast.stmt) and index.block(last.node) is index.block(child):
            return last
        behind = bisect_right(lines, getattr(around, "end_lineno", 0))
        if isinstance(around, _BLOCKS_OF_THEIR_OWN) or (isinstance(around, LOOPS) and place < behind):
            return None
    return None


def given_names(index: ModuleIndex, function: Function) -> list[str]:
    """The names of a function's parameters that calls give, by place: of a method without the object's."""
    names = [each.arg for each in parameters(function.args)]
    is_static = "staticmethod" in map(bare_name, getattr(function, "decorator_list", ()))
    return names[isinstance(index.parent(function), ast.ClassDef) and not is_static :]


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


# An expression whose value is reduced over the ranks, and the collective that does it.
Reduced = tuple[ast.expr, str]


def reduced(index: ModuleIndex, reduces: Callable[[str], bool]) -> tuple[list[Reduced], list[Parameter]]:
    """The values of a file that collectives reduce, and the parameters by which others hand them in.

    ``reduces`` says of a qualified name whether it is such a collective.
    """
    found: list[Reduced] = []
    handed_in: dict[tuple[Function, int], Parameter] = {}
    waiting: list[Reduced] = []
    for call in index.calls:
        name = index.qualified_name(call.func)
        if name and reduces(name):
            by_keyword = (item.value for item in call.keywords if item.arg in _TENSORS)
            waiting += ((value, name) for value in (*call.args[:2], *by_keyword))
    while waiting:
        found.append(waiting.pop())
        value, api = found[-1]
        for source in made_from(index, value, inside=True):
            parameter = parameter_of(index, source)
            if parameter is not None and parameter[:2] not in handed_in:
                handed_in[parameter[:2]] = parameter
                waiting += ((each, api) for each in given(index, parameter))
    return found, list(handed_in.values())
