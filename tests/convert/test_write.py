"""How planned changes become edits: what they do not touch stays byte for byte."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.convert.write import Changes, NotPlacedError, changed_arguments, first_argument, write
from migrator.data_folders import reports_yaml
from migrator.findings.edits import apply
from migrator.findings.finding import Edit
from migrator.names.index import ModuleIndex
from migrator.names.whole_file import WholeFile

CONVERT = Path(__file__).parents[2] / "migrator" / "convert"


def made(text: str, edits: list[Edit] | tuple[Edit, ...]) -> str:
    return apply(text.encode("utf-8"), edits).decode("utf-8")


def call_in(text: str) -> tuple[ModuleIndex, ast.Call]:
    index = ModuleIndex(text, ())
    return index, next(node for node in ast.walk(index.tree) if isinstance(node, ast.Call))


@pytest.mark.parametrize(
    ("before", "drop", "add", "after"),
    [
        ("f()", [], ["a=1"], "f(a=1)"),
        ("f(x)", [], ["a=1", "b=2"], "f(x, a=1, b=2)"),
        ("f(x, **more)", [], ["a=1"], "f(x, a=1, **more)"),
        ("f(x, y, z)", [1], [], "f(x, z)"),
        ("f(x, y)", [0, 1], [], "f()"),
        ("f(x, y, True)", [2], ["a=1"], "f(x, y, a=1)"),
        ("f(x, y=1, z=2)", [1], ["a=1"], "f(x, a=1, z=2)"),
        ("f(x, y=1, z=2, **more)", [1], ["a=1"], "f(x, a=1, z=2, **more)"),
        ("f(x, y=1, z=2)", [1, 2], [], "f(x)"),
        ("f((x), (y))", [1], ["a=1"], "f((x), a=1)"),
        ("f(\n    x,  # one, (two)\n    y=1,  # three\n)", [1], [], "f(\n    x,  # three\n)"),
        ("f(\n    x,\n    y,\n)", [], ["a=1"], "f(\n    x,\n    y, a=1,\n)"),
        ("f(g for g in x)", [], ["a=1"], "f((g for g in x), a=1)"),
    ],
)
def test_arguments(before: str, drop: list[int], add: list[str], after: str) -> None:
    index, call = call_in(before)
    result = made(before, changed_arguments(index, call, drop, add))
    assert result == after
    ast.parse(result)


def test_the_first_argument_in_the_place_of_its_call() -> None:
    index, call = call_in("m = f((a + b), [0, 1])")
    assert made(index.text, first_argument(index, call)) == "m = (a + b)"


PROGRAM = """\
# What it is for.
import os

# About x.
x = 1  # one
for i in range(3):
    # About y.
    y = f(
        i
    )
    # At the end.

with g():
    z = '''
text
'''  # é
"""


def changed(text: str, **fields: object) -> str:
    file = WholeFile("a.py", text)
    changes = Changes()
    body = file.tree.body
    for name, value in fields.items():
        setattr(changes, name, value(body) if callable(value) else value)
    return made(text, write(file, changes))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("step", ["    ", "\t", "  "])
def test_statements(newline: str, step: str) -> None:
    text = PROGRAM.replace("    ", step).replace("\n", newline)
    result = changed(
        text,
        before=lambda body: {body[1]: ["before()"]},
        after=lambda body: {body[2]: ["if x:\n    after()"]},
        first=lambda body: {body[2]: ["first()"]},
        last=lambda body: {body[2]: ["last()"]},
        around=lambda body: {body[2].body[0]: (body[2].body[0], "if i:")},
        imports=["import torch", "import os"],
        header="def first():\n    pass\n",
        end=["end()"],
    )
    expected = """\
# What it is for.
import os
import torch


def first():
    pass


# About x.
before()
x = 1  # one
for i in range(3):
    first()
    # About y.
    if i:
        y = f(
            i
        )
    last()
    # At the end.
if x:
    after()

with g():
    z = '''
text
'''  # é
end()
"""
    assert result == expected.replace("    ", step).replace("\n", newline)


def test_what_goes_takes_its_comments_along() -> None:
    result = changed(PROGRAM, removed=lambda body: {body[1], body[2]})
    assert result == "# What it is for.\nimport os\n\nwith g():\n    z = '''\ntext\n'''  # é\n"


def test_a_last_line_without_an_end() -> None:
    assert changed("x = 1", end=["end()"]) == "x = 1\nend()"


def test_a_statement_behind_another_on_its_line_has_no_place() -> None:
    with pytest.raises(NotPlacedError):
        changed("a(); b()\n", before=lambda body: {body[1]: ["c()"]})


def test_each_text_is_said_somewhere() -> None:
    code = "".join(file.read_text(encoding="utf-8") for file in CONVERT.rglob("*.py"))
    for key in reports_yaml("distributed/texts.yaml"):
        assert f'"{key}"' in code, key


def test_conversions_do_without_libcst() -> None:
    code = "import sys, migrator.convert.distributed.convert; assert 'libcst' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
