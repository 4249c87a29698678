from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Optional

import pytest

from migrator.cli import main
from migrator.emulator.build import build
from migrator.emulator.installed import EmulatorError, look
from migrator.emulator.launch import Machine, environment, one_launch
from migrator.verify.processes import Ended
from migrator.verify.run import free_port
from tests.warm import warm

__all__ = ["free_port"]

HERE = Path(__file__).parent
# The command that a README has: how many ranks, the script and its arguments.
COMMAND = re.compile(
    r"^    (?:python|torchrun --nproc_per_node=(\d+)|horovodrun -np (\d+) python) (\S+\.py)(.*)$", re.M
)
# Tests that themselves run on the emulated NPU: see test_on_npu.py.
collect_ignore = [] if "NPUMIGRATE_EMULATOR" in os.environ else ["on_npu"]

Emulate = Callable[..., "subprocess.CompletedProcess[str]"]


# What the programs of `verify` have in common; with an original it is migrated.
MODEL = """
import torch

torch.manual_seed(1)
net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 1))
data = torch.randn(12, 6)


def train(device, steps=3):
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(steps):
        loss = net(data.to(device)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f}")
"""


@pytest.fixture(scope="session")
def cache(request: pytest.FixtureRequest) -> Path:
    """A cache folder that later runs of the tests use again."""
    return Path(request.config.cache.mkdir("emulator"))


@pytest.fixture(scope="session")
def emulate(cache: Path) -> Emulate:
    """Runs a command on emulated NPUs: its arguments, and options of `npumigrate emulate` before them.

    ``how`` names another command, `verify`. Its programs are run by a process that has torch already; not
    those that are to be ``cold``.
    """
    try:
        look()
    except EmulatorError as error:
        pytest.skip(str(error))

    def run(
        *command: str,
        options: tuple[str, ...] = (),
        how: str = "emulate",
        env: Optional[Mapping[str, str]] = None,
        cwd: Path = HERE,
        timeout: float = 240,
        cold: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        whole = [sys.executable, "-m", "migrator", how, *options, "--", *command]
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1", **(env or {})}
        process = subprocess.Popen(
            whole,
            cwd=cwd,
            env=environment if cold else warm(environment, "npu"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            # torchrun gives each rank a session of its own, and ends them when it is asked to end.
            os.killpg(process.pid, signal.SIGTERM)
            out, err = process.communicate(timeout=900)
            err += f"\nended after {timeout} s"
        return subprocess.CompletedProcess(whole, process.returncode, out, err)

    ready = run("python", "-c", "pass", timeout=900, cold=True)  # it builds the emulated NPU, once
    assert ready.returncode == 0, ready.stderr
    return run


@pytest.fixture(scope="session")
def machine(emulate: Emulate, cache: Path) -> dict[str, str]:
    """The environment of programs on two emulated NPUs, which draw their random numbers as on the CPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        installed = look()
        built = build(installed, print)
    base = {**os.environ, "XDG_CACHE_HOME": str(cache), "OMP_NUM_THREADS": "1"}
    base.pop("PYTHONPATH", None)
    return environment(Machine(2, random_from_cpu=True), built, installed, base)


def run_program(folder: Path, report: Path, env: Mapping[str, str]) -> tuple[Ended, str]:
    """Run the program of a folder as its README says; how it ended, and what it wrote to standard error.

    It runs by itself or as so many ranks, whose output comes together by their numbers. The emulator's report
    goes into ``report``.
    """
    ((torchrun, horovodrun, script, arguments),) = COMMAND.findall((folder / "README.md").read_text())
    ranks = int(torchrun or horovodrun or 0)
    report.mkdir(parents=True, exist_ok=True)
    env = {**env, "NPUMIGRATE_EMULATOR_REPORT": str(report)}
    if (report / "places.json").exists():
        env["NPUMIGRATE_EMULATOR_PLACES"] = str(report / "places.json")
    if ranks:
        env |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(ranks))
        env |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    start = time.monotonic()
    with one_launch(env) as launch:
        command = [sys.executable, script, *shlex.split(arguments)]
        processes = []
        for rank in range(ranks or 1):
            own = {**launch.env, "RANK": str(rank), "LOCAL_RANK": str(rank)} if ranks else launch.env
            with open(f"{report}.{rank}.out", "w") as out, open(f"{report}.{rank}.err", "w") as err:
                processes.append(subprocess.Popen(command, cwd=folder, env=own, stdout=out, stderr=err))
        codes = [process.wait(timeout=900) for process in processes]
    out, err = (
        "".join(Path(f"{report}.{rank}.{kind}").read_text(errors="replace") for rank in range(len(codes)))
        for kind in ("out", "err")
    )
    return Ended(next(filter(None, codes), 0), time.monotonic() - start, output=out), err


@pytest.fixture
def verify(emulate: Emulate, tmp_path: Path):
    """Verifies a project of one file (its text) or several, beside the model: exit code, JSON, process."""

    def run(project: str | dict[str, str] | Path, *options: str, command=("python", "train.py"), cold=False):
        folder = project if isinstance(project, Path) else tmp_path / "project"
        if not isinstance(project, Path):
            folder.mkdir()
            files = {"train": project} if isinstance(project, str) else project
            for name, text in {"model": MODEL, **files}.items():
                (folder / f"{name}.py").write_text(text)
        path = tmp_path / "verdict.json"
        done = emulate(
            *command, options=(str(folder), "--json", str(path), *options), how="verify", cold=cold
        )
        assert path.exists(), done.stderr
        return done.returncode, json.loads(path.read_text()), done

    return run


def migrated(folder: Path, files: Mapping[str, str], *options: str, name: str = "project") -> Path:
    """A project of some files, migrated for torch 2.13: the folder of the result."""
    for path, text in files.items():
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_text(text)
    source = str(folder / name)
    assert main.run(["migrate", "-q", "-i", source, "-o", str(folder), "-v", "2.13", *options]) == 0
    return folder / f"{name}_msft"
