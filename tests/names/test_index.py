"""The index of a file, and its statements."""

from __future__ import annotations

import ast

import pytest

from migrator.names.index import ModuleIndex
from migrator.names.tree import ends_run, leaves, stops

TEXT = """\
import torch
@deco(here)
def f(y, z=default):
    if question: a = y; b = torch.zeros(3)
    try:
        pass
    except Error as e:
        print(e)
class C(Base):
    @member
    def m(self):
        return self.n
"""


@pytest.mark.parametrize(
    ("name", "statement", "line", "scope"),
    [
        ("here", ast.FunctionDef, 3, ast.Module),
        ("default", ast.FunctionDef, 3, ast.Module),
        ("question", ast.If, 4, ast.FunctionDef),
        ("b", ast.Assign, 4, ast.FunctionDef),
        ("Error", ast.ExceptHandler, 7, ast.FunctionDef),
        ("Base", ast.ClassDef, 9, ast.Module),
        ("member", ast.FunctionDef, 11, ast.ClassDef),
        ("self", ast.Return, 12, ast.FunctionDef),
    ],
)
def test_a_node_to_which_no_word_led_has_a_statement(
    name: str, statement: type[ast.AST], line: int, scope: type[ast.AST]
) -> None:
    index = ModuleIndex(TEXT, [])
    [node] = [n for n in ast.walk(index.tree) if isinstance(n, ast.Name) and n.id == name]
    assert index.parent(node) is None
    found = index.statement_of(node)
    assert (type(found), found.lineno) == (statement, line)
    assert isinstance(index.scope_of(node).node, scope)


def test_a_statement_that_holds_others_has_a_block_and_they_have_theirs() -> None:
    index = ModuleIndex("one()\ndef f():\n    two()\n    three()\n", {"one", "two"})
    margin, function = index.tree.body
    assert list(index.block(margin)) == [margin, function]
    assert list(index.block(function.body[0])) == function.body
    assert list(index.block(function)) == [margin, function]


def test_indexes_of_one_text_share_its_tree_but_not_what_their_words_led_to() -> None:
    text = "import torch\ntorch.cuda.empty_cache()\nother.thing()\n"
    first, second = ModuleIndex(text, ["cuda"]), ModuleIndex(text, ["thing"])
    assert first.tree is second.tree
    assert [first.segment(ref) for ref in first.refs] == ["torch.cuda.empty_cache"]
    assert [second.segment(ref) for ref in second.refs] == ["other.thing"]
    assert first.parent(second.refs[0]) is None


def test_the_module_itself_belongs_to_no_function_or_class() -> None:
    index = ModuleIndex("import torch\nf = lambda x: torch.cuda.f(x)\n", {"torch"})
    assert index.function_of(index.tree) is None
    assert index.class_of(index.tree) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("raise E", (True, False, True)),
        ("return", (True, False, False)),
        ("sys.exit(1)", (True, True, True)),
        ("pytest.skip('no NPU')", (True, True, False)),
        ("self.skipTest('no NPU')", (True, True, False)),
        ("skip = exit", (False, False, False)),
        ("log('exit')", (False, False, False)),
    ],
)
def test_what_leaves(text: str, expected: tuple[bool, bool, bool]) -> None:
    (statement,) = ast.parse(text).body
    assert (leaves(statement), ends_run(statement), stops(statement)) == expected


def test_nothing_leaves_nothing() -> None:
    assert not leaves(None)
