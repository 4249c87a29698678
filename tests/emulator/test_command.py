"""`npumigrate emulate`: the command itself."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrator.api_support.companions import of_torch
from migrator.cli import main
from migrator.cli.emulate import write_insight
from migrator.emulator import environments, installed
from migrator.emulator.installed import (
    EmulatorError,
    is_supported,
    packages_of,
    pair_trouble,
    supported,
    tried,
)
from migrator.this_copy import install_command
from tests.emulator.conftest import HERE, Emulate, free_port
from tests.timing import wait_until
from tests.warm import warm


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main.run(["emulate", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--memory", "lots"), "--memory: 'lots' is not a size of at least 1MiB, such as 64GiB"),
        (("--memory", "12KiB"), "--memory: '12KiB' is not a size of at least 1MiB, such as 64GiB"),
        (("--soc", "H100"), "--soc: 'H100' is not an Ascend chip name, such as Ascend910B2"),
        (("--devices", "33"), "--devices: expected a number >= 1, <= 32, not '33'"),
    ],
)
def test_wrong_use(capsys, options, message):
    assert run(capsys, *options, "--", "true") == (2, "", f"npumigrate: {message}\n")


def test_not_linux(capsys, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    code, out, err = run(capsys, "--", "true")
    assert (code, out) == (126, "")
    assert err == ("npumigrate: the emulator runs on Linux, not on Darwin: torch_npu has no package for it\n")


def test_python_too_old(capsys, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    code, out, err = run(capsys, "--", "true")
    assert (code, out) == (126, "")
    assert "use Python 3.10 or newer" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("torch", "torch_npu", "message"),
    [
        (None, None, "torch and torch_npu not installed"),
        ("2.13.0", None, "torch_npu not installed"),
        ("2.13.0+cpu", "2.7.1", "torch 2.13.0+cpu with torch_npu 2.7.1 is not supported"),
        ("2.12.0", "2.12.0", "torch 2.13.* with torch_npu 2.13.*"),
    ],
)
def test_packages_missing_or_not_matching(capsys, monkeypatch, torch, torch_npu, message):
    monkeypatch.setattr(installed, "platform_trouble", lambda: None)
    monkeypatch.setattr(installed, "version_of", {"torch": torch, "torch_npu": torch_npu}.get)
    code, out, err = run(capsys, "--", "true")
    assert (code, out) == (126, "")
    assert message in err
    assert err.count("\n") == 1
    assert install_command("emulator") in err
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert message in out


def test_no_compiler(capsys, monkeypatch):
    monkeypatch.setattr(installed, "platform_trouble", lambda: None)
    monkeypatch.setattr(installed, "version_of", lambda name, python=None: "2.13.0")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    code, out, err = run(capsys, "--", "true")
    assert (code, out) == (126, "")
    assert err.startswith("npumigrate: no C++ compiler: install g++ (Debian, Ubuntu)")
    assert err.count("\n") == 1


def test_help():
    parser = main.parser("emulate")
    shown = CliRunner().invoke(parser, ["emulate", "--help"], prog_name="npumigrate").output
    assert "npumigrate emulate" in shown


def test_exit_code_and_output_are_the_programs(emulate):
    done = emulate("sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "err\n")
    assert emulate("sh", "-c", "kill -9 $$", cold=True).returncode == 128 + 9


def test_no_such_command(emulate):
    done = emulate("no-such-program")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "npumigrate: command not found: no-such-program\n"


def test_a_program_below_a_shell_below_python(emulate):
    program = "import torch; print(torch.npu.device_count(), torch.ones(2, device='npu').sum().item())"
    shell = f'python -c "import subprocess; subprocess.run([\\"python\\", \\"-c\\", \\"{program}\\"])"'
    done = emulate("sh", "-c", shell, options=("--devices", "3"), cold=True)
    assert (done.returncode, done.stdout) == (0, "3 2.0\n"), done.stderr


@pytest.mark.thorough
def test_the_program_need_not_end_in_order(emulate):
    program = (
        "import torch, threading\n"
        "def work():\n"
        "    x = torch.ones(3, 3, device='npu', requires_grad=True); (x @ x).sum().backward()\n"
        "work()\n"
        "t = threading.Thread(target=work); t.start(); t.join()\n"
    )
    done = emulate("sh", "-c", 'for i in 1 2 3 4 5 6; do python -c "$0" || exit 1; done', program)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


_ADDS = "import torch, torch_npu; print((torch.ones(2).npu() + 1).tolist())"


def test_a_program_that_replaces_pythonpath_is_told(emulate: Emulate) -> None:
    done = emulate("env", "PYTHONPATH=src", "python", "-c", _ADDS, cold=True)
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("npumigrate emulate: ")]
    assert said[0].startswith(
        "npumigrate emulate: this Python runs without the emulator, as its PYTHONPATH lacks"
    )
    assert "PYTHONPATH=src:$PYTHONPATH" in said[0]


def test_a_program_that_replaces_the_path_of_libraries_runs(emulate: Emulate) -> None:
    done = emulate("env", "LD_LIBRARY_PATH=/opt/lib", "python", "-c", _ADDS, cold=True)
    assert (done.returncode, done.stdout) == (0, "[2.0, 2.0]\n"), done.stderr


def test_other_python_programs_notice_nothing(emulate, tmp_path):
    customized = "import builtins, weakref\nclass Finder: pass\nbuiltins.finder = weakref.ref(Finder)\n"
    (tmp_path / "sitecustomize.py").write_text(customized)
    program = "import gc, sys; gc.collect()\n"
    program += "print(finder() is not None, any('torch' in name for name in sys.modules))"
    path = os.pathsep.join([str(tmp_path), str(HERE.parents[1])])
    done = emulate("python", "-c", program, env={"PYTHONPATH": path}, cold=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True False\n", "")


def test_a_report_says_what_ran_where(emulate, tmp_path):
    """One for each process that imports torch or computes; not for a forked child that does nothing."""
    program = (
        "import multiprocessing, os, sys\n"
        "def work(device):\n"
        "    import torch; (torch.ones(2, 2, device=device) @ torch.ones(2, 2, device=device)).sum()\n"
        "child = multiprocessing.get_context('fork').Process(target=work, args=('npu:0',))\n"
        "child.start(); child.join(); work('npu:1')\n"
        "if os.fork() == 0: sys.exit()\n"
        "os.wait()\n"
    )
    done = emulate("python", "-c", program, options=("--report", str(tmp_path)))
    assert done.returncode == 0, done.stderr
    reports = [json.loads(file.read_text()) for file in tmp_path.glob("process-*.json")]
    of_child, of_parent = sorted(reports, key=lambda report: list(report["operators"]))
    assert of_child["operators"]["0"]["aten::mm"] == of_parent["operators"]["1"]["aten::mm"] == 1
    assert of_parent["without_npu_kernel"] == []
    assert of_parent["collectives"] == {}


def test_a_program_that_loads_torch_npu_later_than_torch(emulate):
    """Beside a process for programs of the CPU, which cannot load it."""
    warm(os.environ)
    program = "import torch, torch_npu; print(torch.ones(1).npu().device)"
    done = emulate("python", "-c", program, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    assert (done.returncode, done.stdout) == (0, "npu:0\n"), done.stderr


DYNAMIC = """
import torch, torch_npu
nets = [torch.nn.Linear(4, 1).npu() for _ in range(2)]
optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in nets]
fixed = torch.ones(3, 3).npu()
for step in range(5):
    for net, optimizer in zip(nets, optimizers):
        optimizer.zero_grad()
        net(torch.ones(4 + step // 2, 4).npu()).mean().backward()
        optimizer.step()
    torch.sin(fixed)
torch.cos(fixed)
"""


def test_a_report_tells_of_new_shapes_in_later_steps(emulate, tmp_path):
    (tmp_path / "dynamic.py").write_text(DYNAMIC)
    done = emulate("python", "dynamic.py", options=("--report", "."), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [file] = tmp_path.glob("process-*.json")
    shapes = json.loads(file.read_text())["dynamic_shapes"]
    assert shapes["steps"] == 5
    found = {entry["operator"]: entry for entry in shapes["operators"]}
    assert found["aten::mean"] == {
        "operator": "aten::mean",
        "shapes": 3,
        "steps": 2,  # the third and the fifth
        "place": "dynamic.py:9",
        "first": "4x1",
        "then": "5x1",
    }
    assert not {"aten::sin", "aten::cos"}.intersection(found)  # one shape; only after the last step


def test_a_report_of_a_program_that_leaves_at_once(emulate, tmp_path):
    program = (
        "import os, torch; x = torch.ones(2, device='npu'); x + x\n"
        "if child := os.fork(): os.waitpid(child, 0)\n"
        "os._exit(4)"
    )
    done = emulate("python", "-c", program, options=("--report", str(tmp_path)))
    assert done.returncode == 4, done.stderr
    (report,) = (json.loads(file.read_text()) for file in tmp_path.glob("process-*.json"))
    assert report["operators"]["0"]["aten::add.Tensor"] == 1


def test_a_report_of_a_program_that_has_odd_words_for_arguments_and_rank(emulate, tmp_path):
    program = (
        "import os, sys, torch; x = torch.ones(2, device='npu'); x + x\n"
        "odd = os.fsdecode(b'caf\\xe9'); sys.argv.append(odd); os.environ['RANK'] = odd"
    )
    done = emulate("python", "-c", program, options=("--report", str(tmp_path)))
    assert (done.returncode, "cannot read" in done.stderr) == (0, False), done.stderr
    (report,) = (json.loads(file.read_text()) for file in tmp_path.glob("process-*.json"))
    assert report["rank"] is None
    assert (tmp_path / "npu_insight.json").is_file()


CHILDREN = """
import multiprocessing, os, sys, time, torch, torch.multiprocessing
from concurrent.futures import ProcessPoolExecutor

def work(size, done=None):
    (torch.ones(size, size).npu() @ torch.ones(size, size).npu()).sum().item()
    if done:
        done.set()
        time.sleep(100)

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return torch.ones(30, 30) @ torch.ones(30, 30)

if __name__ == "__main__":
    for size, way in enumerate(("fork", "spawn", "forkserver"), 2):
        context = multiprocessing.get_context(way)
        child = context.Process(target=work, args=(size,))
        child.start(); child.join()
    torch.multiprocessing.spawn(work, args=(), nprocs=2)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        pool.submit(work, 5).result()
    with multiprocessing.get_context("fork").Pool(1) as pool:  # which terminates it
        pool.apply(work, (6,))
    context = multiprocessing.get_context("fork")
    done = context.Event()
    child = context.Process(target=work, args=(7, done))
    child.start(); done.wait(); child.terminate(); child.join()
    for leave in (os._exit, sys.exit):
        if not os.fork():
            work(8)
            leave(0)
        os.wait()
    list(torch.utils.data.DataLoader(Data(), num_workers=1, multiprocessing_context="fork"))
    (torch.ones(9, 9) @ torch.ones(9, 9)).sum()
"""


def test_children_have_a_report_however_they_are_started_and_end(emulate, tmp_path):
    """``spawn`` of torch gives the first function its number: 0 and 1. Loading data is no work of its own."""
    (tmp_path / "train.py").write_text("import torch_npu\n" + CHILDREN)
    done = emulate("python", "train.py", options=("--report", "report"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    reports = [json.loads(file.read_text()) for file in (tmp_path / "report").glob("process-*.json")]
    amounts = {"0": [], "cpu": []}
    for report in reports:
        for device, work in report["work"].items():
            amounts[device] += [round(work["forward"]["multiply_adds"] ** (1 / 3))]
    assert sorted(amounts["0"]) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]
    assert [size for size in amounts["cpu"] if size > 1] == [9]


@pytest.mark.parametrize("name", [b"caf\xe9.py", b"a" + "训练".encode() * 40 + b".py"])
def test_names_that_are_not_utf_8_or_too_long_are_no_trouble(emulate, tmp_path, name):
    """The place of a collective is told to the other ranks, where there is room for 159 bytes."""
    program = """
import os, sys, torch, torch_npu, torch.distributed as dist
dist.init_process_group("hccl")
torch.npu.set_device(dist.get_rank())
values = torch.ones(4).npu()
dist.all_reduce(values)
try:
    dist.all_reduce(values if dist.get_rank() else values[:2])
except RuntimeError as error:
    said = "differ" if "do not call the same collective" in str(error) else str(error)
    os.write(1, f"{said} ".encode())  # in one piece: the other rank says it at the same time
"""
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(program)
    start = ("torchrun", f"--master-port={free_port()}", "--nproc_per_node=2")
    options = ("--report", "report", "--devices", "2")
    done = emulate(*start, os.fsdecode(name), os.fsdecode(b"\xff"), options=options, cwd=tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, ["differ", "differ"]), done.stderr[-2000:]
    assert "Exception ignored" not in done.stderr
    assert len(json.loads((tmp_path / "report/npu_insight.json").read_text())["processes"]) >= 2


def test_a_report_that_cannot_be_written_is_told_once(emulate, tmp_path):
    (tmp_path / "file").touch()
    done = emulate("python", "-c", "import torch", options=("--report", str(tmp_path / "file")))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.count("no report from process") == 1


def test_processes_share_the_memory_of_an_npu(emulate):
    half = "torch.empty(1 << 30, dtype=torch.uint8, device='npu:0')"
    program = (
        "import os, subprocess, sys, torch\n"
        f"mine = {half}\n"
        "def other(code, **env):\n"
        "    env = {**os.environ, **env}\n"
        "    return subprocess.run([sys.executable, '-c', code], env=env, capture_output=True).returncode\n"
        f'print(other("import torch; {half}; {half}"))\n'
        f"print(other(\"import torch; {half}; {half}\", ASCEND_RT_VISIBLE_DEVICES='1'))\n"
        "before = torch.npu.mem_get_info(0)[0]\n"
        "killed = 'import os, torch; x = torch.ones(1 << 26, device=\"npu:0\"); os.kill(os.getpid(), 9)'\n"
        "print(other(killed), torch.npu.mem_get_info(0)[0] == before)\n"
    )
    done = emulate("python", "-c", program, options=("--memory", "2GiB"))
    assert (done.returncode, done.stdout) == (0, "1\n0\n-9 True\n"), done.stderr


def test_devices_can_be_hidden_until_one_is_used(emulate):
    program = (
        "import os, torch; before = torch.npu.device_count();"
        "os.environ['ASCEND_RT_VISIBLE_DEVICES'] = '1'; print(before, torch.npu.device_count());"
        "torch.ones(1).npu(); os.environ['ASCEND_RT_VISIBLE_DEVICES'] = '0,1'; torch.ones(1, device='npu:0')"
    )
    done = emulate("python", "-c", program, options=("--devices", "2"))
    assert (done.returncode, done.stdout) == (0, "2 1\n"), done.stderr


def test_errors_come_at_the_next_synchronization_where_the_program_asks_for_it(emulate):
    program = (
        "import torch\n"
        "data = torch.ones(2, 2, dtype=torch.int64).npu()\n"
        "for wait in (torch.npu.synchronize, lambda: made.cpu(), lambda: made.sum().item()):\n"
        "    made = data @ data\n"
        "    try:\n"
        "        wait()\n"
        "    except RuntimeError as error:\n"
        "        text = str(error)\n"
        "        print('name is aclnnMm.' in text, 'not implemented for DT_INT64' in text)\n"
        "    wait()\n"
    )
    done = emulate("env", "TASK_QUEUE_ENABLE=2", "python", "-c", program)
    assert (done.returncode, done.stdout) == (0, "True True\n" * 3), done.stderr
    blocking = ("TASK_QUEUE_ENABLE=2", "ASCEND_LAUNCH_BLOCKING=1")
    done = emulate("env", *blocking, "python", "-c", program)
    assert "call aclnnMm failed" in done.stderr


def test_numbers_drawn_as_on_the_cpu(emulate):
    program = (
        "import torch; d = torch.nn.functional.dropout;"
        "torch.manual_seed(1); a = d(torch.ones(99, device='npu'));"
        "torch.manual_seed(1); print(torch.equal(a.cpu(), d(torch.ones(99))))"
    )
    assert emulate("python", "-c", program).stdout == "False\n"
    assert emulate("python", "-c", program, options=("--cpu-random",)).stdout == "True\n"


# Who is hit, and by what: the process group as by a terminal, npumigrate alone, or one of the ranks.
@pytest.mark.parametrize(
    ("target", "number"),
    [
        ("group", signal.SIGINT),
        pytest.param("npumigrate", signal.SIGTERM, marks=pytest.mark.thorough),
        pytest.param("npumigrate", signal.SIGKILL, marks=pytest.mark.thorough),
        ("rank", signal.SIGKILL),
    ],
)
def test_ended_from_outside_nothing_is_left(emulate, cache, tmp_path, target, number):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time, torch, torch.distributed as dist\n"
        "rank = int(os.environ['RANK']); torch.npu.set_device(rank)\n"
        "dist.init_process_group('hccl'); dist.barrier()\n"
        f"open(r'{tmp_path}/pid' + str(rank), 'w').write(str(os.getpid()))\n"
        "if rank == 0: time.sleep(600)\n"
        "dist.barrier()\n"
    )
    command = ["torchrun", "--standalone", "--nproc_per_node=2", str(program)]
    process = subprocess.Popen(
        [sys.executable, "-m", "migrator", "emulate", "--", *command],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        cwd=HERE,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    files = [tmp_path / f"pid{rank}" for rank in range(2)]
    wait_until(lambda: all(file.exists() and file.read_text() for file in files), 600)
    ranks = [file.read_text() for file in files]
    below = Path("/proc", str(process.pid), "task", str(process.pid), "children").read_text().split()
    assert len(below) == 2  # torchrun, and what ends all of it
    started = [*below, *ranks]
    if target == "group":
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid if target == "npumigrate" else int(ranks[0]), number)
    assert process.wait(timeout=900) != 0
    wait_until(lambda: not any(Path("/proc", pid).exists() for pid in started), 200)
    # Other tests have memory there, too: torch names its own after the process.
    assert [name for name in os.listdir("/dev/shm") if not {*started}.isdisjoint(name.split("_"))] == []


def test_strict_refuses_what_documents_do_not_list(emulate: Emulate) -> None:
    program = "import torch, torch_npu; data = torch.ones(2, dtype=torch.int16).npu(); {}"
    fails = emulate("python", "-c", program.format("torch.addcmul(data, data, data)"), options=("--strict",))
    assert fails.returncode == 1
    assert (
        "npumigrate emulate --strict: torch_npu's documents do not list DT_INT16 for aten::addcmul"
        in fails.stderr
    )
    runs = emulate("python", "-c", program.format("print((data + 1).sum().item())"), options=("--strict",))
    assert (runs.returncode, runs.stdout) == (0, "4\n"), runs.stderr


RACES = """\
import torch
import torch_npu
side = torch.npu.Stream()
data = torch.randn(1000, device="npu")
with torch.npu.stream(side):
    twice = data * 2
whole = twice + 1
side.wait_stream(torch.npu.current_stream())
kept = torch.ones(5, device="npu")
side.wait_stream(torch.npu.current_stream())
with torch.npu.stream(side):
    more = kept + 1
del kept
for _ in range(2):
    twice + 1
print("end")
"""


def test_races_name_both_lines_of_streams_that_do_not_wait(emulate: Emulate, tmp_path: Path) -> None:
    script = tmp_path / "races.py"
    script.write_text(RACES)
    done = emulate("python", "races.py", options=("--races",), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    said = [line for line in done.stderr.splitlines() if "--races" in line]
    assert [re.findall(r"races\.py:(\d+)", line) for line in said] == [
        *(["6", "4"], ["7", "6"], ["12", "9"], ["15", "6"])
    ]
    assert "races.py:6 (aten::mul.Tensor) reads on one stream what races.py:4 (aten::randn) wrote" in said[0]
    assert "record_stream or a wait before it is freed is missing" in said[2]


def test_streams_that_wait_are_no_race(emulate: Emulate, tmp_path: Path) -> None:
    waits = "side.wait_stream(torch.npu.current_stream())\n"
    program = RACES.replace("with", f"{waits}with").replace(
        "whole", "torch.npu.current_stream().wait_stream(side)\nwhole"
    )
    (tmp_path / "waits.py").write_text(program.replace("del kept", "kept.record_stream(side)\ndel kept"))
    done = emulate("python", "waits.py", options=("--races",), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr
    assert "--races" not in done.stderr


def test_an_npu_without_infinities_notes_an_overflow(emulate: Emulate) -> None:
    program = (
        "import torch, torch_npu\n"
        "noted = torch.npu.get_npu_overflow_flag\n"
        "data = torch.full((2,), 40000.0, dtype=torch.half, device='npu')\n"
        "print(noted(), data.add_(1).shape[0], noted())\n"
        "data.masked_fill(data > 0, -float('inf'))\n"
        "print(noted(), (data + data).shape[0], noted())\n"
        "torch.npu.clear_npu_overflow_flag()\n"
        "print(noted())\n"
    )
    done = emulate("python", "-c", program, options=("--soc", "Ascend910A"))
    assert (done.returncode, done.stdout) == (0, "False 2 False\nFalse 2 True\nFalse\n"), done.stderr


def test_a_preloaded_library_finds_the_next_function(emulate: Emulate, tmp_path: Path) -> None:
    """As torch_npu's test of LD_PRELOAD: what counts allocations passes them on."""
    (tmp_path / "hook.c").write_text(
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <stdio.h>\n"
        "int aclrtMallocAlign32(void **to, unsigned long size, int policy) {\n"
        '  int (*next)(void **, unsigned long, int) = dlsym(RTLD_NEXT, "aclrtMallocAlign32");\n'
        '  puts("allocated"); fflush(stdout);\n'
        "  return next ? next(to, size, policy) : -1;\n}\n"
    )
    command = ["cc", "-shared", "-fPIC", "-o", "hook.so", "hook.c", "-ldl"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = "import torch, torch_npu\nprint(torch.ones(2).npu().sum().item())"
    hook = str(tmp_path / "hook.so")
    done = emulate("env", f"LD_PRELOAD={hook}", "python", "-c", program, cold=True)
    assert (done.returncode, done.stdout) == (0, "allocated\n2.0\n"), done.stderr


def test_what_torch_npu_has_a_kernel_for_as_a_whole_is_no_fallback(emulate: Emulate, tmp_path: Path) -> None:
    program = (
        "import torch, torch_npu\n"
        "from torch import nn\n"
        "data = (torch.eye(4) * 3 + torch.rand(4, 4)).npu()\n"
        "torch.inverse(data); torch.slogdet(data); torch.linalg.cholesky(data @ data.t())\n"
        "layer = nn.utils.weight_norm(nn.Linear(4, 4)).npu()\n"
        "layer(data).sum().backward()\n"
        "print(layer.weight_g.grad.shape, torch.linalg.det(data).shape)\n"
    )
    done = emulate("python", "-c", program, options=("--report", str(tmp_path)))
    assert (done.returncode, done.stdout) == (0, "torch.Size([4, 1]) torch.Size([])\n"), done.stderr
    (report,) = (json.loads(path.read_text()) for path in tmp_path.glob("process-*.json"))
    assert report["without_npu_kernel"] == ["aten::_linalg_det.result"]
    assert {"aten::inverse", "aten::slogdet"} <= set(report["operators"]["0"])


def test_the_emulated_machine_is_ready(emulate):
    variables = {"ASCEND_RT_VISIBLE_DEVICES": "0,3"}
    done = emulate("python", "-m", "migrator", "doctor", "--json", options=("--devices", "2"), env=variables)
    content = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert [one["what"] for one in content["faults"] if one["severity"] == "error"] == [
        "ASCEND_RT_VISIBLE_DEVICES=0,3: NPU 3 does not exist"
    ]
    assert (content["npus"], content["emulated"]) == ([0, 1], True)
    assert content["packages"]["torch_npu"].startswith(content["packages"]["torch"].partition("+")[0])


@pytest.mark.parametrize(
    ("torch", "torch_npu", "supported"),
    [
        ("2.13.0+cpu", "2.13.0", True),
        ("2.6.0", "2.6.0.post5", True),
        ("2.4.0+cu121", "2.4.0.post4", True),
        ("2.4.0", "2.6.0", False),
        ("2.14.0+cpu", "2.14.0", True),
        ("1.11.0", "1.11.0.post11", False),
        (None, "2.6.0", False),
    ],
)
def test_both_are_of_one_release_that_was_run(torch, torch_npu, supported):
    assert is_supported(torch, torch_npu) is supported
    assert (pair_trouble(torch, torch_npu) is None) is supported


def test_another_version_is_told_which_ones_can():
    said = pair_trouble("1.11.0", "1.11.0.post11")
    assert said is not None
    assert said.startswith("torch 1.11.0 with torch_npu 1.11.0.post11 is not supported; supported: ")
    assert all(f"torch {version}.* with torch_npu {version}.*" in said for version in supported())


def test_versions_are_listed_with_what_was_run_and_when(capsys):
    assert main.run(["emulate", "--versions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(tried())
    for line, row in zip(lines, tried()):
        assert line.split()[:4] == ["torch", row.torch, "torch_npu", row.torch_npu]
        assert f" {row.date} {row.ran}" in line


@pytest.fixture
def other_torch(tmp_path, monkeypatch):
    """A cache of environments, and what makes them: nothing is installed, commands are noted."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    commands, needs = [], []

    def run(command, *words):
        commands.append([*command, *words])
        if "venv" in command:
            packages_of(Path(words[-1], "bin", "python")).mkdir(parents=True)
        if "--report" in words:
            torch = {"metadata": {"requires_dist": needs}}
            Path(words[1]).write_text(json.dumps({"install": [torch]}))
        return ""

    monkeypatch.setattr(environments.shutil, "which", lambda name: None)
    monkeypatch.setattr(environments, "_run", run)
    return commands, needs


def test_an_environment_of_another_torch_is_made_once(other_torch, tmp_path):
    commands, _ = other_torch
    release = next(one for one in of_torch("2.6") if one.torch_npu == "2.6.0.post5")
    release = replace(release, python=(f"{sys.version_info.major}.{sys.version_info.minor}",))
    lines = []
    python = environments.python_with(release, lines.append)
    assert environments.python_with(release, lines.append) == python
    assert len(lines) == 1
    assert python.is_relative_to(tmp_path)
    assert [command for command in commands if "--dry-run" not in command][1][-5:] == [
        *("torch==2.6.0", "torch_npu==2.6.0.post5", "numpy<2", "pyyaml", "torchvision==0.21.0")
    ]
    behind = (packages_of(python) / "behind_npumigrate.pth").read_text().splitlines()
    assert str(Path(pytest.__file__).parents[1]) in behind


def test_a_cuda_build_of_another_torch_is_not_fetched(other_torch):
    commands, needs = other_torch
    needs += ["filelock", 'nvidia-cublas-cu12==12.4.5.8; platform_system == "Linux"']
    release = next(one for one in of_torch("2.6") if one.torch_npu == "2.6.0.post5")
    release = replace(release, python=(f"{sys.version_info.major}.{sys.version_info.minor}",))
    with pytest.raises(EmulatorError, match="only as a CUDA build"):
        environments.python_with(release, print)
    assert "--dry-run" in commands[-1]


def test_a_record_that_cannot_be_read_does_not_end_the_command(tmp_path, capsys):
    (tmp_path / "collectives-1.txt").write_bytes(b'{"kind": "\xff"\n7 x\n')
    write_insight(tmp_path, tmp_path, tmp_path, ("", "2.13.0"), "Ascend910B2")
    assert "cannot read the records in" in capsys.readouterr().err
