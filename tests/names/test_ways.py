"""Questions for CUDA: what does not run where the answer is no, and what runs instead."""

from __future__ import annotations

import ast
import textwrap

import pytest

from migrator.names.conditions import Choice, avoids_operators, choices, guards_cuda_build, operator_uses
from migrator.names.index import ModuleIndex


def parsed(text: str) -> ModuleIndex:
    return ModuleIndex(textwrap.dedent(text), ["operator", "is_cuda", "cpu", "is_available"])


def uses_of_operator(index: ModuleIndex) -> set[object]:
    named = [ref for ref in index.refs if isinstance(ref, ast.Attribute) and ref.attr == "operator"]
    return operator_uses(index, named)


def question(index: ModuleIndex, name: str) -> ast.AST:
    return next(ref for ref in index.refs if isinstance(ref, ast.Attribute) and ref.attr == name)


KEEPING = {
    "if and else": """
        if x.is_cuda:
            y = _C.operator(x)
        else:
            y = x + 1
        """,
    "an early return": """
        def f(x):
            if x.is_cuda:
                return _C.operator(x)
            return x + 1
        """,
    "a negated question": """
        def f(x):
            if not x.is_cuda:
                return x + 1
            return _C.operator(x)
        """,
    "an expression": "y = _C.operator(x) if x.is_cuda and flag else x + 1",
    "a name for the answer": """
        def f(x):
            fast = x.is_cuda and not x.requires_grad
            if fast:
                return _C.operator(x)
            return x + 1
        """,
    "a class that comes to the operator": """
        class Fused:
            def forward(x):
                return _C.operator(x)
        def f(x):
            if x.is_cuda:
                return Fused.apply(x)
            return x + 1
        """,
    "what stands behind it in the same condition": """
        def load():
            return _C.operator
        def f(x):
            if x.is_cuda and load():
                return g(x)
            return x + 1
        """,
}


@pytest.mark.parametrize("text", KEEPING.values(), ids=KEEPING)
def test_a_question_keeps_from_operators(text):
    index = parsed(text)
    assert avoids_operators(choices(index, question(index, "is_cuda")), uses_of_operator(index))


NOT_KEEPING = {
    "no other way": """
        if x.is_cuda:
            _C.operator(x)
        y = x
        """,
    "the other way refuses": """
        if x.is_cuda:
            y = _C.operator(x)
        else:
            raise NotImplementedError
        """,
    "operators in both ways": """
        if x.is_cuda:
            y = _C.operator(x)
        else:
            y = _C.operator(x, 1)
        """,
    "no operator": """
        def dispatch(x):
            if x.dim() > 1:
                return _C.operator(x)
            return x + 1
        def f(x):
            if x.is_cuda:
                return dispatch(x)
            return x + 1
        """,
    "the answer is only printed": """
        print(x.is_cuda)
        _C.operator(x)
        """,
}


@pytest.mark.parametrize("text", NOT_KEEPING.values(), ids=NOT_KEEPING)
def test_a_question_that_keeps_from_nothing(text):
    index = parsed(text)
    assert not avoids_operators(choices(index, question(index, "is_cuda")), uses_of_operator(index))


def test_a_question_for_the_cpu_prefers_operators():
    index = parsed("""
        def f(x):
            if x.device.type == "cpu":
                return x + 1
            return _C.operator(x)
        """)
    (cpu,) = (node for node in index.strings if isinstance(node, ast.Constant))
    found = choices(index, cpu)
    assert avoids_operators([Choice(taken, skipped) for skipped, taken in found], uses_of_operator(index))
    assert not avoids_operators(found, uses_of_operator(index))


@pytest.mark.parametrize(
    ("text", "guards"),
    [
        ("if torch.cuda.is_available():\n    ext = CUDAExtension\n", True),
        ("if not torch.cuda.is_available():\n    ext = CppExtension\nelse:\n    ext = CUDAExtension\n", True),
        ("ext = CUDAExtension if torch.cuda.is_available() else CppExtension\n", True),
        ("with_cuda = torch.cuda.is_available() or force\nif with_cuda:\n    files += ['a.cu']\n", True),
        ("if torch.cuda.is_available():\n    print(1)\next = CUDAExtension\n", False),
        ("if not torch.cuda.is_available():\n    ext = CUDAExtension\n", False),
        ("if torch.cuda.is_available() and CUDA_HOME:\n    sources.append('a.cu')\n", True),
        ("if torch.cuda.is_available():\n    f()\n", False),
        ("x = torch.cuda.is_available()\nCUDAExtension('a')\n", False),
    ],
)
def test_a_question_that_decides_about_a_build(text, guards):
    index = parsed(f"import torch\n{text}")
    assert guards_cuda_build(index, question(index, "is_available")) == guards
