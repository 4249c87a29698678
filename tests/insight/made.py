"""Runs that were not run: records as the emulator writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GIB = 1 << 30


def record(place: int = 0, operator: str = "aten::mul.Tensor", **changed: Any) -> dict[str, Any]:
    """A record that came once in each of four steps."""
    return {
        "place": place,
        "device": 0,
        "operator": operator,
        "phase": "forward",
        "types": "Float Float",
        "options": "",
        "crossing": "",
        "by_truth": 0,
        "first": [1, 1000, 0],
        "later": [3, 3000, 0],
        "after": [0, 0, 0],
        "seen_steps": 3,
        "shapes": 1,
        "first_shapes": 1,
        "new_steps": 0,
        "origins": 0,
        "examples": ["8x4 8x4>8x4"],
        **changed,
    }


def memory(peak: int, kept: int, *held: tuple[int, int]) -> dict[str, Any]:
    """An NPU's memory; ``held`` are places and bytes."""
    tensors = [{"place": place, "operator": "aten::mm", "bytes": size, "number": 1} for place, size in held]
    peaks = {"forward": peak, "backward": 0, "optimizer": 0}
    return {**peaks, "reserved": peak, "kept": kept, "tensors": tensors}


def process(
    folder: Path,
    *records: dict[str, Any],
    rank: int = 0,
    steps: int = 4,
    of_memory: dict[str, Any] | None = None,
    lacking: tuple[str, ...] = (),
    composite: tuple[str, ...] = (),
    places: int = 3,
) -> None:
    """Write what one process recorded: places are lines 1, 2, … of train.py."""
    insight = {
        "schema": 1,
        "steps": steps,
        "places": [
            {"file": "train.py", "line": line, "function": f"f{line}", "through": ""}
            for line in range(1, places + 1)
        ],
        "records": list(records),
        "composite": composite,
        "stacks": {},
        "memory": of_memory or {},
    }
    content = {"process": 100 + rank, "rank": str(rank), "without_npu_kernel": lacking, "insight": insight}
    (folder / f"process-{100 + rank}.json").write_text(json.dumps(content))


def collectives(folder: Path, rank: int, *calls: tuple[str, int, int], size: int = 2) -> None:
    """Write the collectives of one process: kind, bytes and line."""
    lines = []
    for number, (kind, amount, line) in enumerate(calls):
        place = {"file": "train.py", "line": line, "function": f"f{line}"}
        call = {"kind": f"Hccl{kind}", "group": "g", "size": size, "rank": rank, "bytes": amount}
        lines += [json.dumps({**call, "step": 0, "place": place}), f"{number} {number}"]
    (folder / f"collectives-{100 + rank}.txt").write_text("\n".join(lines) + "\n")
