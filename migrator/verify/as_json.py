"""The verdict as JSON; docs/verify.md lists the keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from migrator import __version__
from migrator.verify.diagnosis import Failure
from migrator.verify.numbers import Comparison
from migrator.verify.observed import Process
from migrator.verify.processes import Ended
from migrator.verify.verdict import Original, Verdict

SCHEMA = 1


def verdict_text(
    verdict: Verdict,
    project: str,
    command: Sequence[str],
    machine: Mapping[str, Any],
    repair: Mapping[str, Any] | None = None,
) -> str:
    """Return the verdict as JSON text; ``repair`` is what ``record.as_json`` gives, where there was one."""
    shares = verdict.shares
    data = {
        "schema": SCHEMA,
        "npumigrate": __version__,
        "verdict": verdict.outcome,
        "exit_code": verdict.exit_code,
        "reasons": verdict.reasons,
        "emulated": True,
        "project": project,
        "command": list(command),
        "torch": verdict.torch,
        "migrated_for": verdict.migrated_for or None,
        "machine": dict(machine),
        "program": _ended(verdict.ended),
        "set": verdict.set_to,
        "bounded": [asdict(process) for process in verdict.course.bounded],
        "lacks": None if verdict.course.lack is None else asdict(verdict.course.lack),
        "failures": [_failure(failure) for failure in verdict.course.failures],
        "lost_precision": [_failure(failure) for failure in verdict.course.lost],
        "repair": repair,
        "ran_on": shares.place,
        "trained": verdict.trained,
        "npu_share": asdict(shares),
        "operators": verdict.operators,
        "without_npu_kernel": verdict.without_npu_kernel,
        "collectives": verdict.collectives,
        "transfer_to_npu": verdict.transfer,
        "processes": [_process(process) for process in verdict.processes],
        "cuda_reached": [
            {
                "file": reached.place.file,
                "line": reached.place.line,
                "column": reached.place.span[1] + 1,
                "kind": reached.place.kind,
                "source": reached.place.source,
                "count": reached.count,
                "by": reached.by,
            }
            for reached in verdict.reached
        ],
        "cuda_not_reached": verdict.not_reached,
        "original": _original(verdict.original),
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _ended(ended: Ended) -> dict[str, Any]:
    return {
        "exit_code": ended.code,
        "seconds": round(ended.seconds, 1),
        "timed_out": ended.timed_out,
        "processes_left": ended.left,
        "still_seconds": round(ended.still, 1),
    }


def _failure(failure: Failure) -> dict[str, Any]:
    inner = failure.frames[-1] if failure.frames else None
    return {
        "process": failure.process,
        "rank": failure.rank,
        "type": failure.type,
        "text": failure.text,
        "place": None if inner is None else f"{inner.file}:{inner.line}",
    }


def _process(process: Process) -> dict[str, Any]:
    return {
        "process": process.pid,
        "rank": process.rank,
        "command": process.command,
        "torch_npu": process.torch_npu,
        "operators": {device: sum(counts.values()) for device, counts in process.operators.items()},
        "work": {
            device: {direction: asdict(work) for direction, work in both.items()}
            for device, both in process.work.items()
        },
        "dynamic_shapes": {
            "steps": process.steps,
            "operators": [asdict(entry) for entry in process.new_shapes],
        },
    }


def _original(original: Original | None) -> dict[str, Any] | None:
    if original is None:
        return None
    return {
        "folder": original.folder,
        "program": _ended(original.ended),
        "cuda_on_cpu": sum(process.cuda_on_cpu for process in original.processes),
        "comparison": None if original.comparison is None else _comparison(original.comparison),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    largest = comparison.largest
    return {
        "tolerance": comparison.tolerance,
        "agrees": comparison.agrees,
        "lines": len(comparison.compared),
        "numbers": comparison.numbers,
        "largest_difference": largest if largest != float("inf") else None,
        "compared": [
            {"original": pair.original, "migrated": pair.migrated, "agrees": pair.agrees}
            for pair in comparison.compared
        ],
        "only_original": comparison.only_original,
        "only_migrated": comparison.only_migrated,
    }
