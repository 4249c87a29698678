"""A fleet from its list to its tables; on this machine, and over a scheduler whose parts are killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from migrator.cli.main import run
from tests.reading import write

ROOT = Path(__file__).parents[2]
MakeList = Callable[[int], Path]


def fleet(listed: Path, out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return start(listed, out, *options, wait=True)  # type: ignore[return-value]


def start(listed: Path, out: Path, *options: str, wait: bool = False) -> object:
    command = [sys.executable, "-m", "migrator", "fleet", str(listed), "-o", str(out), "-v", "2.6", *options]
    if wait:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def tables(out: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    return pd.read_parquet(out / "repositories.parquet"), pd.read_parquet(out / "findings.parquet")


def test_a_fleet_of_this_machine_that_is_started_twice(make_list: MakeList, tmp_path: Path) -> None:
    listed, out = make_list(3), tmp_path / "out"
    with listed.open("a") as file:
        file.write(f"\n{tmp_path / 'gone'}.git@main")
        (tmp_path / "gone.git").mkdir()
    first = fleet(listed, out, "--jobs", "2", "--retries", "0")
    assert first.returncode == 1, first.stderr
    assert "gone-main: not obtained: " in first.stderr
    assert "3 of 4 repositories examined (0 in earlier runs)" in first.stdout
    table, found = tables(out)
    assert list(table["name"])[-1] == "gone-main"
    assert list(table["state"]) == ["done"] * 3 + ["not obtained"]
    assert table["readiness"][0] == 100
    assert set(found[found["name"] == "r000"]["code"]) == {"NPU111", "NPU901"}
    assert ".npu()" in (out / "migrated" / "r002" / "a.py").read_text()
    assert re.search(r"<td>NPU609 .*</td><td class=\"number\">1</td>", (out / "index.html").read_text())
    assert 'href="migrated/r002/migration_report/"' in (out / "index.html").read_text()
    assert (out / "migrated" / "r002" / "migration_report").is_dir()
    (out / "migrated" / "r002" / "a.py").write_text("mine")
    again = fleet(listed, out, "--jobs", "2", "--retries", "0")
    assert "3 of 4 repositories examined (3 in earlier runs)" in again.stdout
    assert (out / "migrated" / "r002" / "a.py").read_text() == "mine"  # nothing was done again
    (tmp_path / "repos" / "r002" / "a.py").write_text("import torch\n")
    changed = fleet(listed, out, "--jobs", "2", "--retries", "0")
    assert "3 of 4 repositories examined (2 in earlier runs)" in changed.stdout


@pytest.mark.thorough
def test_two_of_one_name_change_places(make_list: MakeList, tmp_path: Path) -> None:
    """Each result is its own repository's, though both were known before under the other's name."""
    first = make_list(2)
    program = (tmp_path / "repos" / "r001" / "a.py").read_text()
    other = write(tmp_path / "other" / "r000", {"a.py": program})
    lines = first.read_text().splitlines()

    def results(*listed: str) -> list[str]:
        first.write_text("\n".join(listed))
        assert fleet(first, tmp_path / "out").returncode == 0
        names = ("r000", "r000-2", "r001")
        return [(tmp_path / "out" / "migrated" / name / "a.py").read_text() for name in names]

    one, two, same = results(lines[0], str(other), lines[1])
    assert one != two == same
    assert results(str(other), *lines) == [two, one, same]
    shutil.rmtree(tmp_path / "out" / "migrated" / "r001")  # as a person does to have it once more
    assert results(lines[0], str(other), lines[1]) == [one, two, same]


@pytest.mark.parametrize("command", ["lint", "analyze"])
def test_other_commands(make_list: MakeList, tmp_path: Path, command: str) -> None:
    done = fleet(make_list(2), tmp_path / "out", "--do", command)
    assert done.returncode == 0, done.stderr
    table, found = tables(tmp_path / "out")
    assert list(table["state"]) == ["done", "done"]
    assert ("NPU609" in set(found["code"])) == (command == "lint")  # an analysis is about APIs of torch
    assert not (tmp_path / "out" / "migrated").exists()


def test_one_that_takes_too_long_or_too_much_stops_no_other(make_list: MakeList, tmp_path: Path) -> None:
    listed, out = make_list(1), tmp_path / "out"
    late = fleet(listed, out, "--timeout", "1", "--memory", "1MiB", "--retries", "0")
    assert late.returncode == 1
    assert tables(out)[0]["state"][0] in ("timeout", "failed")
    assert fleet(listed, out).returncode == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--do", "eat"], "--do: choose from migrate, analyze, lint, not 'eat'"),
        (["--memory", "much"], "--memory: 'much' is not a size"),
        (["--scheduler", "tcp://127.0.0.1:9"], "tcp://127.0.0.1:9: "),
    ],
)
def test_wrong_use_is_one_line(
    make_list: MakeList, tmp_path: Path, capsys, monkeypatch, options, said: str
) -> None:
    monkeypatch.setattr("migrator.fleet.job._CONNECTING", "1s")
    assert run(["fleet", str(make_list(1)), "-o", str(tmp_path / "out"), "-v", "2.6", *options]) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert said in errors


def dask(part: str, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "distributed.cli.dask_" + part, *options]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def outcomes(out: Path, count: int, seconds: float = 120) -> None:
    """Wait until so many repositories are done."""
    end = time.monotonic() + seconds
    while len(list(out.glob("outcomes/*.json"))) < count:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.thorough
@pytest.mark.parametrize("count", [8, 200], ids=["few", "two hundred"])
def test_a_worker_is_killed_and_the_scheduler_is_started_again(
    make_list: MakeList, tmp_path: Path, count: int
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, out = f"tcp://127.0.0.1:{port}", tmp_path / "out"
    scheduler = ("scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    worker = ("worker", address, "--nthreads", "1", "--no-dashboard", "--no-nanny")
    running = [dask(*scheduler), dask(*worker), dask(*worker)]
    command = start(make_list(count), out, "--scheduler", address)
    assert isinstance(command, subprocess.Popen)
    try:
        outcomes(out, 1)
        running[1].send_signal(signal.SIGKILL)
        outcomes(out, 3)
        for process in (running[0], running[2]):
            process.send_signal(signal.SIGKILL)
            process.wait()
        running += [dask(*scheduler), dask(*worker)]
        printed, errors = command.communicate(timeout=900)
    finally:
        for process in [command, *running]:
            process.kill()
            process.wait()
    assert command.returncode == 0, errors
    table, _ = tables(out)
    assert list(table["state"]) == ["done"] * count
    assert f"{count} of {count} repositories examined" in printed
    assert len(os.listdir(out / "migrated")) == count
