"""Lines of scripts and configurations that name CUDA's variables, devices and backends."""

from __future__ import annotations

import pytest

from migrator.matchers.other_files import examine, find_lines
from migrator.project.operators import Catalog


def said(text: str) -> list[tuple[str, int, str, str]]:
    return [(item.code, item.line, item.severity, item.advice) for item in find_lines(text)]


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("export CUDA_VISIBLE_DEVICES=0,1", "Write ASCEND_RT_VISIBLE_DEVICES=0,1."),
        ("CUDA_LAUNCH_BLOCKING=1 python train.py", "Write ASCEND_LAUNCH_BLOCKING=1."),
        ('  "CUDA_VISIBLE_DEVICES": "0",', "Write ASCEND_RT_VISIBLE_DEVICES=0."),
        ("ENV CUDA_VISIBLE_DEVICES 0", "Write ASCEND_RT_VISIBLE_DEVICES."),
        ('if [ -z "$CUDA_VISIBLE_DEVICES" ]; then', "Write ASCEND_RT_VISIBLE_DEVICES."),
        (
            "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "Write PYTORCH_NPU_ALLOC_CONF=expandable_segments:True.",
        ),
    ],
)
def test_variables_with_a_counterpart(line: str, advice: str) -> None:
    assert said(f"#!/bin/sh\n{line}\n") == [("NPU404", 2, "warning", advice)]


def test_variables_without_one_and_other_values() -> None:
    first, second, third = find_lines(
        "export NCCL_IB_DISABLE=1 CUDA_HOME=/usr/local/cuda\nCUDA_VISIBLE_DEVICES=GPU-12 python a.py\n"
    )
    assert (first.severity, first.message) == ("info", "NCCL_IB_DISABLE has no effect on NPUs")
    assert second.message == "CUDA_HOME is ASCEND_HOME_PATH on NPUs; the values differ"
    assert third.message == "CUDA_VISIBLE_DEVICES: ASCEND_RT_VISIBLE_DEVICES does not take 'GPU-12'"


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("device: cuda", "npu"),
        ("  map_location: 'cuda:1'  # the second", "npu:1"),
        ('{"train_device": "cuda:0"}', "npu:0"),
        ('devices: ["cuda:0", "cuda:1"]', "npu:0"),
        ("device = cuda", "npu"),
        ("python train.py --device cuda", "npu"),
        ("python train.py --dist-backend=nccl", "hccl"),
        ("distributed_backend: NCCL", "hccl"),
    ],
)
def test_devices_and_backends(line: str, new: str) -> None:
    assert said(line) == [("NPU124", 1, "warning", f"Write {new}.")]


@pytest.mark.parametrize("name", ["CMakeLists.txt", "Makefile", "flags.cmake", "notes.md"])
def test_builds_and_documents_name_no_lines(name: str) -> None:
    result = examine(name, b"CUDA_HOME = /usr/local/cuda\n", Catalog())
    assert result is None or not result.findings
