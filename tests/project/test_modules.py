"""What modules define, and what their names mean to one another."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest

from migrator.names.index import ModuleIndex
from migrator.project.call_graph import CallGraph, Meaning
from migrator.project.modules import ModuleFacts, scan_module


def module(text: str, file: str = "lib/layers.py") -> ModuleFacts:
    return scan_module(file, ModuleIndex(textwrap.dedent(text), ()))


def graph(files: Mapping[str, str]) -> CallGraph:
    return CallGraph(module(text, file) for file, text in files.items())


def test_definitions_go_by_their_names() -> None:
    facts = module(
        """
        class Conv(Base):
            def forward(self, x):
                def inner():
                    pass
                return inner

            @property
            def width(self): ...

            @width.setter
            def width(self, value): ...
        """
    )
    assert list(facts.definitions) == [
        *("", "Conv", "Conv.forward", "Conv.forward.inner", "Conv.width", "Conv.width#2")
    ]
    assert facts.definitions["Conv"].bases == ("Base",)
    assert facts.definitions["Conv.forward"].returned == ("Conv.forward.inner",)
    assert facts.definitions["Conv.width#2"].decorators == ("width.setter",)
    assert facts.definitions["Conv.forward"].parameters == {"self", "x"}


def test_imports_are_absolute() -> None:
    facts = module(
        "from . import ops\nfrom ..nms import nms as best\nimport torch.nn as nn\nfrom .all import *\n"
    )
    assert facts.definitions[""].imports == {"ops": "lib.ops", "best": "nms.nms", "nn": "torch.nn"}
    assert facts.stars == ("lib.all",)


@pytest.mark.parametrize(
    ("value", "held"),
    [
        ("Conv()", ("Conv()",)),
        ("fast if x else slow", ("?",)),
        ("Fast() if x else Slow()", ("Fast()", "Slow()")),
        ("nn.Sequential(Conv(), *[Norm() for _ in x])", ("Conv()", "Norm()")),
        ("layers[0]", ("layers[]",)),
        ("1", ("?",)),
    ],
)
def test_what_names_hold(value: str, held: tuple[str, ...]) -> None:
    facts = module(f"class A:\n    def __init__(self, x):\n        self.a = {value}\n        b = {value}\n")
    assert facts.definitions["A"].values == {"a": held}
    assert facts.definitions["A.__init__"].values == {"b": held}


FILES = {
    "lib/__init__.py": "from .ops import *\nfrom .ops.scale import scale as zoom\n",
    "lib/ops/__init__.py": "from .scale import Scale, scale\n",
    "lib/ops/scale.py": """
        import torch

        class Function(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): ...

        class Scale(torch.nn.Module):
            def __init__(self): ...
            def forward(self, x): return apply(x)

        apply = Function.apply

        def scale(x): ...
        """,
    "use.py": """
        import lib
        from lib import zoom

        class Net(lib.Scale):
            def __init__(self):
                super().__init__()
                self.scale = lib.ops.Scale()

            def run(self, x):
                return self.scale(x)
        """,
}


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("lib.zoom", Meaning("function", "lib.ops.scale", "scale")),
        ("lib.Scale.forward", Meaning("function", "lib.ops.scale", "Scale.forward")),
        ("lib.ops.scale.apply", Meaning("member", "lib.ops.scale", "Function.apply")),
        ("lib.ops", Meaning("module", "lib.ops")),
        ("numpy.zeros", Meaning("outside", "", "numpy.zeros")),
        ("lib.nothing", None),
    ],
)
def test_meanings(name: str, meaning: Meaning | None) -> None:
    assert graph(FILES).meaning(name) == meaning


@pytest.mark.parametrize(
    ("caller", "target", "called"),
    [
        (("use", ""), "zoom", [[("lib.ops.scale", "scale")]]),
        (("use", "Net.run"), "self.scale", [[("lib.ops.scale", "Scale.forward")]]),
        (("use", "Net.__init__"), "super().__init__", [[("lib.ops.scale", "Scale.__init__")]]),
        (("use", "Net.__init__"), "lib.ops.Scale", [[("lib.ops.scale", "Scale.__init__")]]),
        (("lib.ops.scale", "Scale.forward"), "apply", [[("lib.ops.scale", "Function.forward")]]),
        (("use", "Net.run"), "x", []),
    ],
)
def test_what_calls_call(caller: tuple[str, str], target: str, called: list[list[tuple[str, str]]]) -> None:
    assert graph(FILES).callees(caller, target) == called
