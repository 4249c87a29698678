"""What a script passes and what the program that it starts takes: both sides change, or neither."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reading import rows, write

TRAIN = """\
import argparse
import os
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--where", choices=["cuda", "cpu"], default="cuda")
parser.add_argument("--mode", choices=["cuda", "fast"], default="fast")
parser.add_argument("--kernel", default="plain")
parser.add_argument("--on", default="cpu")
args = parser.parse_args()
blocking = os.environ.get("CUDA_LAUNCH_BLOCKING")
x = torch.ones(2, device=args.on).to(args.where)
"""


def project(folder: Path, script: str, train: str = TRAIN, name: str = "scripts/run.sh") -> Path:
    return write(folder / "project", {"tools/train.py": train, name: script})


@pytest.fixture
def migrated(migrate) -> Callable[..., tuple[str, list[dict[str, str]]]]:
    """Gives the script after a migration, and what is left to a person."""

    def command(source: Path, *options: str) -> tuple[str, list[dict[str, str]]]:
        result = migrate(source, *options)[1]
        text = (source / "scripts/run.sh").exists() and (result / "scripts/run.sh").read_text()
        left = rows(result, "manual_review")
        return text or "", [row for row in left if row["Rule"].startswith("NPU94")]

    return command


@pytest.mark.parametrize(
    ("line", "after"),
    [
        # The parser's choices change, and so does what is passed, whatever the option is called.
        ("python tools/train.py --where cuda", "python tools/train.py --where npu"),
        ("python tools/train.py --where=$W", "python tools/train.py --where=$W"),
        ("python ../tools/train.py --on cuda:1", "python ../tools/train.py --on npu:1"),
        ('python "$(dirname $0)"/../tools/train.py --on cuda:$R', None),
        ("torchrun --nproc_per_node 2 train.py --on cuda", "torchrun --nproc_per_node 2 train.py --on npu"),
        ("cd tools && python train.py --on cuda", "cd tools && python train.py --on npu"),
        ("python -m tools.train --on cuda", "python -m tools.train --on npu"),
        # Which program is meant only the shell knows: every parser with that option takes a device.
        ('python "$SCRIPT" --where cuda --kernel cuda', 'python "$SCRIPT" --where npu --kernel cuda'),
        ("bash tools/dist.sh 8 --where cuda --mode cuda", "bash tools/dist.sh 8 --where npu --mode cuda"),
        # These are no devices, though they are called cuda.
        ("python tools/train.py --mode cuda", "python tools/train.py --mode cuda"),
        ("python tools/train.py --kernel cuda", "python tools/train.py --kernel cuda"),
        # The number of a device is no switch of another rule.
        ("TF=true python tools/train.py --on 1", "TF=true python tools/train.py --on 1"),
        # Of a program that is not here, only the name of the option says something.
        ("other.py --mode cuda --device cuda", "other.py --mode cuda --device npu"),
    ],
)
def test_a_value_changes_where_the_program_takes_it_so(
    migrated, tmp_path: Path, line: str, after: str | None
) -> None:
    after = line.replace("cuda:$R", "npu:$R") if after is None else after
    assert migrated(project(tmp_path, line + "\n")) == (after + "\n", [])


def test_a_value_that_the_result_refuses_is_an_error(migrated, tmp_path: Path) -> None:
    source = project(tmp_path, "python tools/train.py --where cuda --mode slow --on cuda:0\n")
    script, rows = migrated(source, "--ignore", "NPU412")
    assert "--where cuda" in script
    assert [(row["File"], row["Rule"], row["Severity"], row["Message"]) for row in rows] == [
        ("scripts/run.sh", "NPU940", "error", "tools/train.py accepts npu, cpu for --where, not cuda"),
        (
            *("scripts/run.sh", "NPU940", "warning"),
            "tools/train.py uses --on as an NPU device or backend, but cuda:0 is for CUDA",
        ),
    ]


def test_a_manifest_is_compared_with_the_program_too(migrated, tmp_path: Path) -> None:
    manifest = "containers:\n- command: [python, tools/train.py, --where, cuda]\n"
    source = project(tmp_path, manifest, name="job.yaml")
    _, rows = migrated(source, "--ignore", "NPU412")
    assert [(row["File"], row["Start Line"], row["Rule"]) for row in rows] == [("job.yaml", "2", "NPU940")]


def test_an_option_that_a_conversion_removes_is_an_error(migrated, tmp_path: Path) -> None:
    from migrator.migrate.consistency import Trees, mismatches
    from migrator.project.programs import Programs

    before = project(tmp_path / "a", "python tools/train.py --where cpu --kernel x --odd\n")
    after = project(
        tmp_path / "b",
        "python tools/train.py --where cpu --kernel x --odd\n",
        TRAIN.replace('parser.add_argument("--kernel", default="plain")\n', ""),
    )
    trees = Trees(
        Programs({"tools/train.py": before / "tools/train.py"}),
        Programs({"tools/train.py": after / "tools/train.py"}),
        {"scripts/run.sh": (before / "scripts/run.sh", after / "scripts/run.sh")},
        lambda: pytest.fail("no value is a device"),
    )
    (result,) = mismatches(trees)
    assert [(item.code, item.message) for item in result.findings] == [
        ("NPU941", "tools/train.py no longer has the option --kernel")
    ]


@pytest.mark.parametrize(
    ("ignored", "message"),
    [
        ("NPU410", "CUDA_LAUNCH_BLOCKING is set here, but tools/train.py:11 reads ASCEND_LAUNCH_BLOCKING"),
        (
            "NPU401",
            "ASCEND_LAUNCH_BLOCKING is set here, but tools/train.py:11 still reads CUDA_LAUNCH_BLOCKING",
        ),
    ],
)
def test_a_variable_has_one_name(migrated, tmp_path: Path, ignored: str, message: str) -> None:
    source = project(tmp_path, "export CUDA_LAUNCH_BLOCKING=1\npython tools/train.py\n")
    _, rows = migrated(source, "--ignore", ignored)
    assert [(row["Rule"], row["Message"]) for row in rows] == [("NPU942", message)]


def test_a_horovodrun_line_becomes_the_launchers(migrate, tmp_path: Path) -> None:
    train = TRAIN.replace("import os", "import os\nimport horovod.torch as hvd")
    line = "horovodrun -np 2 -H localhost:2 python train.py --where cuda --on=cuda:0\n"
    first = 'cd "$(dirname "$0")" || exit\n'
    files = {
        "train.py": train + "x.requires_grad_().sum().backward()\n",
        "run.sh": first + line + "horovodrun -np 2 python $X/train.py\n",
        "sub.sh": "cd sub || exit\n" + line,
    }
    _, result = migrate(write(tmp_path / "project", files))
    assert (result / "run_distributed_npu.sh").exists()
    assert (result / "run.sh").read_text().splitlines() == [
        first.strip(),
        "bash run_distributed_npu.sh --entry train.py --nproc 2 -- --where npu --on=npu:0",
        "horovodrun -np 2 python $X/train.py",
    ]
    assert (result / "sub.sh").read_text() == files["sub.sh"].replace("cuda", "npu")


def test_a_horovodrun_line_stays_where_horovod_stays(migrate, tmp_path: Path) -> None:
    train = TRAIN.replace("import os", "import os\nimport horovod.torch as hvd")
    line = "horovodrun -np 2 -H localhost:2 python train.py\n"
    files = {"train.py": train + "x.requires_grad_().sum().backward()\n", "run.sh": line}
    _, result = migrate(write(tmp_path / "project", files), "--ignore", "NPU930")
    assert "import horovod.torch as hvd" in (result / "train.py").read_text()
    assert (result / "run.sh").read_text() == line


def test_safe_fixes_alone_leave_both_sides(migrated, tmp_path: Path) -> None:
    source = project(tmp_path, "python tools/train.py --where cuda --on cuda\n")
    script, rows = migrated(source, "--safe-only")
    assert (
        script == "python tools/train.py --where cuda --on npu\n"
    )  # --on goes into a device and nowhere else
    assert rows == []


def test_a_result_that_fits_together_is_left_in_peace(migrated, tmp_path: Path) -> None:
    text = "export CUDA_LAUNCH_BLOCKING=1\nW=cuda\npython tools/train.py --where $W --mode slow --on cuda\n"
    script, rows = migrated(project(tmp_path, text))
    assert script == text.replace("CUDA_", "ASCEND_").replace("cuda", "npu")
    assert rows == []


ARGUMENTS = """\
import argparse
import os
import torch
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("device", choices=["cuda", "cpu"])
parser.add_argument("--fast", action="store_true")
parser.add_argument("--mode", nargs="*")
args = parser.parse_args()
where = os.environ.get("RUN_ON", "cuda")
label = os.environ.get("LABEL", "cuda")
config = {}
x = torch.ones(2, device=where).to(args.device).to(config.get("place"))
"""


@pytest.mark.parametrize(
    ("script", "after"),
    [
        ("python tools/train.py cuda cuda", "python tools/train.py cuda npu"),
        ("python tools/train.py --fast d cuda", "python tools/train.py --fast d npu"),
        ("python tools/train.py d --fast cuda", "python tools/train.py d --fast npu"),
        ('D=cuda\npython tools/train.py d "$D"', 'D=npu\npython tools/train.py d "$D"'),
        # How many words these are, nobody knows.
        ("python tools/train.py --mode a cuda cuda", None),
        ("python tools/train.py $ARGS cuda", None),
        ("python tools/train.py --other d cuda", None),
        # Variables, by what Python does with them, on all sides of the script.
        ("export RUN_ON=cuda LABEL=cuda", "export RUN_ON=npu LABEL=cuda"),
        (
            'RUN_ON=cuda\nexport RUN_ON\n[ "$RUN_ON" = cuda ] && echo "$RUN_ON"',
            'RUN_ON=npu\nexport RUN_ON\n[ "$RUN_ON" = npu ] && echo "$RUN_ON"',
        ),
        ("export RUN_ON=cuda\ncp a out_$RUN_ON", None),
        ("RUN_ON=cuda", None),
        # A key of an override, and one that names a file of Hydra's.
        ("python app.py x.place=cuda place=cuda", "python app.py x.place=npu place=cuda"),
    ],
)
def test_what_stands_without_an_options_name(migrated, tmp_path: Path, script: str, after: str) -> None:
    source = project(tmp_path, script + "\n", ARGUMENTS)
    (source / "conf/place").mkdir(parents=True)
    (source / "conf/place/cuda.yaml").write_text("a: b\n")
    assert migrated(source)[0] == (after or script) + "\n"


def test_sys_argv_is_an_argument_too(migrated, tmp_path: Path) -> None:
    train = "import sys\nimport torch\nx = torch.ones(2).to(sys.argv[2])\nprint(sys.argv[1])\n"
    source = project(tmp_path, "python tools/train.py cuda cuda:1\n", train)
    assert migrated(source)[0] == "python tools/train.py cuda npu:1\n"


CLICK = """\
import click
import torch
@click.command()
@click.option("--device", envvar=["DEVICE", "APP_DEVICE"], default="cuda")
@click.option("--theme", envvar="APP_THEME", default="cuda")
def main(device, theme):
    print(theme, torch.ones(1).to(device))
