"""``npumigrate launch mindspore``: the script that it makes, and what that starts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from migrator.cli.main import run
from tests.launch.conftest import started

TRAIN = """\
import json, os, sys, time
import mindspore

if __name__ == "__main__":
    names = ("RANK_ID", "DEVICE_ID", "RANK_SIZE", "RANK_TABLE_FILE")
    print(json.dumps([*map(os.environ.get, names), os.getcwd(), sys.argv[1:]]), flush=True)
    if "fail" in sys.argv and os.environ["RANK_ID"] == "2":
        sys.exit(7)
    if {"fail", "slow"} & {*sys.argv}:
        time.sleep(60)
        print("not ended")
"""
SERVERS = {"10.0.0.1": ["0", "1"], "10.0.0.2": ["2", "3"]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "train net.py").write_text(TRAIN)
    (folder / "mindspore.py").write_text("")  # in the place of the library
    assert run(["launch", "mindspore", "-o", str(folder), "-m", "train net.py"]) == 0
    listed = []
    for name, ranks in SERVERS.items():
        devices = [{"device_id": str(i), "rank_id": rank} for i, rank in enumerate(ranks)]
        listed.append({"server_id": name, "device": devices})
    (folder / "table.json").write_text(json.dumps({"version": "1.0", "server_list": listed}))
    return folder


def start(project: Path, *words: str) -> subprocess.Popen[str]:
    return started(["bash", "run_mindspore_npu.sh", *words], project, {"PYTHON": sys.executable})


def ended(project: Path, *words: str) -> tuple[int, str, str]:
    process = start(project, *words)
    out, err = process.communicate(timeout=900)
    return process.returncode, out, err


def by_table(server: str, *more: str) -> list[str]:
    return ["--rank-table", "table.json", "--server", server, "--log-dir", "logs", *more]


def test_each_rank_of_this_machine_works_in_a_folder_of_its_own(project: Path) -> None:
    code, _, err = ended(project, *by_table("10.0.0.2", "--", "--lr", "1 2"))
    assert (code, "ranks 2 to 3 of 4" in err) == (0, True), err
    said = [json.loads((project / "logs" / f"rank_{rank}" / "train.log").read_text()) for rank in "23"]
    table = str(project / "table.json")
    assert said == [
        [rank, device, "4", table, str(project / "logs" / f"rank_{rank}"), ["--lr", "1 2"]]
        for rank, device in (("2", "0"), ("3", "1"))
    ]


def test_a_failing_rank_ends_the_others(project: Path) -> None:
    code, _, err = ended(project, *by_table("10.0.0.2", "--", "fail"))
    line = "run_mindspore_npu.sh: rank 2 ended with code 7: logs/rank_2/train.log"
    assert (code, err.splitlines()[-1]) == (7, line)
    assert "not ended" not in (project / "logs" / "rank_3" / "train.log").read_text()


def test_a_signal_ends_every_rank(project: Path) -> None:
    process = start(project, *by_table("10.0.0.1", "--", "slow"))
    logs = [project / "logs" / f"rank_{rank}" / "train.log" for rank in "01"]
    while not all(log.exists() and log.read_text() for log in logs):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    left = subprocess.run(["pgrep", "-f", f"{project}/train net.py"], capture_output=True, text=True)
    assert left.stdout == ""


def test_without_a_table_msrun_starts_the_ranks(project: Path) -> None:
    code, out, _ = ended(project, "--nproc", "8", "--log-dir", "logs", "--dry-run", "--", "--lr", "1")
    script = str(project / "train net.py").replace(" ", "\\ ")
    end = f"--master_port=8118 --log_dir=logs --join=True {script} --lr 1 \n"
    assert (code, out) == (0, f"msrun --worker_num=8 --local_worker_num=8 {end}")
    several = "--nproc 8 --nnodes 2 --node-rank 1 --master-addr 10.0.0.1 --log-dir logs --dry-run -- --lr 1"
    code, out, _ = ended(project, *several.split())
    node = "--node_rank=1 --master_addr=10.0.0.1"
    assert (code, out) == (0, f"msrun --worker_num=16 --local_worker_num=8 {node} {end}")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--nproc", "x"], "--nproc x is no whole number"),
        (["--nproc", "8", "--nnodes", "2"], "with --nnodes 2, --node-rank and --master-addr are needed"),
        (["--rank-table", "none.json"], "the rank table none.json is not there"),
        (["--rank-table", "table.json"], "--server ADDRESS says which machine of"),
        (["--rank-table", "train net.py"], "train net.py is no rank table"),
        (["train.py"], "there is no option train.py"),
    ],
)
def test_wrong_use_is_one_line(project: Path, words: list[str], line: str) -> None:
    code, out, err = ended(project, *words)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1


def test_a_program_of_pytorch_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.py").write_text("import torch\nif __name__ == '__main__':\n    loss.backward()\n")
    assert run(["launch", "mindspore", "-o", str(tmp_path)]) == 2
    assert "no training script was found" in capsys.readouterr().err
    assert run(["launch", "mindspore", "-o", str(tmp_path), "-m", "train.py"]) == 2
    assert "train.py does not use MindSpore" in capsys.readouterr().err
    assert [each.name for each in tmp_path.iterdir()] == ["train.py"]


def test_what_was_assumed_is_wrapped_on_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert run(["launch", "mindspore", "-o", str(tmp_path)]) == 0
    assert capsys.readouterr().err.startswith("assumed: training script:\n")
