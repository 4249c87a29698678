"""Profiles that nobody ran: the files as torch_npu 2.13 and torch write them, with its headers."""

from __future__ import annotations

import csv
import gzip
import json
import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

STEP_TRACE = [
    *(
        "Device_id",
        "Step",
        "Computing",
        "Communication(Not Overlapped)",
        "Overlapped",
        "Communication",
        "Free",
    ),
    *("Stage", "Bubble", "Communication(Not Overlapped and Exclude Receive)", "Preparing"),
]
KERNELS = [
    *("Step Id", "Device_id", "Model ID", "Task ID", "Stream ID", "Name", "Type", "OP State"),
    *("Accelerator Core", "Start Time(us)", "Duration(us)", "Wait Time(us)", "Block Num", "Mix Block Num"),
    *("HF32 Eligible", "Input Shapes", "Input Data Types", "Input Formats"),
]
STATISTIC = [
    *("Device_id", "OP Type", "Core Type", "Count", "Total Time(us)", "Min Time(us)", "Avg Time(us)"),
    *("Max Time(us)", "Ratio(%)"),
]
OPERATORS = [
    *("Name", "Input Shapes", "Call Stack", "Host Self Duration(us)", "Host Total Duration(us)"),
    *("Device Self Duration(us)", "Device Total Duration(us)", "Device Self Duration With AICore(us)"),
    "Device Total Duration With AICore(us)",
]
OPERATOR_MEMORY = [
    *("Name", "Size(KB)", "Allocation Time(us)", "Release Time(us)", "Active Release Time(us)"),
    *("Duration(us)", "Active Duration(us)", "Allocation Total Allocated(MB)"),
    *("Allocation Total Reserved(MB)", "Allocation Total Active(MB)", "Release Total Allocated(MB)"),
    *("Release Total Reserved(MB)", "Release Total Active(MB)", "Stream Ptr", "Device Type"),
]
MEMORY_RECORD = [
    *("Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Total Active(MB)"),
    *("Stream Ptr", "Device Type"),
]
MODULE_MEMORY = ["Device_id", "Component", "Timestamp(us)", "Total Reserved(MB)", "Device"]
T0 = 1795832007000000.0  # the clock of a trace, in microseconds
STACK = (
    "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py(1789): _call_impl;\r\n"
    "/home/me/proj/model.py(41): forward;\r\n/home/me/proj/train.py(9): <module>"
)


def table(file: Path, head: Sequence[str], *rows: Sequence[Any] | dict[str, Any]) -> None:
    """Write a table; of a dictionary the columns that are not given are empty."""
    with file.open("w", newline="") as out:
        written = csv.writer(out)
        written.writerow(head)
        written.writerows(
            [row.get(name, "") for name in head] if isinstance(row, dict) else row for row in rows
        )


def span(
    name: str, start: float, end: float, category: str = "cpu_op", pid: int = 7, **args: Any
) -> dict[str, Any]:
    """An event of a trace, its times from ``T0`` on in milliseconds, as torch_npu writes them."""
    ts = f"{T0 + 1000 * start:.3f}"
    return {
        "ph": "X",
        "name": name,
        "pid": pid,
        "tid": 7,
        "ts": ts,
        "dur": 1000 * (end - start),
        "cat": category,
        "args": args,
    }


def process(name: str, pid: int) -> dict[str, Any]:
    """The name of a process in a trace."""
    return {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}


def on_npu(name: str, start: float, end: float) -> dict[str, Any]:
    """A stretch of the overlap analysis, process 9."""
    event = span(name, start, end, pid=9)
    return {key: value for key, value in event.items() if key != "cat"}


