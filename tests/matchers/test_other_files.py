"""Files that are no Python, and what is said of them."""

from __future__ import annotations

import pytest

from migrator.files.document import document
from migrator.findings.finding import Result
from migrator.matchers.other_files import examine as examine_with
from migrator.matchers.other_files import is_candidate, with_mentions
from migrator.native.functions import scan_native
from migrator.project.operators import catalog


def examine(name: str, data: bytes) -> Result | None:
    return examine_with(name, data, catalog([scan_native(name, data.decode())], []))


def test_candidates() -> None:
    names = ["README.md", "notes.txt", "a/run.bat", "CMakeLists.txt", "conf/x.J2", "k.cu", "poetry.lock"]
    assert [*filter(is_candidate, [*names, "logo.png", "train.py", "cuda", "paper.tex"])] == names


def test_shell_script_is_named_with_its_first_place() -> None:
    result = examine("run.ps1", b"#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=0\nNCCL_DEBUG=INFO torchrun x.py\n")
    assert result is not None
    assert result.left == (
        "not Python: left unchanged; mentions CUDA_VISIBLE_DEVICES, NCCL_DEBUG (first in line 2)"
    )


@pytest.mark.parametrize(
    ("name", "line", "mention"),
    [
        ("requirements.txt", "flash-attn>=2.5", "flash-attn"),
        ("requirements-dev.txt", "torch==2.1.0+cu118", "+cu118"),
        ("setup.sh", "pip install torch --index-url https://download.pytorch.org/whl/cu121", "whl/cu121"),
        ("environment.yml", "  - cudatoolkit=11.3", "cudatoolkit"),
        ("trainer.yaml", "accelerator: gpu", "accelerator: gpu"),
        ("config.yml", "accelerator: auto", "accelerator: auto"),
        ("pyproject.toml", '    "nvidia-cublas-cu12>=12",', "nvidia-cublas-cu12"),
    ],
)
def test_packages_that_need_cuda_are_mentions(name: str, line: str, mention: str) -> None:
    result = with_mentions(Result(name), document(f"# what is installed\n{line}\n".encode(), name))
    assert result.left == f"left unchanged; mentions {mention} (first in line 2)"


def test_lock_files_are_to_be_made_again() -> None:
    result = examine("poetry.lock", b'[[package]]\nname = "nvidia-cublas-cu12"\n')
    assert result is not None
    assert result.left.startswith("lock file: regenerate it for the migrated requirements; ")
    assert result.left.endswith("mentions nvidia-cublas-cu12 (first in line 2)")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", "torch>=2\nfaiss-cpu\nonnxruntime\ncupboard\naccelerator: cpu\n"),
        ("run.sh", "python barracuda.py --cudax\n"),
        ("ext.cpp", 'PYBIND11_MODULE(ext, m) { m.def("parse", &parse); }\n'),
        ("README.md", "Needs CUDA: nvidia-smi, cuda, nccl.\nhorovodrun is a tool.\n"),
    ],
)
def test_what_needs_no_cuda(name: str, text: str) -> None:
    assert examine(name, text.encode()) is None


def test_kernels_and_bound_functions_are_listed() -> None:
    source = (
        b"#include <torch/extension.h>\n"
        b"template <typename T>\n__global__ void scale_kernel(T* x) {}\n"
        b"__global__ static void __launch_bounds__(256) add_kernel(float* x) {}\n"
        b'PYBIND11_MODULE(ext, m) {\n  m.def("scale", &scale);\n}\n'
    )
    result = examine("ops/ext.cu", source)
    assert result is not None
    assert [(f.api, f.line, f.code) for f in result.findings] == [
        ("scale_kernel", 3, "NPU652"),
        ("add_kernel", 4, "NPU652"),
        ("scale", 6, "NPU652"),
    ]


ONE = "Write: bash run_distributed_npu.sh --entry train.py --nproc"
NONE = "Write the launcher's line: bash run_distributed_npu.sh --nproc N -- …;"
HOSTS = "--nproc 4 --nnodes 2 --node-rank {} --master-addr a --master-port 29500"


@pytest.mark.parametrize(
    ("name", "line", "advice"),
    [
        (
            "run.sh",
            "horovodrun -np 4 -H localhost:4 python train.py --lr 0.1 > log 2>&1",
            f"{ONE} 4 -- --lr 0.1 > log 2>&1",
        ),
        ("README.md", "Start it with `horovodrun -np 2 python train.py`, and wait.", f"{ONE} 2"),
        (
            "run.sh",
            "horovodrun -np 8 \\\n    -H a:4,b:4 \\\n    python train.py; echo done",
            f"Write on a: bash run_distributed_npu.sh --entry train.py {HOSTS.format(0)}; "
            f"on b: bash run_distributed_npu.sh --entry train.py {HOSTS.format(1)}",
        ),
        ("run.sh", "horovodrun -np $GPUS python train.py", f"{ONE} $GPUS"),
        (
            "run.sh",
            "horovodrun -np 2 -hostfile hosts python train.py",
            f'{NONE} hosts is not read here: use npumigrate launch mpi "mpirun …"',
        ),
        (
            "run.sh",
            "mpirun --allow-run-as-root -n 8 python train.py --d ~/data $ARGS >log 2>&1 && echo done",
            f"{ONE} 8 -- --d ~/data $ARGS >log 2>&1",
        ),
        ("job.yaml", 'command: ["bash", "-c", "mpirun -n 2 python train.py"]', f"{ONE} 2"),
        ("README.md", "Several NPUs: `mpiexec -n 2 python train.py`.", f"{ONE} 2"),
    ],
)
def test_lines_of_mpi_and_horovod(name: str, line: str, advice: str) -> None:
    result = examine(name, f"# start\n{line}\n".encode())
    assert result is not None
    assert any(launcher in result.left for launcher in ("horovodrun", "mpirun", "mpiexec"))
    (finding,) = result.findings
    assert (finding.code, finding.line, finding.advice) == ("NPU932", 2, advice)
    assert finding.end_line == 2 + line.count("\n")
