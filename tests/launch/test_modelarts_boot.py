"""The boot file of ``npumigrate launch modelarts`` itself, in the environments that ModelArts makes.

moxing is a stand-in that keeps buckets in a folder.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Optional

import pytest

from migrator.cli.main import run
from tests.launch.conftest import said, started

MOXING = """\
import multiprocessing
import os
import shutil
import time
from types import SimpleNamespace

FOLDER = os.environ["BUCKETS"]


def place(path):
    return os.path.join(FOLDER, path[len("obs://"):]) if path.startswith("obs://") else path


def note(what, source, target):
    with open(os.path.join(FOLDER, "log"), "a") as log:
        log.write(f"{what} {source} {target}\\n")


def copy_parallel(source, target):
    note("copy_parallel", source, target)
    with multiprocessing.get_context("fork").Pool(2) as pool:  # it ends them by SIGTERM, as moxing may
        pool.map(time.sleep, [float(os.environ.get("SLOW", "0"))])
    for folder, _, names in os.walk(place(source)):
        inner = os.path.join(place(target), os.path.relpath(folder, place(source)))
        os.makedirs(inner, exist_ok=True)
        for name in names:
            shutil.copyfile(os.path.join(folder, name), os.path.join(inner, name))
    if not os.path.exists(place(source)):
        raise OSError("No files to copy")


def copy(source, target):
    note("copy", source, target)
    os.makedirs(os.path.dirname(place(target)), exist_ok=True)
    shutil.copyfile(place(source), place(target))


file = SimpleNamespace(
    copy=copy, copy_parallel=copy_parallel, is_directory=lambda path: os.path.isdir(place(path))
)
"""
TRAIN = """\
import os
import sys
import time
from pathlib import Path

rank = os.environ["RANK"]
out = Path(sys.argv[2])
out.mkdir(exist_ok=True)
(out / f"rank_{rank}").write_text(Path(sys.argv[1], "x").read_text())
if sys.argv[3:] == ["fail", rank]:
    sys.exit(9)
if sys.argv[3:4] == ["fail"]:
    time.sleep(60)
"""


_TWO = "RANK_ID=0 RANK_SIZE=2 RANK_TABLE_FILE=T"


@pytest.fixture
def start(project: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the boot file as ModelArts does: with these variables, from a folder of its own."""
    processes = []

    def boot(*arguments: str, **env: object) -> subprocess.Popen[str]:
        command = [sys.executable, str(project / "modelarts_boot.py"), *arguments]
        values = {"TMPDIR": str(tmp_path), **{name: str(value) for name, value in env.items()}}
        processes.append(started(command, tmp_path, values))
        return processes[-1]

    yield boot
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with what moxing has forked
        process.communicate()


def made(project: Path, *options: str, script: str = "my train.py") -> None:
    assert run(["launch", "modelarts", "-o", str(project), "-m", script, *options]) == 0


def table(folder: Path, hosts: str, form: str = "current", status: str = "completed") -> Path:
    """A rank table of the project's own making."""
    file = folder / "rank_table.json"
    hccn = []
    for k, host in enumerate(hosts.split(",")):
        name, _, count = host.partition(":")
        lines = [f"address_{i}=192.168.{k}.{i + 1}\n" for i in range(int(count))]
        (folder / f"hccn_{k}").write_text("".join(lines))
        hccn += ["--hccn", f"{name}={folder / f'hccn_{k}'}"]
    current = folder / "current.json"
    assert run(["launch", "rank-table", "--hosts", hosts, *hccn, "-o", str(current)]) == 0
    assert run(["launch", "rank-table", "convert", str(current), "--format", form, "-o", str(file)]) == 0
    file.write_text(json.dumps({**json.loads(file.read_text()), "status": status}))
    return file


def engine(file: Path, rank: int, size: int, device: Optional[int] = None) -> dict[str, object]:
    """The variables of the Ascend engine."""
    env: dict[str, object] = {"RANK_TABLE_FILE": file, "RANK_ID": rank, "RANK_SIZE": size}
    return env if device is None else {**env, "ASCEND_DEVICE_ID": device}


def ended(*processes: subprocess.Popen[str]) -> list[tuple[int, str, str]]:
    return [(process.returncode, *out) for process in processes for out in [process.communicate(timeout=900)]]


