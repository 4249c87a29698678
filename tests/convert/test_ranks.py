"""What a converted program makes of its launcher's variables."""

from __future__ import annotations

import json
import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from migrator.data_folders import data_folder

OPEN_MPI = (
    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=4"
)
SLURM = "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2(x2) SLURM_NTASKS=4"
CURRENT = {
    "server_list": [{"server_id": "10.0.0.1", "device": [{"rank_id": "0"}, {"rank_id": "1"}]}],
    "status": "completed",
}
OLDER = {"group_list": [{"instance_list": [{"server_id": "10.0.0.7", "devices": [{}, {}, {}]}]}]}


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch):
    """The variables after join_ranks with these before it, in torchrun's order."""
    spec = spec_from_file_location("ranks", data_folder("reports") / "distributed" / "ranks.py")
    ranks = module_from_spec(spec)
    spec.loader.exec_module(ranks)

    def join(text: str, **more: str) -> str:
        given = dict(word.split("=") for word in text.split()) | more
        monkeypatch.setattr(os, "environ", given)
        ranks.join_ranks()
        names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT".split()
        return " ".join(given[name] for name in names if name in given)

    return join


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("", "0 1 0 1 127.0.0.1 0"),
        ("WORLD_SIZE=1 RANK=0", "0 1 0 1 127.0.0.1 0"),
        ("SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=1", "0 1 0 1 127.0.0.1 0"),
        ("RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=7", "3 4 1 2 a 7"),
        (OPEN_MPI, "1 4 1 4 127.0.0.1 29500"),
        (OPEN_MPI + " RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=a", "0 2 0 a 29500"),
        (OPEN_MPI.replace("OMPI", "MV2"), "1 4 1 4 127.0.0.1 29500"),
        ("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", "1 2 1 2 127.0.0.1 29500"),
        (SLURM + " MASTER_ADDR=a", "3 4 1 2 a 29500"),
        ("RANK_ID=1 RANK_SIZE=2 ASCEND_DEVICE_ID=1 MASTER_ADDR=a", "1 2 1 a 29500"),
    ],
)
def test_every_launcher_is_understood(joined, given: str, found: str) -> None:
    assert joined(given) == found


@pytest.mark.parametrize(("table", "found"), [(CURRENT, "1 2 1 2 10.0.0.1"), (OLDER, "1 2 1 3 10.0.0.7")])
def test_the_rank_table_of_modelarts_says_where_rank_0_is(joined, tmp_path: Path, table, found: str) -> None:
    (tmp_path / "table.json").write_text(json.dumps(table))
    given = "RANK_ID=1 RANK_SIZE=2 ASCEND_DEVICE_ID=1"
    assert joined(given, RANK_TABLE_FILE=str(tmp_path / "table.json")) == found + " 29500"


def test_the_first_host_of_slurm_has_rank_0(joined, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\n[ \"$1 $2 $3\" = 'show hostnames n[4-5]' ] && printf 'n4\\nn5\\n'\n")
    scontrol.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    assert joined(SLURM + " SLURM_STEP_NODELIST=n[4-5]", PATH=path) == "3 4 1 2 n4 29500"


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("WORLD_SIZE=2", "WORLD_SIZE=2: RANK, WORLD_SIZE and LOCAL_RANK have to be set, as torchrun does it"),
        ("RANK=0", "RANK=0: RANK,"),
        ("LOCAL_RANK=0", "LOCAL_RANK=0: RANK,"),
        ("RANK=1 WORLD_SIZE=2", "WORLD_SIZE=2: "),
        ("WORLD_SIZE=two RANK=0 LOCAL_RANK=0", "WORLD_SIZE=two: "),
        ("OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2: "),
        ("SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=4", "SLURM_NTASKS=4: "),
        ("RANK_ID=0 RANK_SIZE=8", "RANK_SIZE=8: "),
        ("MA_NUM_HOSTS=2", "MA_NUM_HOSTS=2: "),
        ("RANK=2 WORLD_SIZE=2 LOCAL_RANK=0", "RANK=2 is no rank: WORLD_SIZE=2"),
        (OPEN_MPI.replace("LOCAL_SIZE=4", "LOCAL_SIZE=2"), "MASTER_ADDR is not set: "),
    ],
)
def test_a_part_of_them_stops_in_one_line(joined, given: str, line: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        joined(given)
    assert str(stopped.value).startswith(line)
    assert "\n" not in str(stopped.value)
