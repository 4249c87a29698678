"""Guards: what a program asks for before it uses it, or does without."""

from __future__ import annotations

import ast
import textwrap

import pytest

from migrator.names.conditions import is_guarded
from migrator.names.index import ModuleIndex


def compile_use(text: str) -> tuple[ModuleIndex, ast.AST]:
    """The last use of ``torch.compile`` in a text, or its import."""
    index = ModuleIndex("import torch\n" + textwrap.dedent(text), ["compile"])
    uses = [ref for ref in index.refs if index.qualified_name(ref) == "torch.compile"]
    imports = [node for node in index.imports if any(alias.name == "compile" for alias in node.names)]
    return index, [*imports, *uses][-1]


GUARDED = {
    "an assertion": """
        assert hasattr(torch, "compile"), "needs torch 2"
        torch.compile(model)
        """,
    "a version in a variable": """
        major = int(torch.__version__.split(".")[0])
        if major >= 2:
            torch.compile(model)
        """,
    "a function of the file": """
        def can_compile():
            return hasattr(torch, "compile")
        if can_compile():
            torch.compile(model)
        """,
    "an attribute of the object": """
        class Model:
            def __init__(self):
                self.fast = hasattr(torch, "compile")
            def f(self):
                if self.fast:
                    torch.compile(self)
        """,
    "a test that is skipped": """
        import pytest
        def test():
            if torch.__version__ < "2":
                pytest.skip("needs torch 2")
            torch.compile(model)
        """,
    "suppress": """
        from contextlib import suppress
        with suppress(AttributeError):
            torch.compile(model)
        """,
    "what an import came to": """
        try:
            from torch import compile
            HAS_IT = True
        except ImportError:
            HAS_IT = False
        if HAS_IT:
            torch.compile(model)
        """,
    "an import of another name that is missing": """
        try:
            import torch._dynamo
            fast = True
        except ImportError:
            fast = False
        def f(model):
            return torch.compile(model) if fast else model
        """,
    "type checkers only": """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from torch import compile
        """,
    "an annotation": """
        from __future__ import annotations
        def f(how: torch.compile):
            pass
        """,
}
NOT_GUARDED = {
    "another name": """
        if hasattr(torch, "npu"):
            torch.compile(model)
        """,
    "another error": """
        try:
            torch.compile(model)
        except ValueError:
            pass
        """,
    "an annotation that is evaluated": """
        def f(how: torch.compile):
            pass
        """,
    "a constant that is set where it is asked for something else": """
        fast = False
        if torch.cuda.is_available():
            fast = True
        if fast:
            torch.compile(model)
        """,
}


@pytest.mark.parametrize(
    "question",
    [
        'hasattr(torch, "compile")',
        '"compile" in dir(torch)',
        'hasattr(torch, "_dynamo")',  # another name that is missing
        "TORCH_2_0",
        "TORCHVISION_0_13",
        "is_torch_greater_equal(2, 0)",
    ],
)
def test_questions(question: str) -> None:
    imports = "from .versions import TORCH_2_0, TORCHVISION_0_13, is_torch_greater_equal"
    use = compile_use(f"{imports}\nif {question}:\n    torch.compile(model)\n")
    assert is_guarded(*use, ["compile"], absent="torch._dynamo".__eq__)


@pytest.mark.parametrize("text", GUARDED.values(), ids=GUARDED)
def test_guarded(text: str) -> None:
    assert is_guarded(*compile_use(text), ["compile"], absent="torch._dynamo".__eq__)


@pytest.mark.parametrize("text", NOT_GUARDED.values(), ids=NOT_GUARDED)
def test_not_guarded(text: str) -> None:
    assert not is_guarded(*compile_use(text), ["compile"])
