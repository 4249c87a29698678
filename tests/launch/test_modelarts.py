"""``npumigrate launch modelarts``: what is made, and what is refused."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Callable

import pytest

from tests.launch.conftest import RANK_NAMES, started

TRAIN = """\
import torch
import torch.distributed as dist

if __name__ == '__main__':
    dist.init_process_group()
    loss.backward()
"""
FILES = [
    "modelarts_boot.py",
    "ascend_modelarts_function/path_mapping_config.py",
    "ascend_modelarts_function/modelarts_path_manager.py",
]

RUFF = ("--isolated", "--line-length=110")


@pytest.fixture
def launch(launch: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, str, str]]:
    return partial(launch, "modelarts")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my project"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "train net.py").write_text(TRAIN)
    (folder / "model.py").write_text("import torch\n")
    return folder


def booted(project: Path, arguments: list[str], env: dict[str, str]) -> tuple[int, str, str]:
    """What the boot file does with these variables."""
    command = [sys.executable, "modelarts_boot.py", *arguments]
    process = started(command, project, {**env, "PYTHONPATH": str(Path(__file__).parent / "stub")})
    out, err = process.communicate(timeout=900)
    return process.returncode, out, err


def config_of(folder: Path) -> object:
    tree = ast.parse((folder / FILES[1]).read_text())
    return next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.AnnAssign))


def test_the_files_and_what_was_assumed(launch, project):
    code, out, err = launch(
        "-o", project, "--map", "obs://bucket/data=/cache/data", "--map", "file:///a/b=data",
        "--output", "/cache/out=s3://bucket/out/{node}",
    )  # fmt: skip
    assert (code, out.splitlines()) == (0, [str(project / name) for name in FILES])
    assert err == "assumed: training script: tools/train net.py\n"
    assert config_of(project) == {
        "input": {"/cache/data": "obs://bucket/data", "data": "file:///a/b"},
        "output": {"/cache/out": "s3://bucket/out/{node}"},
    }
    assert 'ENTRY = "tools/train net.py"' in (project / FILES[0]).read_text()
    assert not list(project.rglob(".npumigrate*"))


def test_without_paths_there_is_the_boot_file_alone(launch, project):
    code, out, err = launch("-o", project, "-m", "tools/train net.py")
    assert (code, out) == (0, f"{project / FILES[0]}\n")
    assert err == "assumed: nothing is copied without --map and --output\n"
    assert not (project / "ascend_modelarts_function").exists()


def test_what_the_user_should_know(launch, project):
    (project / "tools" / "train net.py").write_text(
        TRAIN.replace(".distributed", ".cuda") + "parser.add_argument('--init_method')\n"
    )
    (project / "main.py").write_text(TRAIN.replace(".distributed", ".cuda"))
    _, _, err = launch("-o", project)
    lines = err.splitlines()
    assert lines[0].endswith("other candidates: 1 (-m FILE)")
    assert "the training does not look distributed" in lines[1]
    _, _, err = launch("-o", project, "-m", project / "tools" / "train net.py", "--overwrite")
    assert "tools/train net.py does not need --init_method" in err
    again = launch("-o", project, "--overwrite")  # the boot file is no sign of a distributed program
    assert "the training does not look distributed" in again[2]


def test_the_options_from_which_the_script_takes_its_rank(launch, project):
    script = project / "tools" / "train net.py"
    script.write_text(
        "import argparse, sys\nparser = argparse.ArgumentParser()\nparser.add_argument('--rank')\n"
        "sys.stdout.write(f'{sys.argv[1:]}\\n')\n"  # in one piece: two ranks write
        + TRAIN.replace("init_process_group()", "init_process_group('hccl', rank=args.rank)").split("if ")[0]
        + "if __name__ == '':\n    dist.init_process_group('hccl', rank=args.rank)\n    loss.backward()\n"
    )
    assert launch("-o", project, "-m", "tools/train net.py")[0] == 0
    env = {"MA_NUM_HOSTS": "1", "NPROC_PER_NODE": "2"}
    _, out, _ = booted(project, ["--lr", "1"], env)
    assert sorted(out.splitlines()) == [f"['--rank', '{rank}', '--lr', '1']" for rank in (0, 1)]


OWN_RANKS = """\
import argparse, os, sys
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--init_method")
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--world_size", type=int, default=1)
parser.add_argument("--lr")
args = parser.parse_args()
print(sys.argv[1:], os.environ.get("RANK"), os.environ.get("MASTER_PORT"), flush=True)

def worker(card, args):
    rank = args.rank * 8 + card
    dist.init_process_group("hccl", init_method=args.init_method, rank=rank, world_size=args.world_size)

if __name__ == "__main__":
    args.world_size = 8 * args.world_size
    if "MASTER_ADDR" not in os.environ:
        torch.multiprocessing.spawn(worker, nprocs=8, args=(args,))
