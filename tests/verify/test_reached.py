"""Places that speak of CUDA: found in the sources, and counted while a program runs. Needs no torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.emulator.launch import BOOTSTRAP
from migrator.verify.observed import find_places, read_reached, write_places

# What of torch the programs below use.
TORCH = """
import torch.cuda as cuda
class device:
    def __init__(self, type): self.type = type.split(':')[0]
class Tensor:
    is_cuda = False
    device = device('npu')
    def cuda(self): return self
"""
TORCH_CUDA = """
def is_available(): return False
def device_count(): return 0
"""
by_expression = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no positions")


def reached(tmp_path: Path, program: str, **modules: str) -> list[tuple[str, int, str, int]]:
    project, notes, site = (tmp_path / name for name in ("project", "notes", "site"))
    for folder in (project, notes, site / "torch"):
        folder.mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text(TORCH)
    (site / "torch" / "cuda.py").write_text(TORCH_CUDA)
    for name, text in {"main": program, **modules}.items():
        (project / f"{name}.py").write_text(text)
    places = find_places(project)
    write_places(notes / "places.json", places)
    env = {
        **os.environ,
        "NPUMIGRATE_EMULATOR_PLACES": str(notes / "places.json"),
        "PYTHONPATH": f"{BOOTSTRAP}{os.pathsep}{site}",
    }
    subprocess.run([sys.executable, "main.py"], cwd=project, env=env, check=True, timeout=900)
    found = read_reached(notes, places, [])
    return [(each.place.file, each.place.line, each.place.kind, each.count) for each in found]


def test_what_is_looked_for(tmp_path):
    (tmp_path / "a.py").write_text(
        '"""cuda"""\n'
        "import torch\n"
        "from torch.cuda import amp\n"
        "import cuda_tools\n"
        "x = amp.autocast, torch.cuda.Event\n"
        "y = model.cuda(), x.is_cuda, self.cuda, torch.distributed.is_nccl_available()\n"
        "z = 'cuda:0', f'cuda:{i}', 'nccl', 'cpu:gloo,cuda:nccl', 'cuda is fast', 'npu'\n"
        "cudnn = torch.backends.cudnn.benchmark\n"
    )
    (tmp_path / "broken.py").write_text("torch.cuda(\n")
    assert [(place.line, place.kind) for place in find_places(tmp_path)] == [
        (3, "torch.cuda"),
        (5, "torch.cuda.amp.autocast"),
        (5, "torch.cuda.Event"),
        (6, ".cuda"),
        (6, ".is_cuda"),
        (6, "torch.distributed.is_nccl_available"),
        (7, "'cuda'"),
        (7, "'cuda'"),
        (7, "'nccl'"),
        (7, "'nccl'"),
    ]


def test_lines_that_ran_are_counted(tmp_path):
    program = """\
import torch
from helper import pick

def never():
    return torch.cuda.device_count()

def often():
    return torch.cuda.is_available()

for i in range(3):
    often()
try:
    pass
finally:
    pick()
"""
    assert reached(tmp_path, program, helper="def pick():\n    return 'cuda'\n") == [
        ("helper.py", 2, "'cuda'", 1),
        ("main.py", 8, "torch.cuda.is_available", 3),
    ]


@by_expression
def test_of_a_line_only_what_was_evaluated(tmp_path):
    program = """\
import torch
x = torch.Tensor()
a = "cuda" if torch.cuda.is_available() else "npu"
b = [torch.cuda.device_count() for _ in range(4)]
c = lambda: torch.cuda.is_available()
c(); c()
d = {"cuda": 1, "nccl": 2, "npu": x}
e = x.device.type in ("cuda", "xpu") or (x
    .is_cuda)
f = f"cuda:{x}" if e else ""
def g(device="cuda"):
    try:
        return None
    finally:
        x.cuda()
g(); g()
"""
    assert reached(tmp_path, program) == [
        ("main.py", 3, "torch.cuda.is_available", 1),
        ("main.py", 4, "torch.cuda.device_count", 4),
        ("main.py", 5, "torch.cuda.is_available", 2),
        ("main.py", 7, "'cuda'", 1),
        ("main.py", 7, "'nccl'", 1),
        ("main.py", 8, "'cuda'", 1),
        ("main.py", 8, ".is_cuda", 1),
        ("main.py", 11, "'cuda'", 1),
        ("main.py", 15, ".cuda", 2),
    ]


def test_in_threads_and_in_processes_that_are_killed(tmp_path):
    program = """\
import os, signal, threading, torch
def use():
    torch.cuda.is_available()
thread = threading.Thread(target=use)
thread.start(); thread.join()
child = os.fork()
if not child:
    use()
    use()
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(child, 0)
use()
"""
    assert reached(tmp_path, program) == [("main.py", 3, "torch.cuda.is_available", 4)]