@pytest.mark.parametrize("form", ["current", "older"])
def test_each_card_of_two_servers(project, start, tmp_path, form):
    made(project)
    file = table(tmp_path, "10.0.0.2:2,10.0.0.1:2", form)
    done = ended(*(start("--lr", "a b", "--rank", **engine(file, i, 4, i % 2)) for i in range(4)))
    assert [code for code, _, _ in done] == [0] * 4, done
    names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT".split()
    ranks = [said(out)[0] for _, out, _ in done]
    assert [[rank[name] for name in names] for rank in ranks] == [
        [str(i), str(i % 2), "4", "2", str(i // 2), "10.0.0.2", "29500"] for i in range(4)
    ]
    assert all(rank["args"] == ["--lr", "a b", "--rank"] for rank in ranks)
    assert ranks[0]["HCCL_CONNECT_TIMEOUT"] == "1200"
    assert "rank 0 on stderr" in done[0][2]
    assert done[3][2].startswith(
        "modelarts_boot: rank 3 of 4, node 1, master 10.0.0.2:29500, by RANK_ID and "
    )


def test_what_the_user_has_set_is_kept(project, start, tmp_path):
    made(project)
    env = engine(table(tmp_path, "a:2,b:2"), 3, 4)
    ((_, out, _),) = ended(start(MASTER_ADDR="c", MASTER_PORT=5, HCCL_CONNECT_TIMEOUT=7, **env))
    rank = said(out)[0]
    assert [rank[name] for name in ("LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "HCCL_CONNECT_TIMEOUT")] == [
        "1", "c", "5", "7"
    ]  # fmt: skip


def test_the_table_of_a_container_with_one_card(project, start, tmp_path):
    """As ModelArts documents it: device 4 of the machine, which is number 0 of the container."""
    made(project)
    device = {"device_id": "4", "device_ip": "192.1.10.254"}
    instance = {"devices": [device], "pod_name": "job-trainjob-0", "server_id": "192.168.0.25"}
    counts = {"group_name": "job-trainjob", "device_count": "1", "instance_count": "1"}
    group = {**counts, "instance_list": [instance]}
    content = {"group_count": "1", "group_list": [group], "status": "completed"}
    (tmp_path / "jobstart_hccl.json").write_text(json.dumps(content))
    for device_id in (0, 4):  # 4: the number that older drivers gave
        ((code, out, err),) = ended(start(**engine(tmp_path, 0, 1, device_id)))
        assert code == 0, err
        rank = said(out)[0]
        assert (rank["LOCAL_RANK"], rank["MASTER_ADDR"]) == ("0", "192.168.0.25")
        assert rank["RANK_TABLE_FILE"] == str(tmp_path / "jobstart_hccl.json")


def test_ranks_of_the_older_form_go_by_pod(project, start, tmp_path):
    made(project)
    file = table(tmp_path, ",".join(f"h{i}:1" for i in range(11)), "older")
    content = json.loads(file.read_text())
    content["group_list"][0]["instance_list"].reverse()
    file.write_text(json.dumps(content))
    ((_, out, _),) = ended(start(**engine(file, 10, 11)))
    assert (said(out)[0]["MASTER_ADDR"], said(out)[0]["GROUP_RANK"]) == ("h0", "10")
    assert run(["launch", "rank-table", "convert", str(file), "-o", str(tmp_path / "c.json")]) == 0
    servers = json.loads((tmp_path / "c.json").read_text())["server_list"]
    assert {server["server_id"]: server["device"][0]["rank_id"] for server in servers}["h10"] == "10"


def test_a_table_that_is_not_ready_is_waited_for(project, start, tmp_path):
    made(project)
    file = tmp_path / "rank_table.json"
    process = start(**engine(file, 0, 2))
    assert process.stderr.readline() == f"modelarts_boot: waiting: {file} is not there\n"
    file.write_text('{"sta')
    assert process.stderr.readline() == f"modelarts_boot: waiting: {file} is not JSON\n"
    table(tmp_path, "a:2", "older", "initializing")
    assert process.stderr.readline() == f"modelarts_boot: waiting: {file} has the status 'initializing'\n"
    table(tmp_path, "a:2", "older")
    ((code, out, _),) = ended(process)
    assert (code, said(out)[0]["MASTER_ADDR"]) == (0, "a")


def test_a_signal_while_it_waits(project, start, tmp_path):
    made(project)
    process = start(**engine(tmp_path / "nope", 0, 2))
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert ended(process) == [(130, "", "")]


@pytest.mark.parametrize(
    ("arguments", "nodes", "address"),
    [
        ("--init_method tcp://10.0.0.9:6666 --rank=1 --world_size 2 --lr 1", 2, "10.0.0.9"),
        ("--lr 1 --init_method=tcp://[::1]:6666", 1, "::1"),
    ],
)
def test_the_pytorch_engine_starts_once_on_each_node(project, start, arguments, nodes, address):
    made(project)
    ((code, out, err),) = ended(start(*arguments.split(), MA_NUM_GPUS=2))
    assert code == 0, err
    names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MASTER_PORT".split()
    first = (nodes - 1) * 2
    assert [[rank[name] for name in names] for rank in said(out)] == [
        [str(first + i), str(i), str(nodes * 2), "2", str(nodes - 1), address, "6666"] for i in (0, 1)
    ]
    assert all(rank["args"] == ["--lr", "1"] for rank in said(out))


def test_a_custom_image_starts_once_on_each_node(project, start):
    made(project)
    hosts = {"MA_NUM_HOSTS": 2, "VC_TASK_INDEX": 1, "VC_WORKER_HOSTS": "job-worker-0.job,job-worker-1.job"}
    env = {**hosts, "ASCEND_RT_VISIBLE_DEVICES": "0,1,2"}
    ((code, out, err),) = ended(start("--rank", "8", "--world_size", "9", **env))
    assert code == 0, err
    assert [rank["RANK"] for rank in said(out)] == ["3", "4", "5"]
    assert said(out)[0]["MASTER_ADDR"] == "job-worker-0.job"
    assert said(out)[0]["args"] == "--rank 8 --world_size 9".split()  # no --init_method: the script's
    ((code, out, _),) = ended(start(MA_NUM_HOSTS=1, NPROC_PER_NODE=1, MA_NUM_GPUS=8))
    assert (code, len(said(out)), said(out)[0]["MASTER_ADDR"]) == (0, 1, "127.0.0.1")


def test_torchrun_has_done_it(project, start):
    made(project)
    names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT".split()
    env = dict(zip(names, (5, 1, 8, 4, "h", 9)))
    ((code, out, _),) = ended(start("--init_method", "tcp://a:1", **env))
    rank = said(out)[0]
    assert code == 0
    assert rank["args"] == ["--init_method", "tcp://a:1"]
    assert {name: rank[name] for name in env} == {name: str(value) for name, value in env.items()}
    assert rank["GROUP_RANK"] == "1"


@pytest.mark.parametrize(
    ("env", "arguments", "line"),
    [
        ("", "", "how was this started?"),
        ("RANK_ID=0 RANK_SIZE=2", "", "RANK_ID is set, and RANK_TABLE_FILE is not"),
        ("RANK_ID=0 RANK_TABLE_FILE=T", "", "RANK_SIZE is not set"),
        ("RANK_ID=x RANK_SIZE=2", "", "RANK_ID is 'x', and should be a whole number from 0 on"),
        ("RANK_ID=0 RANK_SIZE=8 RANK_TABLE_FILE=T", "", "RANK_SIZE is 8, and T has 2 devices"),
        ("RANK_ID=2 RANK_SIZE=2 RANK_TABLE_FILE=T", "", "RANK_ID is 2, and RANK_SIZE 2"),
        (f"{_TWO} ASCEND_DEVICE_ID=5", "", "ASCEND_DEVICE_ID is 5, and a has 2 NPUs in the rank table"),
        (f"{_TWO} MASTER_PORT=x", "", "MASTER_PORT is 'x', and should be a whole number from 1 on"),
        (
            "RANK_ID=0 RANK_SIZE=2 RANK_TABLE_FILE=/nope RANK_TABLE_TIMEOUT=0",
            "",
            "RANK_TABLE_FILE: /nope is not there after 0 s (RANK_TABLE_TIMEOUT)",
        ),
        ("", "--init_method 10.0.0.1:99", "--init_method is '10.0.0.1:99', not like tcp://host:port"),
        ("", "--init_method", "--init_method is '', not like tcp://host:port"),
        ("", "--init_method=tcp://a:1 --rank 2 --world_size 2", "--rank is 2, and --world_size 2"),
        ("", "--init_method=tcp://a:1 --rank 0 --rank 16", "--rank is there twice"),
        ("MA_NUM_HOSTS=2", "--init_method=tcp://a:1 --world_size 16", "--world_size is 16, and MA_NUM"),
        ("MA_NUM_HOSTS=2", "", "VC_TASK_INDEX is not set"),
        ("MA_NUM_HOSTS=2 VC_TASK_INDEX=0", "", "MA_NUM_HOSTS is 2, and VC_WORKER_HOSTS does not say"),
        ("MA_NUM_HOSTS=1 MA_NUM_GPUS=0", "", "how many NPUs has this node?"),
    ],
)
def test_what_is_missing_or_wrong_is_one_line(project, start, tmp_path, env, arguments, line):
    if list(Path("/dev").glob("davinci[0-9]*")) and "how many" in line:
        pytest.skip("this machine has NPUs")
    made(project)
    file = str(table(tmp_path, "a:2"))
    values = dict(pair.split("=") for pair in env.replace("=T", f"={file}").split())
    ((code, out, err),) = ended(start(*arguments.split(), **values))
    assert (code, out) == (78, "")
    assert err.startswith(f"modelarts_boot: {line.replace('T has', file + ' has')}"), err
    assert err.count("\n") == 1 + ("waiting" in err)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("[]", "is no rank table"),
        ('{"status": "completed"}', "has neither server_list nor group_list"),
        ('{"status": "completed", "server_list": [{}]}', "cannot be understood: KeyError('server_id')"),
        ('{"status": "completed", "group_list": [3]}', "cannot be understood: TypeError"),
    ],
)
def test_a_file_that_is_no_rank_table(project, start, tmp_path, content, line):
    made(project)
    (tmp_path / "t.json").write_text(content)
    ((code, _, err),) = ended(start(**engine(tmp_path / "t.json", 0, 1)))
    assert (code, err.count("\n")) == (78, 1)
    assert f"RANK_TABLE_FILE: {tmp_path / 't.json'} {line}" in err


def test_ranks_of_a_table_that_are_wrong(project, start, tmp_path):
    made(project)
    file = table(tmp_path, "a:2")
    file.write_text(file.read_text().replace('"rank_id": "1"', '"rank_id": "0"'))
    ((code, _, err),) = ended(start(**engine(file, 0, 2)))
    assert (code, err) == (78, f"modelarts_boot: {file}: its ranks are not 0 to 1, each once\n")


def test_a_script_that_is_gone(project, start, tmp_path):
    made(project)
    (project / "my train.py").unlink()
    ((code, _, err),) = ended(start(**engine(table(tmp_path, "a:1"), 0, 1)))
    assert (code, err) == (78, f"modelarts_boot: the script my train.py is not in {project}\n")


def test_a_module_of_a_package(project, start, tmp_path):
    (project / "src" / "net").mkdir(parents=True)
    (project / "src" / "net" / "__init__.py").write_text("")
    (project / "src" / "net" / "names.py").write_text("NAME = 'imported'\n")
    (project / "src" / "net" / "train.py").write_text("from .names import NAME\nprint(NAME, __name__)\n")
    made(project, script="src/net/train.py")
    assert ended(start(**engine(table(tmp_path, "a:1"), 0, 1)))[0][:2] == (0, "imported __main__\n")


@pytest.mark.parametrize(("what", "code"), [("fail", 7), ("killed", 137)])
def test_the_code_of_a_rank_is_that_of_the_boot_file(project, start, tmp_path, what, code):
    made(project)
    rank = int(what == "fail")
    ((got, _, err),) = ended(start(what, **engine(table(tmp_path, "a:2"), rank, 2)))
    assert (got, f"rank {rank} ended with code {code}" in err) == (code, True)


@pytest.mark.parametrize(("what", "code"), [("fail", 7), ("killed", 137)])
def test_a_failing_rank_ends_the_others_of_its_node(project, start, what, code):
    made(project)
    ((got, out, _),) = ended(start(what, MA_NUM_HOSTS=1, NPROC_PER_NODE=2))
    assert got == code
    assert "was not ended" not in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_go_to_every_rank(project, start, number):
    made(project)
    process = start("wait", MA_NUM_HOSTS=1, NPROC_PER_NODE=2)
    for _ in range(2):
        process.stdout.readline()
    process.send_signal(number)
    ((code, out, _),) = ended(process)
    assert code == (1 if number == signal.SIGINT else 128 + number)  # program.py makes 1 of Ctrl-C
    assert out.count("interrupted") == (2 if number == signal.SIGINT else 0)


def test_a_rank_that_takes_longer_to_end_has_its_time(project, start):
    text = (
        "import os, time\ntry:\n    os.write(1, b'started\\n')\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    time.sleep(0.5 * int(os.environ['RANK']))\n"
        "    os.write(1, b'saved\\n')\n    raise SystemExit(1)\n"
    )
    (project / "my train.py").write_text(text)
    made(project)
    process = start(MA_NUM_HOSTS=1, NPROC_PER_NODE=2)
    for _ in range(2):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    ((code, out, _),) = ended(process)
    assert (code, out.count("saved")) == (1, 2)


def test_a_second_signal_kills(project, start):
    made(project)
    process = start("stubborn", MA_NUM_HOSTS=1, NPROC_PER_NODE=1)
    while "ignores" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0][0] == 137


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_ranks_end_with_a_boot_file_that_is_killed(project, start):
    (project / "my train.py").write_text("import os, time\nprint(os.getpid())\ntime.sleep(60)\n")
    made(project)
    process = start(MA_NUM_HOSTS=1, NPROC_PER_NODE=1)
    rank = int(process.stdout.readline())
    process.kill()
    process.wait()
    for _ in range(100):
        state = Path(f"/proc/{rank}/stat")
        if not state.exists() or ") Z " in state.read_text():
            return
        time.sleep(0.05)
    pytest.fail("the rank still runs")


