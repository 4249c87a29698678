"""An argument added to a call, whatever stands behind its last one."""

from __future__ import annotations

import ast

import libcst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.findings.edits import apply
from migrator.matchers.argument_edits import added_argument
from migrator.names.index import ModuleIndex

CASES = [
    ("f()", "f(k=1)"),
    ("f( )", "f( k=1)"),
    ("f(\n)", "f(\nk=1)"),
    ("f(  # none, so far)\n)", "f(  # none, so far)\nk=1)"),
    ("f(a)", "f(a, k=1)"),
    ("f(a )", "f(a, k=1 )"),
    ("f(a,)", "f(a, k=1,)"),
    ("f(a, )", "f(a, k=1, )"),
    ("f(a=b)", "f(a=b, k=1)"),
    ("f(a, *b)", "f(a, *b, k=1)"),
    ("f(a, **b)", "f(a, **b, k=1)"),
    ("f(a=b, *c)", "f(a=b, *c, k=1)"),
    ("f((a))", "f((a), k=1)"),
    ("f(((a) ) )", "f(((a) ), k=1 )"),
    ("f((a), )", "f((a), k=1, )"),
    ("f((a,))", "f((a,), k=1)"),
    ("f((a, b),)", "f((a, b), k=1,)"),
    ("f(g(a))", "f(g(a), k=1)"),
    ("f(g(a, ), )", "f(g(a, ), k=1, )"),
    ("f(a)(b)", "f(a)(b, k=1)"),
    ("(f)(a)", "(f)(a, k=1)"),
    ("f(a := 2)", "f(a := 2, k=1)"),
    ("f((a := 2))", "f((a := 2), k=1)"),
    ("f(x for x in y)", "f((x for x in y), k=1)"),
    ("f((x for x in y))", "f((x for x in y), k=1)"),
    ("f([x for x in (y)])", "f([x for x in (y)], k=1)"),
    ("f(lambda: (a))", "f(lambda: (a), k=1)"),
    ("f('),(' \"#\")", "f('),(' \"#\", k=1)"),
    ("f(f'{a!r:>{b}}),')", "f(f'{a!r:>{b}}),', k=1)"),
    ("f(\n    a,\n    b,\n)", "f(\n    a,\n    b, k=1,\n)"),
    ("f(\n    a,\n    b\n)", "f(\n    a,\n    b, k=1\n)"),
    ("f(\r\n    a,\r\n    b\r\n)", "f(\r\n    a,\r\n    b, k=1\r\n)"),
    ("f(\n    a  # one), two,\n)", "f(\n    a, k=1  # one), two,\n)"),
    ("f(\n    a,  # one), two,\n)", "f(\n    a, k=1,  # one), two,\n)"),
    ("f(\n    a  # one), two,\n    ,\n)", "f(\n    a  # one), two,\n    , k=1,\n)"),
    ("f(\n    (a)  # one)\n)", "f(\n    (a), k=1  # one)\n)"),
    ("f(\n    (a  # one)\n    )\n)", "f(\n    (a  # one)\n    ), k=1\n)"),
    ("f(a \\\n  , \\\n)", "f(a \\\n  , k=1, \\\n)"),
    ("f(é, '显卡')", "f(é, '显卡', k=1)"),
]


def added(source: str, keyword: str = "k") -> str:
    """The source of a call with an argument added to its outermost call."""
    index = ModuleIndex(source, ["f"])
    call = next(node for node in ast.walk(index.tree) if isinstance(node, ast.Call))
    return apply(index.data, added_argument(index, call, keyword, "1")).decode("utf-8")


@pytest.mark.parametrize(("before", "after"), CASES)
def test_an_argument_is_added_at_the_end(before: str, after: str) -> None:
    assert added(before) == after
    ast.parse(after)


def test_an_argument_without_a_keyword() -> None:
    assert added("f(a)", keyword="") == "f(a, 1)"
    assert added("f()", keyword="") == "f(1)"


space = st.sampled_from(["", " ", "\n    ", "  # one), (two,\n    ", " \\\n  "])
values = st.recursive(
    st.sampled_from(["a", "2", "'),'", '"#"', "f'{a}),'", "[x for x in y]", "b.c", "显"]),
    lambda inner: st.one_of(
        st.builds("({}{}{})".format, space, inner, space),
        st.builds("({}{},)".format, inner, space),
        st.builds("g({}{})".format, inner, st.sampled_from(["", ",", ", "])),
        st.builds("(w := {})".format, inner),
        st.builds("({} for x in y)".format, inner),
        st.builds("{}[{}]".format, st.just("a"), inner),
    ),
    max_leaves=4,
)
arguments = st.lists(
    st.builds("{}{}{}{}".format, space, st.sampled_from(["", "*"]), values, space), max_size=3
)


@settings(deadline=None)  # the first one loads LibCST
@given(arguments, st.sampled_from(["", ","]), space)
def test_libcst_reads_the_same_arguments_and_the_new_one(given: list[str], comma: str, end: str) -> None:
    source = f"f({','.join(given)}{comma if given else ''}{end})"
    before = libcst.ensure_type(libcst.parse_expression(source), libcst.Call)
    after = libcst.ensure_type(libcst.parse_expression(added(source)), libcst.Call)
    *kept, new = after.args
    render = libcst.Module([]).code_for_node
    assert [(old.star, render(old.value)) for old in before.args] == [
        (argument.star, render(argument.value)) for argument in kept
    ]
    assert new.keyword is not None
    assert (new.keyword.value, render(new.value)) == ("k", "1")
    assert isinstance(new.comma, libcst.Comma) == bool(before.args and comma)
    squeezed = str.maketrans("", "", " ,")
    assert added(source).replace("k=1", "").translate(squeezed) == source.translate(squeezed)
