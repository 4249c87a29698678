"""A browser for the pages, and a result with names and code that nobody should trust."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrator.cli.main import run

HOSTILE_NAME = "<img src=x onerror=document.title='owned'>.py"
HOSTILE = """\
import torch
s = "</script><script>document.title='owned'</script>"  # <b onmouseover="document.title='owned'">
x = torch.zeros(1, device="cuda"); y = "</script><!--"
torch.cuda.temperature("<img src=x onerror=document.title='owned'>")
"""
TRAIN = '''\
"""Train."""
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(0)
model = torch.nn.Linear(2, 2).cuda()


def step(x):
    """One step
    of several lines.
    """
    with torch.cuda.amp.autocast():
        return model(x.cuda(non_blocking=True))


torch.backends.cudnn.benchmark = True
torch.cuda.temperature("a")
'''


def migrated(folder: Path, *options: str) -> Path:
    """The result of a project of three files, one of them hostile, as ``npumigrate migrate`` leaves it."""
    project = folder / "project"
    (project / "models").mkdir(parents=True)
    (project / "train.py").write_text(TRAIN)
    (project / "models" / "net.py").write_text("import torch\n\n\ndef net(x):\n    return x.cuda()\n")
    if os.name != "nt":
        (project / HOSTILE_NAME).write_text(HOSTILE)
    assert run(["-i", str(project), "-o", str(folder), "-v", "2.6", "-q", *options]) == 0
    return folder / "project_msft"


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated project with its page, for tests that only read it."""
    return migrated(tmp_path_factory.mktemp("result"), "--format", "html")


@pytest.fixture(scope="module")  # its event loop runs in this thread, and other files have loops of their own
def browser() -> Iterator[Any]:
    """A real browser without a window; skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, (shutil.which(name) for name in names if name)), None)
    if program is None:
        pytest.skip("no Chromium: install chromium, or name one in the variable CHROMIUM")
    with playwright.sync_playwright() as started:
        # In a container there is no sandbox to use.
        running = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()