@pytest.fixture
def buckets(tmp_path: Path) -> Path:
    """Object storage with data in it, and a moxing that knows it."""
    folder = tmp_path / "buckets"
    (folder / "b" / "data").mkdir(parents=True)
    (folder / "b" / "data" / "x").write_text("data")
    (folder / "b" / "one.bin").write_text("one")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "moxing.py").write_text(MOXING)
    return folder


def mapped(project: Path, tmp_path: Path, *more: str) -> tuple[Path, Path]:
    """A project that reads data and writes an output, both at local paths."""
    (project / "my train.py").write_text(TRAIN)
    data, out = tmp_path / "cache" / "data", tmp_path / "cache" / "out"
    made(project, "--map", f"obs://b/data={data}", "--output", f"{out}=obs://b/out/{{node}}", *more)
    return data, out


def with_moxing(tmp_path: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(tmp_path / "lib"), "BUCKETS": str(tmp_path / "buckets")}


def test_once_on_each_machine(project, start, tmp_path, buckets):
    data, out = mapped(project, tmp_path, "--map", f"obs://b/one.bin={tmp_path / 'cache' / '1.bin'}")
    file = table(tmp_path, "a:3,b:3")
    for number in ("first", "second"):  # nothing of the first time is taken for the second
        (buckets / "b" / "data" / "x").write_text(number)
        (buckets / "log").unlink(missing_ok=True)
        env = {**with_moxing(tmp_path), "SLOW": "3"}
        done = ended(*(start(str(data), str(out), **env, **engine(file, i, 6)) for i in range(3)))
        assert [code for code, _, _ in done] == [0] * 3, done
        assert (buckets / "log").read_text().splitlines() == [
            f"copy_parallel obs://b/data {data}",
            f"copy obs://b/one.bin {tmp_path / 'cache' / '1.bin'}",
            f"copy_parallel {out} obs://b/out/0",
        ]
        assert sum("waiting: another process of this node downloads" in err for _, _, err in done) == 2
        result = {path.name: path.read_text() for path in (buckets / "b" / "out" / "0").iterdir()}
        assert result == {f"rank_{i}": number for i in range(3)}
    ended(*(start(str(data), str(out), **with_moxing(tmp_path), **engine(file, i, 6)) for i in range(3, 6)))
    assert (buckets / "b" / "out" / "1" / "rank_5").exists()


