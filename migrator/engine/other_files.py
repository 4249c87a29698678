"""Files that are no Python but look as if they need changes: they are named, not touched."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from migrator.finding import FileResult, Finding

CUDA_SOURCES = frozenset({".cu", ".cuh"})
_NATIVE = frozenset({".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"})
_TEXTS = frozenset(
    ".sh .bash .zsh .slurm .sbatch .pbs .yaml .yml .json .toml .cfg .ini .ipynb .env .conf .mk .cmake .bat"
    " .ps1 .dockerfile .j2 .pyx .pxd".split()
)
_NAMES = re.compile(r"(?:Dockerfile|Makefile|CMakeLists\.txt|Containerfile|requirements.*\.txt)", re.I)
MAX_BYTES = 4 * 2**20

_MENTION = re.compile(
    rb"\b(?:CUDA_\w+|PYTORCH_CUDA\w*|T?O?R?C?H?_?NCCL_\w+|cuda(?::\d+)?|nccl|nvidia-smi|nvidia/cuda|nvcc|horovodrun)\b"
)
_KERNEL = re.compile(
    rb"__global__\s+(?:[\w:<>,\s*&()]*?\s)?void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*[<(]"
)
_BOUND = re.compile(rb"\bm\s*\.\s*(?:def|impl)\s*\(\s*\"([\w.]+)")
_LIBRARY = re.compile(rb"PYBIND11_MODULE|TORCH_LIBRARY")
_CUDA_CODE = re.compile(
    rb"\bcuda(?:Stream|Malloc|_runtime|Error)|ATen/cuda|c10/cuda|\bcu(?:blas|dnn|sparse)\w*|__global__"
)


def is_candidate(name: str) -> bool:
    """Whether a file's name says that it may hold something about CUDA."""
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    return suffix in CUDA_SOURCES | _NATIVE | _TEXTS or bool(_NAMES.fullmatch(path.name))


def examine(name: str, data: bytes) -> FileResult | None:
    """What a person has to know of a file that is not Python; None where it has nothing to do with CUDA.

    CUDA sources come with a finding for each kernel and each function that is
    bound for Python; other texts with the first place that mentions CUDA.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in CUDA_SOURCES | _NATIVE:
        if suffix in _NATIVE and not _CUDA_CODE.search(data):
            return None
        findings = tuple(_operators(data, bound=suffix in CUDA_SOURCES or bool(_LIBRARY.search(data))))
        return FileResult(name, findings=findings, left="CUDA source: not migrated; see cuda_op_list.csv")
    found = _MENTION.search(data)
    if found is None:
        return None
    line = data.count(b"\n", 0, found.start()) + 1
    words = {match.decode("ascii") for match in _MENTION.findall(data)}
    listed = ", ".join(sorted(words)[:4])
    return FileResult(name, left=f"not Python: left as it is; mentions {listed} (first in line {line})")


def _operators(data: bytes, bound: bool) -> list[Finding]:
    findings = []
    patterns = [("CUDA kernel", _KERNEL)] + ([("operator for Python", _BOUND)] if bound else [])
    for kind, pattern in patterns:
        for match in pattern.finditer(data):
            line = data.count(b"\n", 0, match.start(1)) + 1
            name = match.group(1).decode("ascii", "replace")
            findings.append(
                Finding(
                    code="NPU652",
                    api=name,
                    line=line,
                    end_line=line,
                    column=1,
                    message=f"{kind} {name}",
                    severity="error",
                    advice="Use PyTorch or torch_npu operators instead, or write an Ascend C operator.",
                )
            )
    return sorted(findings, key=lambda finding: finding.line)
