"""Programs in which the static migration leaves what only a run shows: `verify --repair` mends them.

Each folder in ``repairs/`` is a project of CUDA, with the files of ``shared/`` beside its own; the indented
line of its README starts it. Migrated and repaired, it has to come to its end on emulated NPUs and to print
the numbers of the original on the CPU.
"""

from __future__ import annotations

import csv
import itertools
import json
import shutil
from pathlib import Path

import pytest

from migrator.cli import main
from migrator.compare.printed import compare
from migrator.emulator.launch import with_cuda_on_cpu
from migrator.verify.diagnosis import read_failures
from migrator.verify.observed import read_processes, read_reached, write_places
from migrator.verify.repair.fixes import watched
from migrator.verify.repair.loop import record, repair
from migrator.verify.verdict import NOT_COMPARED, PASSED, Course, Original, Verdict, judge
from tests.emulator.conftest import HERE, free_port, run_program
from tests.emulator.test_ways import TOLERANCE
from tests.warm import warm

REPAIRS = HERE / "repairs"
# The rules that mend each program, in the order of the rounds that are kept.
RULES = {
    "anchors": ["NPU1104"],
    "asks_the_driver": ["NPU1131"],
    "averaged_metrics": ["NPU1121"],
    "backend_of_a_file": ["NPU1101"],
    "barrier_first": ["NPU1123"],
    "cast_by_name": ["NPU1101"],
    "class_weights": ["NPU1104", "NPU1101"],
    "data_parallel": ["NPU1107"],
    "default_of_a_file": ["NPU1102"],
    "device_report": ["NPU1115"],
    "fine_tuning": ["NPU1113"],
    "flag_of_the_system": ["NPU1131"],
    "graph_network": ["NPU1119"],
    "kernel_choice": ["NPU1115"],
    "layout_buffers": ["NPU1111"],
    "layout_option": ["NPU1111", "NPU1111"],
    "moving_average": ["NPU1104"],
    "noise_generator": ["NPU1101"],
    "normal_equations": ["NPU1135", "NPU1135"],
    "plots": ["NPU1109"],
    "positional_table": ["NPU1104"],
    "precision_by_config": ["NPU1103"],
    "probes": ["NPU1117"],
    "profiled_steps": ["NPU1101"],
    "running_totals": ["NPU1105", "NPU1105"],
    "scaler_helper": ["NPU1103", "NPU1103"],
    "settings_file": ["NPU1101"],
    "settings_of_modules": ["NPU1101", "NPU1104"],
}
IN_CI = (
    "asks_the_driver",
    "averaged_metrics",
    "moving_average",
    "precision_by_config",
    "settings_file",
    "settings_of_modules",
)


@pytest.fixture(scope="module")
def machines(machine: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The environments of programs on NPUs, and of CUDA's on the CPU."""
    watched = {**machine, "NPUMIGRATE_EMULATOR_WATCHED": "1"}
    return warm(watched, "npu"), warm(with_cuda_on_cpu(watched))


def project(name: str, folder: Path) -> tuple[Path, Path]:
    """The original and the migrated project."""
    original = folder / name
    shutil.copytree(REPAIRS / name, original)
    for file in (REPAIRS / "shared").glob("*.py"):
        shutil.copy(file, original)
    assert main.run(["migrate", "-q", "-i", str(original), "-o", str(folder), "-v", "2.13"]) == 0
    return original, folder / f"{name}_msft"


def runner(machines: tuple[dict[str, str], dict[str, str]], original: Path, migrated: Path):
    """A function that runs the migrated program, and the original where that ended well, and judges."""
    numbers = itertools.count(1)

    def run() -> Verdict:
        report = migrated.parent / f"report_{next(numbers)}"
        report.mkdir()
        places = watched(migrated)
        write_places(report / "places.json", places)
        ended, _ = run_program(migrated, report, machines[0])
        failures, lost = read_failures(report), read_failures(report, "lost")
        first = None
        if not ended.code:
            before, errors = run_program(original, report.with_suffix(".cpu"), machines[1])
            assert not before.code, errors[-3000:]
            comparison = compare(before.output, ended.output, TOLERANCE)
            first = Original(str(original), before, (), comparison)
        processes = read_processes(report)
        reached = read_reached(report, places, processes)
        evaluated = frozenset((each.place.path, each.place.span) for each in reached)
        course = Course(tuple(failures), lost=tuple(lost), evaluated=evaluated)
        return judge(ended, processes, (), (), first, course)

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.rglob("*.*") if "__pycache__" not in file.parts}