def test_outputs_of_a_failed_training_go_up(project, start, tmp_path, buckets):
    """Before the platform can know of the failure, and kill the others, which hang."""
    data, out = mapped(project, tmp_path)
    manager = project / "ascend_modelarts_function" / "modelarts_path_manager.py"
    manager.write_text(manager.read_text().replace("GRACE = 10.0", "GRACE = 1.0"))
    file = table(tmp_path, "a:3")
    env = with_moxing(tmp_path)
    ranks = [start(str(data), str(out), "fail", "1", **env, **engine(file, i, 3)) for i in range(3)]
    ((code, _, err),) = ended(ranks[1])
    assert code == 9, err
    assert (buckets / "b" / "out" / "0" / "rank_1").exists()
    assert ranks[0].poll() is None
    for rank in (ranks[0], ranks[2]):
        rank.terminate()
    assert [code for code, _, _ in ended(ranks[0], ranks[2])] == [143, 143]
    uploads = [line for line in (buckets / "log").read_text().splitlines() if line.endswith("/out/0")]
    assert len(uploads) == 2  # again by the last one, which may have written more


def test_all_fail_and_one_uploads(project, start, tmp_path, buckets):
    data, out = mapped(project, tmp_path)
    file = table(tmp_path, "a:4")
    env = {**with_moxing(tmp_path), "SLOW": "3"}
    done = ended(*(start(str(data), str(out), "fail", str(i), **env, **engine(file, i, 4)) for i in range(4)))
    assert [code for code, _, _ in done] == [9] * 4
    log = (buckets / "log").read_text()
    assert log.count(" obs://b/out/0") == log.count("obs://b/data ") == 1