main()
"""


def test_the_variable_of_an_option_of_click_changes_with_it(migrated, tmp_path: Path) -> None:
    source = project(tmp_path, "export APP_DEVICE=cuda APP_THEME=cuda\n", CLICK)
    assert migrated(source)[0] == "export APP_DEVICE=npu APP_THEME=cuda\n"


def test_a_term_of_a_library_is_left_to_the_program(migrated, tmp_path: Path) -> None:
    train = CLICK.replace("device", "accelerator").replace("import torch", "import lightning\nimport torch")
    train = train.replace(
        "print(theme, torch.ones(1).to(accelerator))", 'print(theme, accelerator == "cuda")'
    )
    script = "python tools/train.py --accelerator cuda\n"
    assert migrated(project(tmp_path, script, train))[0] == script


def test_cuda_in_what_python_looks_up_is_found_at_the_end(migrated, tmp_path: Path) -> None:
    source = project(tmp_path, "export RUN_ON=cuda\npython tools/train.py d cuda\n", ARGUMENTS)
    (source / "a.yaml").write_text("place: cuda\nlabel: cuda\n")
    _, rows = migrated(source, "--ignore", "NPU412,NPU413,NPU427")
    assert [(row["File"], row["Rule"], row["Start Line"]) for row in rows] == [
        ("a.yaml", "NPU943", "1"),
        ("scripts/run.sh", "NPU943", "1"),
        ("scripts/run.sh", "NPU940", "2"),
    ]
    assert rows[2]["Message"] == "tools/train.py accepts npu, cpu for device, not cuda"


def test_a_key_that_python_compares_with_cuda_alone_is_found(migrated, tmp_path: Path) -> None:
    train = 'import torch\nconfig = {}\nif config["device"] not in ("cuda", "cpu"):\n    raise SystemExit\n'
    source = project(tmp_path, "python tools/train.py\n", train + "torch.cuda.init()\n")
    (source / "a.yaml").write_text("device: cuda\n")
    _, rows = migrated(source, "--ignore", "NPU121,NPU122")
    assert [(row["File"], row["Rule"], row["Message"]) for row in rows] == [
        ("a.yaml", "NPU945", "device is npu here, but tools/train.py:4 compares it with CUDA names only")
    ]
    assert migrated(source, "--overwrite")[1] == []


def test_variables_of_horovod_are_found_where_nothing_reads_them(migrated, tmp_path: Path) -> None:
    train = (
        "import horovod.torch as hvd\nimport torch\nhvd.init()\nmodel = torch.nn.Linear(2, 2).cuda()\n"
        "optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), 0.1))\n"
        "hvd.broadcast_parameters(model.state_dict(), root_rank=0)\n"
        "model(torch.ones(2, 2).cuda()).sum().backward()\noptimizer.step()\n"
    )
    source = project(tmp_path, "export HOROVOD_CYCLE_TIME=1\npython tools/train.py\n", train)
    assert [row["Rule"] for row in migrated(source)[1]] == ["NPU944"]
    assert migrated(source, "--overwrite", "--ignore", "NPU930")[1] == []
