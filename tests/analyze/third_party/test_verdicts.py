"""The verdicts on functions of small libraries, and the ways through a function."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import pytest

from migrator.analyze.third_party.steps import Use, can_end_well, places, read_steps
from migrator.analyze.third_party.verdicts import Judge, Verdict
from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.names.index import ModuleIndex
from migrator.project.call_graph import CallGraph
from migrator.project.modules import scan_module
from tests.checking import inspect_text, load_pack
from tests.project.operators.projects import NATIVE, project


def verdicts(files: Mapping[str, str]) -> dict[str, Verdict]:
    """The verdicts by full name."""
    texts = {name: textwrap.dedent(text) for name, text in files.items()}
    everything = {**NATIVE, **texts}
    engine, whole = Rules(Settings(version="2.6.0"), load_pack), project(everything)
    facts, steps, found = [], {}, {}
    for name, text in texts.items():
        findings = list(inspect_text(engine, name, text, whole).findings)
        index = ModuleIndex(text, ())
        facts.append(scan_module(name, index))
        module = facts[-1].name
        steps.update(((module, own), ways) for own, ways in read_steps(index, findings).items())
        found[module] = findings
    judged = Judge(CallGraph(facts), steps, found).verdicts()
    return {".".join(filter(None, key)): verdict for key, verdict in judged.items()}


def words(files: Mapping[str, str]) -> dict[str, str]:
    return {name: verdict.word for name, verdict in verdicts(files).items()}


CLASSES = """
    import torch
    from torch import nn
    from torch.autograd import Function
    from lib import _ext

    class ScaleFunction(Function):
        @staticmethod
        def forward(ctx, x):
            return _ext.scale(x)

        @staticmethod
        def backward(ctx, x):
            return x

    scale = ScaleFunction.apply

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()

        def forward(self, x):
            return scale(x)

    class Child(Scale):
        def forward(self, x):
            return super().forward(x)

        def plain(self, x):
            return x

    class Net(nn.Module):
        def __init__(self, wide):
            super().__init__()
            self.first = Scale()
            self.maybe = Scale() if wide else nn.Identity()
            self.layers = nn.ModuleList([Child() for _ in range(3)])
            self.plain = nn.Linear(1, 1)

        def forward(self, x):
            return self.helper(x)

        def helper(self, x):
            return self.first(x)

        def looped(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

        def maybe_scaled(self, x):
            return self.maybe(x)

        def unharmed(self, x):
            return self.plain(x)

    def build():
        return Net(True)

    def run(x):
        net = Net(True)
        return net(x)

    def direct(x):
        return Scale()(x)

    class Sum:
        @property
        def value(self):
            return Child().plain(1)
"""


def test_methods_constructors_and_instances() -> None:
    found = words({"lib/net.py": CLASSES})
    assert {name.rpartition("net.")[2] for name, word in found.items() if word == "unsupported"} == {
        "lib.net",
        "ScaleFunction.forward",
        "Scale.forward",
        "Child.forward",
        "Net.forward",
        "Net.helper",
        "Net.looped",
        "run",
        "direct",
    }
    assert found["lib.net.Net.maybe_scaled"] == "unknown"
    assert "lib.net.build" not in found
    assert "lib.net.Net.unharmed" not in found


def test_guards_and_conditions() -> None:
    found = verdicts(
        {
            "lib/g.py": """
                import torch
                try:
                    from lib import _ext
                except ImportError:
                    _ext = None

                def guarded(x):
                    if _ext is not None:
                        return _ext.scale(x)
                    return x

                def by_device(x):
                    if not x.is_cuda:
                        return x
                    return _ext.scale(x)

                def option(x, fast=False):
                    if fast:
                        return _ext.scale(x)
                    return x

                def calls_option(x):
                    return option(x)

                def always(x):
                    if x.numel() == 0:
                        return x
                    return _ext.scale(x)

                def migrated(x):
                    return x.cuda()

                def abstract(x):
                    raise NotImplementedError
            """
        }
    )
    assert {name.rpartition(".")[2]: verdict.word for name, verdict in found.items()} == {
        "g": "migration_needed",  # the module: its import of the extension
        "guarded": "migration_needed",
        "by_device": "migration_needed",
        "option": "unknown",
        "calls_option": "unknown",
        "always": "unsupported",
        "migrated": "migration_needed",
    }
    assert found["lib.g.option"].condition == "fast (lib/g.py:19)"


def test_apis_that_an_npu_has_not() -> None:
    found = verdicts(
        {
            "lib/a.py": """
                import functools
                import torch
                from torch.cuda import temperature
                from flash_attn import flash_attn_func

                def marked(x):
                    temperature("x")

                def wrapping(function):
                    @functools.wraps(function)
                    def inner(*args):
                        temperature("x")
                        return function(*args)
                    return inner

                @wrapping
                def wrapped(x):
                    return x

                def attention(q):
                    return flash_attn_func(q, q, q)

                def named():
                    return temperature
            """
        }
    )
    unsupported = {name: verdict.reason for name, verdict in found.items() if verdict.word == "unsupported"}
    assert {name.rpartition(".")[2]: reason.kind for name, reason in unsupported.items()} == {
        "a": "cuda",  # the module: its import of flash_attn
        "marked": "api",
        "inner": "api",
        "wrapped": "api",
        "attention": "cuda",
    }
    assert unsupported["lib.a.attention"].api == "flash_attn.flash_attn_func"


def test_recursion_and_odd_code_end() -> None:
    found = words(
        {
            "lib/r.py": """
                from lib import _ext
                from lib.r import gone, r
                class A(A):
                    b = b
                    def f(self):
                        self.x = self.x
                        return self.x.y() + self.g()
                    def g(self):
                        return self.f()
                a = a
                def even(n):
                    return odd(n)
                def odd(n):
                    return even(_ext.scale(n))
                def f(x):
                    x = x.x
                    for x in x:
                        x()()[0]()
                    return gone(x), r.gone.x()
            """
        }
    )
    assert found == {"lib.r": "unsupported", "lib.r.odd": "unsupported", "lib.r.even": "unsupported"}


def function(body: str) -> tuple[object, ...]:
    text = (
        "try:\n    import fast\n    HAS_FAST = True\nexcept ImportError:\n    HAS_FAST = False\n"
        "def f(x, device='cuda'):\n"
    )
    return read_steps(ModuleIndex(text + textwrap.indent(textwrap.dedent(body), "    "), ()), [])["f"]


def test_through_files_and_reexports() -> None:
    found = verdicts(
        {
            "lib/__init__.py": "from .ops import *\nfrom .ops.scale import scale as zoom\n",
            "lib/ops/__init__.py": "from .scale import scale\n__all__ = ['scale']\n",
            "lib/ops/scale.py": """
                from lib import _ext

                def scale(x):
                    return _ext.scale(x)

                def plain(x):
                    return x
            """,
            "lib/use.py": """
                import lib
                from . import zoom
                from lib import ops as o

                def a(x):
                    return zoom(x)

                def b(x):
                    return lib.scale(x) + 1

                def c(x):
                    return o.scale(x)

                def d(x):
                    return o.plain(x)
            """,
        }
    )
    assert {name for name, verdict in found.items() if verdict.word == "unsupported"} == {
        "lib.ops.scale",  # the module: its import of the extension
        "lib.ops.scale.scale",
        "lib.use.a",
        "lib.use.b",
        "lib.use.c",
    }
    chain = found["lib.use.a"].chain
    assert [(link.key, link.line) for link in chain] == [
        (("lib.use", "a"), 7),
        (("lib.ops.scale", "scale"), 5),
    ]
    assert found["lib.use.a"].reason.api == "lib._ext.scale"


NO_WAY_AROUND = [
    "bad()",
    "return bad() + 1",
    "if x:\n    bad()\nelse:\n    bad()",
    "if x:\n    raise ValueError\nbad()",
    "for i in x:\n    bad()",
    "y = [bad() for i in x]",
    "with bad():\n    pass",
    "while True:\n    if x:\n        bad()\n        break",
    "try:\n    bad()\nexcept ValueError:\n    raise",
    "try:\n    pass\nfinally:\n    bad()",
    "if x.numel() == 0:\n    return x\nreturn bad()",
    "if len(x) > 0:\n    bad()",
    "if bad():\n    pass",
    "assert bad()",
    "y = good(bad())",
    "return bad() if x else bad()",
]
A_WAY_AROUND = [
    "good()",
    "if x:\n    bad()",
    "if x:\n    return 1\nbad()",
    "if x:\n    bad()\nelif y:\n    good()\nelse:\n    bad()",
    "y = x and bad()",
    "return bad() if x else good()",
    "try:\n    bad()\nexcept RuntimeError:\n    good()",
    "f = lambda: bad()",
    "def inner():\n    bad()",
    "while True:\n    if x:\n        break\n    bad()",
    "y = [bad() for i in x if i]",
    "y = bad",
]


@pytest.mark.parametrize(
    ("body", "expected"),
    [*((body, False) for body in NO_WAY_AROUND), *((body, True) for body in A_WAY_AROUND)],
)
def test_a_way_around(body: str, expected: bool) -> None:
    assert can_end_well(function(body), lambda use: use.target == "bad") is expected


@pytest.mark.parametrize(
    ("body", "guards"),
    [
        ("if x.is_cuda:\n    bad()", ["device"]),
        ("if device == 'cpu':\n    return 1\nbad()", ["device"]),
        ("if torch.cuda.is_available():\n    bad()", ["device"]),
        ("if HAS_FAST:\n    bad()", ["import"]),
        ("if fast is not None:\n    bad()", ["import"]),
        ("try:\n    bad()\nexcept ImportError:\n    good()", ["import"]),
        ("if x.training:\n    bad()", [""]),
        ("if x.numel() > 0:\n    bad()", []),
        ("if x is None:\n    raise ValueError\nbad()", []),
    ],
)
def test_conditions_of_a_place(body: str, guards: list[str]) -> None:
    (place,) = [place for place in places(function(body)) if place.use.target == "bad"]  # type: ignore[arg-type]
    assert [condition.guard for condition in place.conditions] == guards
    assert isinstance(place.use, Use)