def test_a_node_of_the_pytorch_engine(project, start, tmp_path, buckets):
    data, out = mapped(project, tmp_path)
    env = {**with_moxing(tmp_path), "NPROC_PER_NODE": "2"}
    engine_gives = ["--init_method", "tcp://a:1", "--rank", "1", "--world_size", "2"]
    ((code, _, err),) = ended(start(*engine_gives, str(data), str(out), **env))
    assert code == 0, err
    assert sorted(path.name for path in (buckets / "b" / "out" / "1").iterdir()) == ["rank_2", "rank_3"]


def test_only_the_first_node_uploads(project, start, tmp_path, buckets):
    data, out = mapped(project, tmp_path)
    config = project / "ascend_modelarts_function" / "path_mapping_config.py"
    config.write_text(config.read_text() + 'PATH_MAPPING_CONFIG["output_nodes"] = "first"\n')
    file = table(tmp_path, "a:1,b:1")
    done = ended(
        *(start(str(data), str(out), **with_moxing(tmp_path), **engine(file, i, 2)) for i in range(2))
    )
    assert [code for code, _, _ in done] == [0, 0], done
    assert [path.name for path in (buckets / "b" / "out").iterdir()] == ["0"]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_folders_of_the_machine(project, start, tmp_path, buckets, scheme):
    """Without moxing: relative local paths start at the project, files that are there stay."""
    (project / "my train.py").write_text(TRAIN)
    away = tmp_path / "away"
    away.mkdir()
    (away / "before").write_text("stays")
    (buckets / "b" / "data" / "loop").symlink_to("..")
    made(project, "--map", f"{scheme}{buckets / 'b' / 'data'}=data", "--map",
        f"{scheme}{buckets / 'b' / 'one.bin'}=weights/one.bin", "--output", f"out={scheme}{away}",
        "--output", f"nothing={scheme}{tmp_path / 'nothing'}", "--output", f"weights/one.bin={scheme}{away}/",
    )  # fmt: skip
    ((code, _, err),) = ended(start("data", "out", **engine(table(tmp_path, "a:1"), 0, 1)))
    assert code == 0, err
    assert sorted(path.name for path in away.iterdir()) == ["before", "one.bin", "rank_0"]
    assert (project / "weights" / "one.bin").read_text() == "one"
    assert f"{project / 'nothing'} is not there, and not uploaded" in err


