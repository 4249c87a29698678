"""Programs that reach torch by other routes than an import: migrated once, they run on the NPU."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import migrate_text
from tests.matchers.migrating import engine

# Each has a run() that gives a tensor: on a card where the program finds one.
PROGRAMS = {
    "star": """
        from helpers import *

        def run():
            x = th.ones(2)
            return x.cuda() if th.cuda.is_available() else x
        """,
    "handed_on": """
        import helpers as h
        from helpers import cuda

        def run():
            x = h.th.ones(2)
            ready = cuda.is_available() and h.cuda.is_available() and h.th.cuda.is_available()
            return x.cuda() if ready else x
        """,
    "optional": """
        from helpers import optional_import
        torch, has_torch = optional_import('torch')

        def run():
            x = torch.ones(2)
            return x.cuda() if has_torch and torch.cuda.is_available() else x
        """,
    "lazy": """
        from helpers import LazyModule
        torch = LazyModule('torch')

        def run():
            x = torch.ones(2)
            return x.cuda() if torch.cuda.is_available() else x
        """,
    "by_name": """
        import importlib
        import sys
        th = importlib.import_module('torch')

        def run():
            ready = sys.modules['torch'].cuda.is_available() and sys.modules.get('torch').cuda.is_available()
            ready = ready and __import__('torch').cuda.is_available() and th.cuda.is_available()
            x = th.ones(2)
            return x.cuda() if ready else x
        """,
    "parameter": """
        import torch as t

        def f(torch, x):
            return x.cuda() if torch.cuda.is_available() else x

        def g(lib, x, other=t):
            ready = lib.cuda.is_available() and other.cuda.is_available()
            return x.cuda() if ready else x

        def run():
            return f(t, t.ones(2)) + g(t, t.ones(2))
        """,
    "kept": """
        import torch

        class Base:
            lib = torch

        class Runner(Base):
            def __init__(self, torch=torch):
                self.torch = torch
                self.cards = torch.cuda

            def run(self):
                x = self.torch.ones(2)
                ready = self.lib.cuda.is_available() and self.torch.cuda.is_available()
                return x.cuda() if ready and self.cards.is_available() else x

        run = Runner().run
        """,
    "given": """
        def get_torch():
            import torch
            return torch

        def run():
            torch = get_torch()
            x = torch.ones(2)
            return x.cuda() if torch.cuda.is_available() and get_torch().cuda.is_available() else x
        """,
    "late": """
        torch = None

        def load():
            global torch
            import torch

        def run():
            load()
            x = torch.ones(2)
            return x.cuda() if torch.cuda.is_available() else x
        """,
    "names": """
        import torch
        from operator import attrgetter

        def run():
            name = 'cuda'
            ready = vars(torch)['cuda'].is_available() and torch.__dict__['cuda'].is_available()
            ready = ready and attrgetter('cuda.is_available')(torch)() and getattr(torch, name).is_available()
            x = torch.ones(2)
            return x.cuda() if ready else x
        """,
    "before": """
        from again import *
        ready = torch.cuda.is_available()
        import torch

        def run():
            x = torch.ones(2)
            return x.cuda() if ready else x
        """,
    "scripted": """
        import torch
        from torch import nn
        from helpers import gate

        class Net(nn.Module):
            def forward(self, x):
                return gate(x)

        def run():
            y = torch.jit.script(Net())(torch.ones(2).cuda())
            assert y.sum() == 4
            return y
        """,
    "scopes": """
        import torch
        from contextlib import nullcontext
        from functools import partial

        class Amp:
            def __init__(self, amp=True):
                self.scope = torch.autocast if amp else nullcontext
                self.made = partial(torch.autocast, 'cuda')

            def run(self):
                x = torch.ones(2, 2).cuda()
                with self.scope('cuda', dtype=torch.bfloat16):
                    y = x @ x
                with self.made():
                    z = x @ x
                assert (y.dtype, z.dtype) == (torch.bfloat16, torch.float16)
                return y

        run = Amp().run
        """,
}
HELPERS = {
    "helpers": """
        import torch as th
        from torch import cuda


        def gate(x):
            return x * 2 if x.is_cuda else x


        def optional_import(name):
            import importlib
            return importlib.import_module(name), True


        class LazyModule:
            def __init__(self, name):
                self._name = name

            def __getattr__(self, name):
                import importlib
                return getattr(importlib.import_module(self._name), name)
        """,
    "again": "import torch\n",
}
RUN = """
import importlib, json
print("RAN", json.dumps({name: importlib.import_module(name).run().device.type for name in %r}))
"""


def test_torch_by_other_routes(emulate, tmp_path: Path) -> None:
    texts = {f"{name}.py": dedent(text) for name, text in {**HELPERS, **PROGRAMS}.items()}
    project = merge_facts([scan_file(name, text) for name, text in texts.items()])
    for name, text in texts.items():
        (tmp_path / name).write_text(migrate_text(engine("2.6"), name, text, project).text or text)
    (tmp_path / "all.py").write_text(RUN % [*PROGRAMS])
    ran = emulate("python", "all.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    places = json.loads(ran.stdout.partition("RAN ")[2].splitlines()[0])
    assert places == dict.fromkeys(PROGRAMS, "npu")
