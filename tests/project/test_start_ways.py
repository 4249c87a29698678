"""Who starts a program's ranks, and what it is given for that."""

from __future__ import annotations

import pytest

from migrator.files.source import Lines
from migrator.names.outline import Outline
from migrator.project.start_ways import StartWay, start_ways

HEAD = """\
import argparse, os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
parser = argparse.ArgumentParser()
"""
JOIN = "dist.init_process_group('nccl')\n"
LOCAL = "parser.add_argument('--local-rank', '--local_rank', default=-1, type=int)\n"


def way(text: str, mended: bool = False, **others: str) -> StartWay:
    files = {"train.py": HEAD + text, **{f"{name}.py": HEAD + other for name, other in others.items()}}
    return start_ways(["train.py"], files.get, mended)["train.py"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("mp.spawn(f, nprocs=torch.cuda.device_count())", ""),
        ("mp.spawn(f, (1,), 4)", ""),
        ("from torch.multiprocessing import spawn\nspawn(f, nprocs=2)", ""),
        ("def go(fn, size):\n    mp.spawn(fn, args=(size,), nprocs=size)\ngo(f, 4)", ""),
        ("for rank in range(4):\n    p = mp.Process(target=f, args=(rank, 4))", ""),
        ("c = mp.get_context('spawn')\nfor rank in range(4):\n    p = c.Process(target=f)", ""),
        ("parser.add_argument('--gpus')\nmp.spawn(f, nprocs=args.gpus)", "--gpus %NPROC%"),
        ("parser.add_argument('--gpus')\nmp.spawn(f, nprocs=int(args.gpus))", "--gpus %NPROC%"),
        ("parser.add_argument('-g', dest='gpus')\nmp.spawn(f, nprocs=args.gpus)", "-g %NPROC%"),
        (
            "parser.add_argument('--size')\nn = args.size\nfor i in range(n):\n    mp.Process(target=f)",
            "--size %NPROC%",
        ),
        (
            "parser.add_argument('--devices')\nn = count() if args.devices is None else args.devices\n"
            "def go(fn, size):\n    mp.spawn(fn, nprocs=size)\ngo(f, n)",
            "--devices %NPROC%",
        ),
        (
            "parser.add_argument('--ddp', action='store_true')\nif args.ddp:\n    mp.spawn(f, nprocs=2)",
            "--ddp",
        ),
        (
            "parser.add_argument('--cpu', action='store_true')\nif not args.cpu:\n    mp.spawn(f, nprocs=2)",
            "",
        ),
        (
            "parser.add_argument('--world-size', default=-1)\nargs.world_size = n * args.world_size\n"
            "mp.spawn(f, nprocs=n)",
            "--world-size %NNODES%",
        ),
        ("parser.add_argument('--world-size')\nmp.spawn(f, nprocs=args.world_size)", "--world-size %NPROC%"),
        ("parser.add_argument('--dist-url', default='env://')\nmp.spawn(f, nprocs=2)", ""),
        (
            "parser.add_argument('--dist_url', default='tcp://224.66.41.62:1')\nmp.spawn(f, nprocs=2)",
            "--dist_url tcp://%MASTER_ADDR%:%MASTER_PORT%",
        ),
    ],
)
def test_a_program_that_starts_its_own_ranks(text: str, options: str) -> None:
    found = way(f"{JOIN}{text}\n")
    assert (found.ranks, " ".join(found.options)) == ("program", options)


def test_detectron2_starts_them_with_the_options_of_its_own_parser() -> None:
    text = "from detectron2.engine import default_argument_parser, launch\nlaunch(main, args.num_gpus)\n"
    assert " ".join(way(text).options) == (
        "--num-gpus %NPROC% --num-machines %NNODES% --machine-rank %NODE_RANK% "
        "--dist-url tcp://%MASTER_ADDR%:%MASTER_PORT%"
    )


@pytest.mark.parametrize(
    ("text", "options", "variables"),
    [
        (JOIN, "", ""),
        ("import accelerate.Accelerator", "", ""),
        (JOIN + LOCAL, "--local-rank %LOCAL_RANK%", ""),
        (JOIN + LOCAL + "os.environ['LOCAL_RANK']", "", ""),
        (JOIN + "parser.add_argument('--launcher', choices=['none', 'pytorch'])", "--launcher pytorch", ""),
        (JOIN + "parser.add_argument('--launcher', choices=['a', 'b'])", "", ""),
        (
            "parser.add_argument('--rank')\nparser.add_argument('--url', default='tcp://1.2.3.4:5')\n"
            "dist.init_process_group('nccl', rank=args.rank, init_method=args.url)",
            "--rank %RANK% --url tcp://%MASTER_ADDR%:%MASTER_PORT%",
            "",
        ),
        (JOIN + "os.environ['OMPI_COMM_WORLD_RANK']", "", "OMPI"),
        (JOIN + "os.environ['OMPI_COMM_WORLD_RANK'], os.environ['RANK']", "", ""),
        (JOIN + "os.environ['SLURM_PROCID']", "", "SLURM"),
        ("mp.spawn(load, nprocs=8)\ntorch.nn.parallel.DistributedDataParallel(model)", "", ""),
    ],
)
def test_a_program_whose_ranks_a_launcher_starts(text: str, options: str, variables: str) -> None:
    found = way(text + "\n")
    assert (found.ranks, " ".join(found.options), found.variables) == ("launcher", options, variables)


def test_a_parser_that_is_mended_needs_no_option() -> None:
    assert way(JOIN + LOCAL, mended=True).options == ()
    by_click = JOIN + "@click.option('--local_rank')\ndef main(local_rank): pass\n"
    assert way(by_click, mended=True).options == ("--local_rank", "%LOCAL_RANK%")


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("loss.backward()\n", {"other": JOIN}),
        ("import other\n", {"other": f"def join():\n    {JOIN}"}),
        ("mp.spawn(load, nprocs=8)\n", {}),
        ("torch.nn.DataParallel(model)\n", {}),
    ],
)
def test_a_program_that_shows_no_use_of_ranks(text: str, others: dict[str, str]) -> None:
    assert way(f"{text}loss.backward()\n", **others) == StartWay("none")
    assert way(text.replace("loss.backward()", ""), **others) == StartWay("unseen")


def test_what_trains_by_a_function_of_a_library() -> None:
    known = "from basicsr.train import train_pipeline\ntrain_pipeline('.')\n"
    assert way(known) == StartWay("launcher", ("--launcher", "pytorch"))
    assert way("from elsewhere import train\ntrain()\n") == StartWay("unseen")


def test_the_files_that_a_script_imports_belong_to_it() -> None:
    other = {"other": f"def join():\n    {JOIN}"}
    assert way("from other import join\njoin()\n", **other).ranks == "launcher"
    assert start_ways(["no.py", "bad.py"], {"bad.py": "(\n"}.get, False) == {}


def test_each_file_is_read_and_parsed_once_for_all_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    real = Outline.__init__

    def count(self: Outline, text: str, *rest: Lines) -> None:
        parsed.append(text)
        real(self, text, *rest)

    monkeypatch.setattr(Outline, "__init__", count)
    files = {f"train{each}.py": f"import shared\nshared.join(args.rank{each})\n" for each in range(20)}
    files["shared.py"] = f"{HEAD}def join(rank):\n    dist.init_process_group('nccl', rank=rank)  # once\n"
    seen: list[int] = []
    ways = start_ways([name for name in files if "train" in name], files.get, False, seen.append)
    assert {way.ranks for way in ways.values()} == {"launcher"}
    assert parsed.count(files["shared.py"]) == 1
    assert seen == [*range(1, len(files) + 1)]
