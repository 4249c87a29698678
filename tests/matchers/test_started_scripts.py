"""Commands that start programs of the project: their options change with what the programs take."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.core.check import every_fix
from migrator.core.settings import Settings
from migrator.files.discover import discover
from migrator.run.loading import load_project
from migrator.run.project_files import check_files

PARSER = (
    "import argparse\nimport torch\nparser = argparse.ArgumentParser()\nparser.add_argument('--device')\n"
    "parser.add_argument('--impl', choices=['cuda', 'python'])\n"
    "torch.ones(1, device=parser.parse_args().device)\n"
)


def became(folder: Path, **files: str) -> str:
    """What a migration makes of run.py."""
    for name, text in {"tools__t": PARSER, **files}.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    entries = list(discover(folder))
    project, _ = load_project(entries, jobs=1)
    done = check_files(entries, Settings("2.6.0"), project, 1, lambda *_: None, every_fix)
    return next(
        (one.data or b"").decode() or files["run"] for entry, one in done if entry.name == "run.py"
    ).partition("\n")[2]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'subprocess.run([sys.executable, "tools/t.py", "--device", "cuda"])',
            'subprocess.run([sys.executable, "tools/t.py", "--device", "npu"])',
        ),
        (
            'subprocess.run("torchrun --nproc_per_node 2 tools/t.py --device=cuda:1", shell=True)',
            'subprocess.run("torchrun --nproc_per_node 2 tools/t.py --device=npu:1", shell=True)',
        ),
        (
            'subprocess.Popen(["python", "-m", "tools.t", "--device=cuda"])',
            'subprocess.Popen(["python", "-m", "tools.t", "--device=npu"])',
        ),
        (
            'subprocess.run(f"{sys.executable} tools/t.py --device cuda:{rank} --seed {rank}", shell=True)',
            'subprocess.run(f"{sys.executable} tools/t.py --device npu:{rank} --seed {rank}", shell=True)',
        ),
        (
            'subprocess.run(["torchrun", f"--nproc_per_node={n}", "tools/t.py", "--device", f"cuda:{rank}"])',
            'subprocess.run(["torchrun", f"--nproc_per_node={n}", "tools/t.py", "--device", f"npu:{rank}"])',
        ),
        ('os.system("python tools/t.py --device cuda")', 'os.system("python tools/t.py --device npu")'),
    ],
)
def test_an_option_of_the_own_program(tmp_path, before, after):
    assert became(tmp_path, run=f"import os, subprocess, sys\n{before}\n") == f"{after}\n"


@pytest.mark.parametrize(
    "command",
    [
        'subprocess.run([sys.executable, "tools/t.py", "--impl", "cuda"])',
        'subprocess.run([sys.executable, "other.py", "--device", "cuda"])',
        'subprocess.run(["tool", "--device", "cuda"])',
        'subprocess.run([sys.executable, "tools/t.py", "--backend=nccl"])',
        "subprocess.run(['grep', '--device cuda', 'tools/t.py'])",
    ],
)
def test_what_other_programs_take_stays(tmp_path, command):
    assert became(tmp_path, run=f"import os, subprocess, sys\n{command}\n") == f"{command}\n"