@pytest.mark.parametrize(
    "name", [name if name in IN_CI else pytest.param(name, marks=pytest.mark.thorough) for name in RULES]
)
def test_repaired(machines, tmp_path: Path, name: str) -> None:
    original, migrated = project(name, tmp_path)
    before = contents(original)
    said: list[str] = []
    done = repair(migrated, runner(machines, original, migrated), said.append)
    told = [*said, *done.left, *done.verdict.reasons]
    wanted = {PASSED, NOT_COMPARED} if name == "noise_generator" else {PASSED}
    assert done.verdict.outcome in wanted, told
    assert [each.finding.code for each in done.rounds if each.kept] == RULES[name], told
    assert done.left == ()
    assert contents(original) == before
    reports = migrated / "migration_report"
    changes = (reports / "change_list.csv").read_bytes()
    record(reports, done)
    after = (reports / "change_list.csv").read_bytes()
    assert after.startswith(changes)
    rows = list(
        csv.DictReader(after[len(changes) :].decode().splitlines(keepends=True), fieldnames=_columns(changes))
    )
    assert [row["Rule"] for row in rows] == RULES[name]
    assert {row["Safety"] for row in rows} == {"unsafe"}
    in_source = [row["Rule"] for row in rows if "a static rule could have seen it" in row["Message"]]
    assert in_source == (["NPU1101"] if name == "class_weights" else [])
    for row in rows:
        assert all(line.strip() in (migrated / row["File"]).read_text() for line in row["After"].splitlines())
    assert len(list((reports / "repair").glob("round_*.diff"))) == len(done.rounds)


def _columns(changes: bytes) -> list[str]:
    return changes.decode("utf-8-sig").splitlines()[0].split(",")


@pytest.mark.thorough
def test_the_command_repairs_ranks_that_wait_for_each_other(emulate, tmp_path: Path) -> None:
    """The original cannot be compared: with Gloo, too, rank 0 waits for ever, or for a rank that has gone."""
    _, migrated = project("summary_of_rank_0", tmp_path)
    options = (str(migrated), "--repair", "--devices", "2", "--json", str(tmp_path / "verdict.json"))
    program = ("torchrun", f"--master-port={free_port()}", "--nproc_per_node=2", "train.py")
    done = emulate(*program, options=options, how="verify")
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    assert (done.returncode, verdict["repair"]["left"]) == (0, []), done.stderr[-3000:]
    (only,) = verdict["repair"]["rounds"]
    assert (only["rule"], only["file"], only["line"], only["kept"]) == ("NPU1133", "train.py", 34, True)
    assert "+    dist.all_reduce(total)\n" in only["diff"]
    assert (migrated / "migration_report/repair/round_01.diff").read_text() == only["diff"]
    assert ",NPU1133," in (migrated / "migration_report/change_list.csv").read_text().splitlines()[-1]


def test_only_a_result_of_npumigrate_is_repaired(tmp_path: Path, capsys) -> None:
    (tmp_path / "train.py").write_text("import torch\n")
    assert main.run(["verify", str(tmp_path), "--repair", "--", "python", "train.py"]) == 2
    assert "has no migration_report" in capsys.readouterr().err


def test_what_no_rule_knows_is_told_in_five_lines(machines, tmp_path: Path) -> None:
    original, migrated = project("real_mistake", tmp_path)
    before = contents(migrated)
    done = repair(migrated, runner(machines, original, migrated), print)
    assert done.rounds == ()
    assert len(done.left) == 5
    assert done.left[0].startswith("saw:    process ")
    assert "RuntimeError: mat1 and mat2 shapes cannot be multiplied" in done.left[0]
    assert done.left[1] == "where:  train.py:13: return self.second(hidden)"
    assert "hidden (float32 on npu, [4, 16])" in done.left[2]
    assert "train.py:12: hidden = self.first(inputs).relu()" in done.left[3] or "second" in done.left[3]
    assert contents(migrated) == before


def test_there_are_25_programs() -> None:
    assert len(RULES) >= 25
