"""Guards: what a program asks for before it uses it, or does without."""

from __future__ import annotations

import ast
import textwrap

import pytest

from migrator.names.conditions import is_guarded
from migrator.names.index import ModuleIndex


def compile_use(text: str) -> tuple[ModuleIndex, ast.AST]:
    """The last use of ``torch.compile`` in a text, or its import."""
    index = ModuleIndex(textwrap.dedent(text), ["compile"])
    uses = [ref for ref in index.refs if index.qualified_name(ref) == "torch.compile"]
    imports = [node for node in index.imports if any(alias.name == "compile" for alias in node.names)]
    return index, [*imports, *uses][-1]


GUARDED = {
    "hasattr": """
        import torch
        if hasattr(torch, "compile"):
            torch.compile(model)
        """,
    "hasattr in one expression": """
        import torch
        model = torch.compile(model) if hasattr(torch, "compile") else model
        faster = hasattr(torch, "compile") and torch.compile(model)
        """,
    "an earlier return": """
        import torch
        def f(model):
            if not hasattr(torch, "compile"):
                return model
            return torch.compile(model)
        """,
    "a loop that goes on": """
        import torch
        for model in models:
            if torch.__version__ < "2":
                continue
            torch.compile(model)
        """,
    "an assertion": """
        import torch
        assert hasattr(torch, "compile"), "needs torch 2"
        torch.compile(model)
        """,
    "getattr with a default": """
        import torch
        if getattr(torch, "compile", None) is not None:
            torch.compile(model)
        """,
    "dir": """
        import torch
        if "compile" in dir(torch):
            torch.compile(model)
        """,
    "the version": """
        import torch
        from packaging import version
        if version.parse(torch.__version__) >= version.parse("2.0"):
            torch.compile(model)
        """,
    "a version in a variable": """
        import torch
        major = int(torch.__version__.split(".")[0])
        if major >= 2:
            torch.compile(model)
        """,
    "a constant": """
        import torch
        TORCH_2 = torch.__version__ >= "2"
        def f(model):
            if TORCH_2 and fast:
                torch.compile(model)
        """,
    "a constant of another file": """
        import torch
        from .versions import TORCH_2_0
        if TORCH_2_0:
            torch.compile(model)
        """,
    "a constant about torchvision": """
        import torch
        from .versions import TORCHVISION_0_13
        if TORCHVISION_0_13:
            torch.compile(model)
        """,
    "a function of another file": """
        import torch
        from .versions import is_torch_greater_equal
        if is_torch_greater_equal(2, 0):
            torch.compile(model)
        """,
    "a function of the file": """
        import torch
        def can_compile():
            return hasattr(torch, "compile")
        if can_compile():
            torch.compile(model)
        """,
    "an attribute of the object": """
        import torch
        class Model:
            def __init__(self):
                self.fast = hasattr(torch, "compile")
            def f(self):
                if self.fast:
                    torch.compile(self)
        """,
    "a decorator": """
        import pytest
        import torch
        @pytest.mark.skipif(not hasattr(torch, "compile"), reason="needs torch 2")
        def test():
            torch.compile(model)
        """,
    "a test that is skipped": """
        import pytest
        import torch
        def test():
            if torch.__version__ < "2":
                pytest.skip("needs torch 2")
            torch.compile(model)
        """,
    "AttributeError": """
        import torch
        try:
            torch.compile(model)
        except (RuntimeError, AttributeError):
            pass
        """,
    "suppress": """
        import torch
        from contextlib import suppress
        with suppress(AttributeError):
            torch.compile(model)
        """,
    "ImportError": """
        try:
            from torch import compile
        except ImportError:
            compile = None
        """,
    "the other way": """
        try:
            from functorch.compile import compile
        except ImportError:
            from torch import compile
        """,
    "what an import came to": """
        import torch
        try:
            from torch import compile
            HAS_IT = True
        except ImportError:
            HAS_IT = False
        if HAS_IT:
            torch.compile(model)
        """,
    "another name that is missing": """
        import torch
        if hasattr(torch, "_dynamo"):
            torch.compile(model)
        """,
    "an import of another name that is missing": """
        import torch
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
        import torch
        def f(how: torch.compile):
            pass
        """,
}
NOT_GUARDED = {
    "plain": """
        import torch
        torch.compile(model)
        """,
    "an option": """
        import torch
        if args.compile:
            torch.compile(model)
        """,
    "another name": """
        import torch
        if hasattr(torch, "npu"):
            torch.compile(model)
        """,
    "another version": """
        import torch
        if args.version >= 2 and torch.version.cuda >= "11":
            torch.compile(model)
        """,
    "whether there is a device": """
        import torch
        if torch.cuda.is_available():
            torch.compile(model)
        """,
    "another error": """
        import torch
        try:
            torch.compile(model)
        except ValueError:
            pass
        """,
    "an error that is raised again": """
        try:
            from torch import compile
        except ImportError as error:
            raise RuntimeError("torch is too old") from error
        """,
    "a question behind it": """
        import torch
        torch.compile(model)
        if not hasattr(torch, "compile"):
            raise SystemExit
        """,
    "a question in another function": """
        import torch
        def f():
            if not hasattr(torch, "compile"):
                return
        def g():
            torch.compile(model)
        """,
    "an annotation that is evaluated": """
        import torch
        def f(how: torch.compile):
            pass
        """,
    "a constant that is set where it is asked for something else": """
        import torch
        fast = False
        if torch.cuda.is_available():
            fast = True
        if fast:
            torch.compile(model)
        """,
}


@pytest.mark.parametrize("text", GUARDED.values(), ids=GUARDED)
def test_guarded(text: str) -> None:
    assert is_guarded(*compile_use(text), ["compile"], absent="torch._dynamo".__eq__)


@pytest.mark.parametrize("text", NOT_GUARDED.values(), ids=NOT_GUARDED)
def test_not_guarded(text: str) -> None:
    assert not is_guarded(*compile_use(text), ["compile"])
