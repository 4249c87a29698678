"""Import statements that take names from their new place."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.findings.edits import apply
from migrator.matchers.npu_import import move_names
from migrator.names.index import ModuleIndex

# (names that move, before, after)
CASES = [
    ({"x": "n.x"}, "from m import x", "from n import x"),
    ({"x": "n.o.x"}, "from m.a import x", "from n.o import x"),
    ({"x": "torch.npu.x"}, "from m import x", "from torch_npu.npu import x"),
    ({"x": "n.x"}, "from m import x as y", "from n import x as y"),
    ({"x": "n.z"}, "from m import x", "from n import z as x"),
    ({"x": "n.z"}, "from m import x as y", "from n import z as y"),
    ({"x": "n.y"}, "from m import x as y", "from n import y"),
    ({"x": "n.z"}, "from m import y, x", "from m import y\nfrom n import z as x"),
    ({"x": "n.x"}, "from m import x, y as w", "from m import y as w\nfrom n import x"),
    ({"x": "n.x", "z": "n.z"}, "from m import x, y, z", "from m import y\nfrom n import x, z"),
    ({"x": "n.x", "y": "o.y"}, "from m import x, y", "from n import x\nfrom o import y"),
    ({"x": "n.x"}, "from m import (x, y)", "from m import y\nfrom n import x"),
    ({"x": "n.x"}, "from m import(x, y,)", "from m import y\nfrom n import x"),
    ({"x": "n.x"}, "from m import (x)", "from n import (x)"),
    ({"x": "n.x"}, "from m import(x)", "from n import(x)"),
    ({"x": "n.x"}, "from  m  import  x  as  y", "from  n  import  x  as  y"),
    ({"x": "n.z"}, "from m import \\\n    x", "from n import \\\n    z as x"),
    ({"x": "n.x"}, "from m import x as x", "from n import x as x"),
    ({"x": "n.x"}, "from m \\\n  import x, \\\n  y", "from m \\\n  import y\nfrom n \\\n  import x"),
    ({"x": "n.x"}, "from m . a import x", "from n import x"),
    ({"x": "n.x"}, "from m.imports import x", "from n import x"),
    ({"import_x": "n.import_x"}, "from m.import_a import import_x", "from n import import_x"),
    (
        {"x": "n.x", "y": "n.z"},
        "from m import (  # x and (y)\n    x,  # first\n    y  # x\n    ,\n)",
        "from n import (  # x and (y)\n    x,  # first\n    z as y  # x\n    ,\n)",
    ),
    ({"x": "n.x"}, "from m import (\r\n    x,\r\n)", "from n import (\r\n    x,\r\n)"),
    (
        {"x": "n.x"},
        "from m import (\n    x  # one\n    as y, z\n)",
        "from m import (\n    z\n)\nfrom n import (\n    x  # one\n    as y,\n)",
    ),
    (
        {"x": "n.x", "z": "n.o.w"},
        "from m import (\n    x,  # first\n    y,  # second\n    z,\n)",
        "from m import (\n    y,  # second\n)\nfrom n import (\n    x,  # first\n)"
        "\nfrom n.o import (\n    w as z,\n)",
    ),
    ({"x": "n.x"}, "if a:\n    from m import x, y\n", "if a:\n    from m import y\n    from n import x\n"),
    (
        {"x": "n.x"},
        "if a:\r\n\tfrom m import x, y\r\n",
        "if a:\r\n\tfrom m import y\r\n\tfrom n import x\r\n",
    ),
    ({"x": "n.x"}, "if a: from m import x, y\n", "if a: from m import y; from n import x\n"),
    ({"x": "n.x"}, "from m import x, y; y()\n", "from m import y; from n import x; y()\n"),
    ({"*": "n"}, "from m.a import *", "from n import *"),
    ({"m.a": "n.a"}, "import m.a as b", "import n.a as b"),
    ({"m.a": "n.a"}, "import m.a, m.a as b, m.a.c as d", "import m.a, n.a as b, m.a.c as d"),
    ({"m.a": "n.a"}, "import m . a \\\n  as  b", "import n.a \\\n  as  b"),
]


def moved(source: str, names: dict[str, str]) -> str:
    """The source with the names of its first import moved."""
    index = ModuleIndex(source, [])
    return apply(index.data, [move_names(index, index.imports[0], names)]).decode("utf-8")


@pytest.mark.parametrize(("names", "before", "after"), CASES)
def test_names_are_imported_from_their_new_place(names: dict[str, str], before: str, after: str) -> None:
    assert moved(before, names) == after
    ast.parse(after)


name = st.sampled_from(["x", "y", "z", "a_b", "as_", "显"])
alias = st.tuples(name, st.one_of(st.none(), name))
space = st.sampled_from([" ", "  ", " \\\n  "])
inside = st.sampled_from(["", " ", "\n    ", "  # x, (y\n    "])
targets = st.sampled_from(["n.x", "n.w", "o.p.y", "torch.npu.z"])


@st.composite
def statements(draw: st.DrawFn) -> str:
    aliases = draw(st.lists(alias, min_size=1, max_size=4))
    written = [old + (f"{draw(space)}as{draw(space)}{new}" if new else "") for old, new in aliases]
    start = f"from{draw(space)}m.a{draw(space)}import{draw(space)}"
    if not draw(st.booleans()):
        return start + f",{draw(space)}".join(written)
    names = ",".join(draw(inside) + each + draw(inside) for each in written)
    return f"{start}({names}{draw(st.sampled_from(['', ',']))}{draw(inside)})"


def bound(source: str) -> Iterator[tuple[str, str]]:
    """The names that import statements bind, each with what it stands for, as LibCST reads them."""
    for line in libcst.parse_module(source).body:
        statement = libcst.ensure_type(
            libcst.ensure_type(line, libcst.SimpleStatementLine).body[0], libcst.ImportFrom
        )
        assert statement.module is not None
        assert not isinstance(statement.names, libcst.ImportStar)
        for each in statement.names:
            module = libcst.Module([]).code_for_node(statement.module)
            yield each.evaluated_alias or each.evaluated_name, f"{module}.{each.evaluated_name}"


@given(statements(), st.dictionaries(name, targets, max_size=3))
def test_libcst_reads_the_same_bindings_from_their_new_places(source: str, names: dict[str, str]) -> None:
    before = list(bound(source))
    names = {old: new for old, new in names.items() if any(origin == f"m.a.{old}" for _, origin in before)}
    if not names:
        return
    places = {f"m.a.{old}": new.replace("torch.npu", "torch_npu.npu") for old, new in names.items()}
    expected = [(local, places.get(origin, origin)) for local, origin in before]
    assert sorted(bound(moved(source, names))) == sorted(expected)