def test_what_cannot_be_copied(project, start, tmp_path, buckets):
    data, out = mapped(project, tmp_path)
    env = engine(table(tmp_path, "a:1"), 0, 1)
    ((code, _, err),) = ended(start(str(data), str(out), **env))
    assert code == 74
    assert f"obs://b/data cannot be copied to {data}: there is no moxing here" in err
    shutil.rmtree(buckets / "b" / "data")
    ((code, _, err),) = ended(start(str(data), str(out), **env, **with_moxing(tmp_path)))
    assert code == 74
    assert f"obs://b/data was not copied to {data}: " in err
    assert "Traceback" not in err
    silent = tmp_path / "silent"
    silent.mkdir()
    (silent / "moxing.py").write_text(
        "class file:\n    copy = is_directory = staticmethod(lambda *paths: False)\n"
    )
    ((code, _, err),) = ended(start(str(data), str(out), **env, PYTHONPATH=silent))
    assert code == 74
    assert "modelarts_boot: obs://b/data has nothing to download\n" in err
    (buckets / "b" / "data").mkdir()
    (buckets / "b" / "data" / "x").write_text("data")
    (buckets / "b" / "out").write_text("a file where the folder belongs")
    ((code, _, err),) = ended(start(str(data), str(out), **env, **with_moxing(tmp_path)))
    assert code == 74
    assert f"{out} was not copied to obs://b/out/0: " in err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("= {", ":1: "),
        (None, ": module '{module}' has no attribute 'PATH_MAPPING_CONFIG'"),
        ("= []", ": PATH_MAPPING_CONFIG is no dictionary"),
        ("= {'inputs': {}}", ": 'inputs' is no part of it"),
        ("= {'input': 3}", ': "input" is no dictionary'),
        ("= {'input': {'obs://b/d': '/d'}}", ": \"input\", 'obs://b/d': a local path should"),
        ("= {'output': {'/d': 'd'}}", ": \"output\", '/d': 'd' is neither obs://bucket/path"),
        ("= {'output': {'/d': '/d/e'}}", ": \"output\", '/d': one of the two paths lies in"),
        ("= {'output_nodes': 2}", ': "output_nodes" is neither "all" nor "first"'),
    ],
)
def test_a_wrong_configuration_is_one_line(project, start, tmp_path, buckets, text, line):
    mapped(project, tmp_path)
    content = "\n" if text is None else f"PATH_MAPPING_CONFIG {text}\n"
    (project / "ascend_modelarts_function" / "path_mapping_config.py").write_text(content)
    line = line.replace("{module}", "ascend_modelarts_function.path_mapping_config")
    ((code, out, err),) = ended(start(**engine(table(tmp_path, "a:1"), 0, 1)))
    assert (code, out, err.count("\n")) == (78, "", 2)
    place = "ascend_modelarts_function/path_mapping_config.py"
    assert err.splitlines()[1].startswith(f"modelarts_boot: {place}{line}")


