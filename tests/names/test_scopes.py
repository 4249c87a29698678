"""Scopes: what binds a name, and who reads it."""

from __future__ import annotations

import ast

import pytest

from migrator.names.index import ModuleIndex

TEXT = """\
import torch.nn as nn, os.path
from .parts import Net as Part
size = other = 1
first, (second, *rest) = 2, (3, 4)
def outer(a, b=size, *args, c: int = 5, **more):
    global made
    made = a
    inner = lambda x: x + a
    values = [size for size in b]
    with open(a) as file: pass
    return inner
class C:
    size = 6
    def method(self):
        return size
try: pass
except ValueError as error: pass
"""


@pytest.fixture(scope="module")
def index() -> ModuleIndex:
    index = ModuleIndex(TEXT, ["nn", "Part", "size", "a", "x", "made"])
    for statement in index.statements:
        index.expand(statement)
    return index


def bound(index: ModuleIndex, owner: str) -> dict[str, list[str]]:
    """The names that a function, a class or the module binds, each with the kinds of what binds it."""
    scopes = {getattr(scope.node, "name", ""): scope for scope in index.scopes}
    return {name: [each.kind for each in found] for name, found in scopes[owner].bindings.items()}


def test_what_a_module_binds(index: ModuleIndex) -> None:
    assert bound(index, "") == {
        "nn": ["import"],
        "os": ["import"],
        "Part": ["import"],
        "size": ["assign"],
        "other": ["assign"],
        "first": ["assign"],
        "second": ["assign"],
        "rest": ["assign"],
        "outer": ["def"],
        "C": ["class"],
        "error": ["assign"],
    }


def test_what_a_function_and_a_class_bind(index: ModuleIndex) -> None:
    assert bound(index, "outer") == {
        "a": ["param"],
        "b": ["param"],
        "c": ["param"],
        "args": ["param"],
        "more": ["param"],
        "made": ["assign"],
        "inner": ["assign"],
        "values": ["assign"],
        "file": ["assign"],
    }
    assert bound(index, "C") == {"size": ["assign"], "method": ["def"]}


def test_values_of_bindings(index: ModuleIndex) -> None:
    def value(name: str, owner: str = "") -> str | None:
        scope = next(each for each in index.scopes if getattr(each.node, "name", "") == owner)
        [binding] = scope.bindings[name]
        return ast.unparse(binding.value) if binding.value is not None else None

    assert [value(name) for name in ("size", "first", "second", "rest")] == ["1", "2", "3", None]
    assert [value(name, "outer") for name in ("a", "b", "c", "args")] == [None, "size", "5", None]


@pytest.mark.parametrize(
    ("name", "line", "owner"),
    [
        ("size", 5, ""),  # a default is read outside of the function
        ("a", 7, "outer"),
        ("a", 8, "outer"),
        ("size", 15, ""),  # not the class's, which its methods do not see
    ],
)
def test_who_binds_what_is_read(index: ModuleIndex, name: str, line: int, owner: str) -> None:
    scope = next(scope for scope in index.scopes if getattr(scope.node, "name", "") == owner)
    assert line in [use.lineno for use in index.uses(name, scope)]


def test_lambdas_and_comprehensions_have_names_of_their_own(index: ModuleIndex) -> None:
    names = [node for node in ast.walk(index.tree) if isinstance(node, ast.Name)]
    x = next(node for node in names if node.id == "x")
    size = next(node for node in names if node.id == "size" and node.lineno == 9)
    assert [each.kind for each in index.bindings(x)] == ["param"]
    assert [each.kind for each in index.bindings(size)] == ["other"]


@pytest.mark.parametrize(
    ("expression", "before", "name"),
    [
        ("nn.Linear", "import torch.nn as nn", "torch.nn.Linear"),
        ("os.path.join", "import os.path", "os.path.join"),
        ("Part", "from .parts import Net as Part", ".parts.Net"),
        ("cudas.Event", "import torch\ncudas = torch.cuda", "torch.cuda.Event"),
        ("getattr(torch, 'cuda').Event", "import torch", "torch.cuda.Event"),
        ("importlib.import_module('torch.cuda').Event", "import importlib", "torch.cuda.Event"),
        ("x.y", "x = thing()", ""),
        ("x", "import torch\nx = torch.cuda\nx = 1", ""),
    ],
)
def test_qualified_names(expression: str, before: str, name: str) -> None:
    index = ModuleIndex(f"{before}\nmark({expression})\n", ["mark"])
    call = next(call for call in index.calls if ast.unparse(call.func) == "mark")
    assert index.qualified_name(call.args[0]) == name


def test_the_tree_goes_with_its_index() -> None:
    import gc
    import weakref

    class Marked(ModuleIndex):
        pass

    gc.disable()
    try:
        index = Marked(TEXT, ["torch", "size"])
        gone = weakref.ref(index)
        before = {id(scope) for scope in index.scopes}
        assert before
        del index
        assert gone() is None  # without a search for garbage
    finally:
        gc.enable()
