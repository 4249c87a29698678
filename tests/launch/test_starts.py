"""Programs in the ways of real projects, started on emulated NPUs: each rank has an NPU of its own."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from migrator.cli.main import run
from tests.emulator.conftest import Emulate, cache, emulate

__all__ = ["cache", "emulate"]
STARTS = Path(__file__).parent / "starts"
SAID = re.compile(r"RANK (\d+) of (\d+) on npu:(\d+)")
USUAL = {("imagenet", 2), ("localrank", 2)}  # the rest is thorough
# What a machine's launcher of two ranks sets; {rank} is 0 and 1.
VARIABLES = {
    "mpirun": "OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_SIZE={n} OMPI_COMM_WORLD_LOCAL_RANK={rank} "
    "OMPI_COMM_WORLD_LOCAL_SIZE={n}",
    "modelarts": "RANK_ID={rank} RANK_SIZE={n} ASCEND_DEVICE_ID={rank} RANK_TABLE_FILE={table}",
    "srun": "SLURM_PROCID={rank} SLURM_STEP_NUM_TASKS={n} SLURM_LOCALID={rank} SLURM_STEP_TASKS_PER_NODE={n}",
}


def migrated(name: str, folder: Path, *more: str) -> Path:
    source = folder / name
    if (STARTS / name).is_dir():
        shutil.copytree(STARTS / name, source)
    else:
        source.mkdir()
        shutil.copy(STARTS / f"{name}.py", source / "train.py")
    assert run(["-q", "-i", str(source), "-o", str(folder / "out"), "-v", "2.13", *more]) == 0
    (result,) = (folder / "out").iterdir()
    return result


def ranks(said: str) -> list[tuple[int, int, int]]:
    return sorted((int(rank), int(size), int(npu)) for rank, size, npu in SAID.findall(said))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, marks=() if (name, number) in USUAL else pytest.mark.thorough)
        for name in ("imagenet", "spawn", "localrank", "ompi", "openmmlab", "detectron")
        for number in (2, 4)
    ],
)
def test_the_launcher_gives_each_rank_its_npu(
    emulate: Emulate, tmp_path: Path, name: str, number: int
) -> None:
    script = migrated(name, tmp_path) / "run_distributed_npu.sh"
    arguments = ("--", "a_config") if name == "openmmlab" else ()
    # One NPU more than ranks: none of them may count the NPUs instead of the ranks.
    devices = ("--devices", str(number + 1))
    done = emulate("bash", str(script), "--nproc", str(number), *arguments, options=devices, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert ranks(done.stdout) == [(rank, number, rank) for rank in range(number)]


@pytest.mark.parametrize(
    ("launcher", "number"),
    [
        pytest.param(
            launcher, number, marks=() if (launcher, number) == ("mpirun", 2) else pytest.mark.thorough
        )
        for launcher in VARIABLES
        for number in (2, 4)
    ],
)
def test_a_converted_program_joins_the_ranks_of_any_launcher(
    emulate: Emulate, tmp_path: Path, launcher: str, number: int
) -> None:
    script = migrated("by_horovod", tmp_path) / "train.py"
    done = emulate("bash", "-c", started_by(launcher, number, script, tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert ranks(done.stdout) == [(rank, number, rank) for rank in range(number)]


def started_by(launcher: str, number: int, script: Path, folder: Path) -> str:
    """A line of shell that starts a script as a launcher does."""
    devices = [{"rank_id": str(rank), "device_id": str(rank)} for rank in range(number)]
    table = folder / "table.json"
    table.write_text(json.dumps({"server_list": [{"server_id": "127.0.0.1", "device": devices}]}))
    told = [VARIABLES[launcher].format(rank=rank, n=number, table=table) for rank in range(number)]
    lines = [f"{variables} MASTER_PORT=$port python '{script}' &" for variables in told]
    port = (
        "port=$(python -c 'import socket; s = socket.socket(); s.bind((\"\", 0)); print(s.getsockname()[1])')"
    )
    waits = ["code=0", "for job in $(jobs -p); do wait $job || code=$?; done", "exit $code"]
    return "\n".join([port, *lines, *waits])


@pytest.mark.thorough
@pytest.mark.parametrize("launcher", VARIABLES)
def test_a_script_for_one_card_joins_them_too(emulate: Emulate, tmp_path: Path, launcher: str) -> None:
    script = migrated("one_card", tmp_path, "distributed", "-m", "train.py") / "train.py"
    done = emulate("bash", "-c", started_by(launcher, 2, script, tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "batches 2 on npu:0\n"