@pytest.mark.parametrize("text", ["", "import nothing_like_it\n"])
def test_the_folder_of_another_tool(project, start, tmp_path, text):
    made(project)
    (project / "ascend_modelarts_function").mkdir()
    (project / "ascend_modelarts_function" / "modelarts_path_manager.py").write_text(text)
    ((code, _, err),) = ended(start(**engine(table(tmp_path, "a:1"), 0, 1)))
    assert (code, err.count("\n")) == (78, 2)
    assert "modelarts_boot: ascend_modelarts_function is not that of this boot file: " in err


def test_a_downloader_that_dies_is_replaced(project, start, tmp_path, buckets):
    data, out = mapped(project, tmp_path)
    file = table(tmp_path, "a:2")
    first = start(str(data), str(out), **with_moxing(tmp_path), SLOW="100", **engine(file, 0, 2))
    while not (buckets / "log").exists():
        assert first.poll() is None
        time.sleep(0.05)
    second = start(str(data), str(out), **with_moxing(tmp_path), **engine(file, 1, 2))
    assert [second.stderr.readline() for _ in range(2)][1].endswith(
        "another process of this node downloads\n"
    )
    first.kill()
    ((code, _, err),) = ended(second)
    assert code == 0, err
    assert (buckets / "b" / "out" / "0" / "rank_1").read_text() == "data"


def test_a_signal_while_outputs_go_up(project, start, tmp_path, buckets):
    """The first does not stop the upload: the platform ends all when one of the ranks has failed."""
    data, out = mapped(project, tmp_path)
    env = engine(table(tmp_path, "a:1"), 0, 1)
    for signals, code in ((1, 0), (2, 143)):
        (buckets / "log").unlink(missing_ok=True)
        process = start(str(data), str(out), **env, **with_moxing(tmp_path), SLOW="2")
        while not ((buckets / "log").exists() and "/out/0" in (buckets / "log").read_text()):
            assert process.poll() is None
            time.sleep(0.05)
        for _ in range(signals):
            process.terminate()
            time.sleep(0.3)
        assert ended(process)[0][0] == code