"""


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (  # the PyTorch engine: once on each node, with its own arguments
            ["--init_method", "tcp://10.0.0.9:6666", "--rank=1", "--world_size=2", "--lr", "1"],
            {"NPROC_PER_NODE": "8"},
            "['--init_method', 'tcp://10.0.0.9:6666', '--rank=1', '--world_size=2', '--lr', '1'] None 6666",
        ),
        (  # a custom image: once on each node
            ["--lr", "1"],
            {"MA_NUM_HOSTS": "2", "VC_TASK_INDEX": "1", "VC_WORKER_HOSTS": "a,b", "NPROC_PER_NODE": "8"},
            "['--init_method', 'tcp://a:29500', '--world_size', '2', '--rank', '1', '--lr', '1'] None 29500",
        ),
        (  # once for each card: the first card's starts it
            ["--lr", "1"],
            dict(zip(RANK_NAMES, ("8", "0", "16", "8", "h", "9"))),
            "['--init_method', 'tcp://h:9', '--world_size', '2', '--rank', '1', '--lr', '1'] None 9",
        ),
        (["--lr", "1"], dict(zip(RANK_NAMES, ("9", "1", "16", "8", "h", "9"))), ""),
    ],
)
def test_a_script_that_starts_its_own_ranks_runs_once_on_each_node(
    launch: Callable[..., tuple[int, str, str]],
    project: Path,
    arguments: list[str],
    variables: dict[str, str],
    said: str,
) -> None:
    (project / "tools" / "train net.py").write_text(OWN_RANKS)
    code, _, err = launch("-o", project, "-m", "tools/train net.py")
    assert code == 0
    assert "starts its own ranks: start it once on each node" in err
    code, out, err = booted(project, arguments, variables)
    assert (code, out.strip()) == (0, said), err


def test_nothing_is_replaced_unasked(launch, project):
    (project / "ascend_modelarts_function").mkdir()
    (project / FILES[1]).write_text("mine")
    code, out, err = launch("-o", project, "--map", "obs://b/d=/d")
    assert (code, out) == (2, "")
    assert err == f"npumigrate: {project / FILES[1]} exists: use --overwrite to replace it\n"
    assert (project / FILES[1]).read_text() == "mine"
    assert not (project / FILES[0]).exists()
    assert launch("-o", project, "--overwrite")[0] == 0
    assert (project / FILES[1]).read_text() == "mine"
    assert launch("-o", project, "--overwrite", "--map", "obs://b/d=/d")[0] == 0
    assert config_of(project) == {"input": {"/d": "obs://b/d"}, "output": {}}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--map", "/cache=obs://b/d"], "--map /cache=obs://b/d: obs://b/d should be the local path"),
        (["--map", "obs://b/d"], "--map obs://b/d: it should be obs://bucket/path=LOCAL"),
        (["--map", "obs:///d=/d"], "--map obs:///d=/d: obs:///d is not obs://bucket/path"),
        (["--map", "data=/d"], "--map data=/d: data is not obs://bucket/path"),
        (["--output", "/o=hdfs://x/y"], "--output /o=hdfs://x/y: hdfs://x/y is not obs://bucket/path"),
        (["--output", "=obs://b/o"], "--output =obs://b/o: it should be LOCAL=obs://bucket/path"),
        (["--output", "/o=obs://b/a=1"], "--output /o=obs://b/a=1: ambiguous because of several ="),
        (["--map", "obs://b/d=/d", "--map", "obs://c/d=/d"], "--map: /d is given twice"),
        (["-m", "nope.py"], "nope.py (-m/--main) is not a file in "),
    ],
)
def test_wrong_input_is_refused(launch, project, arguments, line):
    code, out, err = launch("-o", project, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"npumigrate: {line}")
    assert not (project / FILES[0]).exists()


def test_no_folder_and_no_script(launch, tmp_path):
    assert "nope: no such file or folder" in launch("-o", tmp_path / "nope")[2]
    (tmp_path / "model.py").write_text("import torch\n")
    code, _, err = launch("-o", tmp_path)
    assert (code, err) == (
        2,
        f"npumigrate: no training script was found in {tmp_path}: give it with -m FILE\n",
    )
    assert "missing: --dir/-o" in launch()[2]


def test_a_folder_that_cannot_be_written(launch, project):
    (project / "ascend_modelarts_function").write_text("a file")
    code, _, err = launch("-o", project, "--map", "obs://b/d=/d")
    assert (code, err.count("\n")) == (2, 1)
    assert "cannot be written" in err
    assert not (project / FILES[0]).exists()


def test_it_is_clean_and_of_python_3_7(launch, project):
    assert launch("-o", project, "--map", "obs://b/ü=/a\\b", "--output", "/o=obs://b/o")[0] == 0
    for name in FILES:
        ast.parse((project / name).read_text(encoding="utf-8"), feature_version=(3, 7))
    for tool in (
        ["ruff", "check", *RUFF, "--select=B,E,F,I,N,RUF,SIM,UP,W", "--target-version=py37"],
        ["ruff", "format", *RUFF, "--check"],
        ["mypy", "--strict", "--config-file="],
    ):
        if subprocess.run([sys.executable, "-m", tool[0], "--version"], capture_output=True).returncode:
            pytest.skip(f"{tool[0]} is not installed")
        done = subprocess.run(
            [sys.executable, "-m", *tool, *FILES], cwd=project, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("link", [*FILES, "ascend_modelarts_function"])
@pytest.mark.parametrize("there", [True, False])
def test_nothing_is_written_through_links(launch, project, tmp_path, link, there):
    outside = tmp_path / "outside"
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(outside)
    if there:
        outside.write_text("mine") if link in FILES else outside.mkdir()
    before = sorted(project.rglob("*"))
    code, out, err = launch("-o", project, "--overwrite", "--map", "obs://b/d=/d")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{project / link} is a symbolic link" in err
    assert sorted(project.rglob("*")) == before
    assert (outside.exists() and outside.is_file() and outside.read_text()) == (
        "mine" if there and link in FILES else False
    )
    assert not outside.is_dir() or not list(outside.iterdir())