def trace_events() -> list[dict[str, Any]]:
    """Two steps of 100 ms: 50 of computing, 10 of collectives, 15 of data, 12 on the CPU, 13 of waiting."""
    events = [process("Python", 7), process("Overlap Analysis", 9), process("Python GC", 8)]
    for number in (0, 1):
        at = 100.0 * number
        events += [
            span("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, at + 15),
            on_npu("Computing", at + 15, at + 65),
            on_npu("Communication", at + 60, at + 75),
            on_npu("Communication(Not Overlapped)", at + 65, at + 75),
            span("aten::_to_cpu", at + 76, at + 77),
            span("aten::unique_dim", at + 75, at + 87, **{"Call stack": STACK}),
            on_npu("Free", at + 75, at + 100),
            span("gc", at + 90, at + 94, "gc", 8),
            span(f"ProfilerStep#{number}", at, at + 100),
        ]
    return events


def npu_profile(folder: Path, **changed: Any) -> Path:
    """A rank's folder with all files. ``changed``: settings of the run."""
    place = folder / "host_1_20261128021327388_ascend_pt"
    output = place / "ASCEND_PROFILER_OUTPUT"
    output.mkdir(parents=True)
    (place / "profiler_metadata.json").write_text(json.dumps({"ENV_VARIABLES": changed}))
    (place / "profiler_info_3.json").write_text(json.dumps({"torch_npu_version": "2.13.0"}))
    step = (50000, 10000, 5000, 15000, 40000, 100000, 0, 10000, 500)
    table(output / "step_trace_time.csv", STEP_TRACE, (0, 0, *step), (0, 1, *step))
    kernels = []
    for number in (0, 1):
        for name, kind, core, time, types in (
            ("aclnnMatmul_MatMulCommon_MatMulV2", "MatMulV2", "AI_CORE", 30000, "FLOAT;FLOAT"),
            ("aclnnCast_CastAiCore_Cast", "Cast", "AI_VECTOR_CORE", 8000, "FLOAT"),
            ("aclnnTopk_TopKAiCpu", "TopK", "AI_CPU", 12000, "INT64"),
            ("hcom_allReduce__844_1_1@1368", "hcom_allReduce_", "HCCL", 15000, "N/A"),
        ):
            row = {"Step Id": number, "Device_id": 0, "Name": name, "Type": kind, "Accelerator Core": core}
            row |= {"Start Time(us)": f"{T0}\t", "Duration(us)": time, "HF32 Eligible": "NO"}
            kernels.append({**row, "Input Data Types": types})
    table(output / "kernel_details.csv", KERNELS, *kernels)
    operators = [("aten::addmm", "", STACK, 100, 120, 30000, 30000, 30000, 30000)] * 2
    operators += [("aten::topk", "", "", 100, 120, 12000, 12000, 0, 0)] * 2
    operators += [("aten::_local_scalar_dense", "", STACK.replace("41", "52"), 6000, 6000, 0, 0, 0, 0)] * 2
    table(output / "operator_details.csv", OPERATORS, *operators)
    records = [
        ("PTA", 20, 100, 512),
        ("PTA", 40, 600, 1024),
        ("PTA+GE", 40, 900, 2048),
        ("PTA", 90, 500, 1536),
    ]
    records += [("APP", 95, 0, 4096), ("WORKSPACE", 95, 300, 400)]
    table(
        output / "memory_record.csv",
        MEMORY_RECORD,
        *((name, f"{T0 + 1000 * at}\t", used, kept, used, 1, "NPU:0") for name, at, used, kept in records),
    )
    times = f"{T0 + 30000.0}\t", f"{T0 + 99000.0}\t"
    tensor = {"Name": "aten::empty_strided", "Size(KB)": 409600, "Device Type": "NPU:0"}
    tensor |= {"Allocation Time(us)": times[0], "Release Time(us)": times[1]}
    gone = {**tensor, "Release Time(us)": f"{T0 + 31000.0}\t"}
    table(output / "operator_memory.csv", OPERATOR_MEMORY, tensor, gone)
    table(output / "npu_module_mem.csv", MODULE_MEMORY, (0, "HCCL", T0, 400, "NPU:0"))
    events = trace_events()
    made_at_peak = span("aten::empty_strided", 29.9, 30.1, **{"Call stack": STACK})
    events.insert(3, made_at_peak)
    (output / "trace_view.json").write_text(json.dumps(events))
    collectives = {
        "hcom_allReduce__844_1_1@1368": {},
        "Total Op Info": {
            "Communication Time Info": {"Elapse Time(ms)": 15, "Transit Time(ms)": 3, "Wait Time(ms)": 12},
            "Communication Bandwidth Info": {},
        },
    }
    steps = {"step0": {"p2p": {}, "collective": collectives}}
    (output / "communication.json").write_text(json.dumps(steps))
    return place


def torch_trace(file: Path, on_gpu: bool) -> Path:
    """Two steps of 20 ms in the order of torch.profiler: 9 ms of the loader, 4 of kernels, an item()."""
    calls, frames, kernels = list[dict[str, Any]](), list[dict[str, Any]](), list[dict[str, Any]]()

    def call(name: str, start: float, end: float, category: str = "cpu_op", thread: int = 7) -> None:
        calls.append({**span(name, start, end, category, **{"External id": len(calls) + 1}), "tid": thread})

    for at in (0.0, 20.0):
        call(f"ProfilerStep#{at / 20:.0f}", at, at + 20, "user_annotation")
        call("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, at + 9, "user_annotation")
        call("aten::randn", at + 1, at + 2)
        call("aten::linear", at + 9, at + 10)
        call("aten::addmm", at + 9.5, at + 10)
        launched = {"External id": len(calls)}
        call("aten::mm", at + 11, at + 12, thread=8)  # the backward pass
        call("Optimizer.step#SGD.step", at + 12, at + 15, "user_annotation")
        call("aten::_foreach_add_", at + 13, at + 14)
        call("aten::item", at + 15, at + 19)
        call("aten::_local_scalar_dense", at + 15, at + 19)
        frames += [
            span("train.py(3): <module>", at, at + 20, "python_function"),
            span("data.py(9): __getitem__", at + 0.5, at + 3, "python_function"),
            span("net/model.py(12): forward", at + 9, at + 10, "python_function"),
            span("torch/nn/modules/linear.py(130): forward", at + 9, at + 10, "python_function"),
            span("contextlib.py(81): inner", at + 12, at + 15, "python_function"),
        ]
        kernels += [
            span("nvjet_tst_128x64", at + 10, at + 13, "kernel", **launched),
            span("cudaStreamSynchronize", at + 15, at + 19, "cuda_runtime", **launched),
            span("Memcpy DtoH (Device -> Pinned)", at + 18, at + 19, "gpu_memcpy", **launched),
        ]
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": calls + frames + kernels * on_gpu}))
    return file


def cuda_trace(file: Path) -> Path:
    """The same step on a GPU: 60 ms, addmm in 5 ms, 4 of NCCL that nothing hides."""
    events = []
    for number in (0, 1):
        at, first = 60.0 * number, 10 * number
        kernel = {"correlation": 5, "External id": first + 1}
        events += [
            span(f"ProfilerStep#{number}", at, at + 60, "user_annotation"),
            span(f"ProfilerStep#{number}", at, at + 60, "gpu_user_annotation"),
            span("aten::addmm", at + 1, at + 2, **{"External id": first + 1}),
            span("aten::topk", at + 2, at + 3, **{"External id": first + 2}),
            span("cudaLaunchKernel", at + 1.5, at + 1.6, "cuda_runtime", **kernel),
            span("ampere_sgemm_128x64_tn", at + 10, at + 15, "kernel", **kernel),
            span("topk_kernel", at + 15, at + 16, "kernel", **{"External id": first + 2}),
            span("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + 14, at + 20, "kernel"),
        ]
    for event in events:
        event["ts"] = float(event["ts"])
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}
    with gzip.open(file, "wt") as out:
        json.dump({**head, "traceName": file.name}, out)
    return file


def snapshot(file: Path) -> Path:
    """3 GiB reserved: 1 GiB in use, a segment half empty, one all empty; then a request too many."""
    frames = [
        {"filename": "??", "line": 0, "name": "c10::alloc"},
        {
            "filename": "/opt/env/lib/python3.11/site-packages/torch/nn/modules/linear.py",
            "line": 1,
            "name": "f",
        },
        {"filename": "/home/me/proj/model.py", "line": 41, "name": "forward"},
    ]
    gib = 1 << 30
    used = {"size": gib, "requested_size": gib, "address": 0, "state": "active_allocated", "frames": frames}
    free = {"size": gib, "requested_size": 0, "address": gib, "state": "inactive", "frames": []}
    segment = {"address": 0, "stream": 0, "segment_type": "large", "allocated_size": gib, "active_size": gib}
    segments = [
        {**segment, "total_size": 2 * gib, "blocks": [used, free]},
        {**segment, "total_size": gib, "allocated_size": 0, "active_size": 0, "blocks": [free]},
    ]
    traces = [[{"action": "oom", "size": 2 * gib, "device_free": gib, "stream": 0, "frames": frames}]]
    file.write_bytes(pickle.dumps({"segments": segments, "device_traces": traces}))
    return file


def insight(folder: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """What verify --insight wrote into a result."""
    (folder / "migration_report").mkdir(parents=True)
    (folder / "migration_report" / "npu_insight.json").write_text(
        json.dumps({"schema": 1, "rows": list(rows)})
    )
    return folder
