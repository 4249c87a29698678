"""Whether a run proves that a migrated project works on NPUs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from migrator import __version__
from migrator.compare.printed import Comparison
from migrator.explain.show import entry_data
from migrator.explain.table import Entry
from migrator.language import N_, _
from migrator.light import Frozen
from migrator.verify.diagnosis import Failure, Lack, Stack
from migrator.verify.observed import Bounded, Place, Process, Reached, Span, sum_work
from migrator.verify.processes import Ended

SCHEMA = 1  # of the JSON
PASSED = N_("passed")
WARNED = N_("passed with a warning")  # mixed precision is off
FAILED = N_("program failed")
TIMED_OUT = N_("timed out")
NOT_ON_NPU = N_("not on the NPU")
DIFFERENT = N_("numbers differ")
NOT_COMPARED = N_("not compared")
WAITS = N_("blocked by the environment")
INTERRUPTED = N_("interrupted")
EXIT_CODES = {PASSED: 0, WARNED: 0, FAILED: 1, TIMED_OUT: 1, NOT_ON_NPU: 3, DIFFERENT: 4}
EXIT_CODES |= {NOT_COMPARED: 5, WAITS: 6, INTERRUPTED: 130}
# A share of the CPU that preparing data and computing metrics do not reach.
_CPU_SHARE = 0.1


class Shares(Frozen):
    """What part of the work the NPUs did, 0 to 1, and by what it was measured; None without any work."""

    forward: float | None
    backward: float | None
    measure: str

    @property
    def place(self) -> str:
        """Where the work ran: ``npu``, ``cpu``, both (``mixed``), or ``nowhere``."""
        given = [share for share in (self.forward, self.backward) if share is not None]
        if not given:
            return "nowhere"
        if min(given) >= 1 - _CPU_SHARE:
            return "npu"
        return "cpu" if max(given) <= _CPU_SHARE else "mixed"


class Original(Frozen):
    """The run of the original on the CPU, and what came of the comparison; None where it did not end well."""

    folder: str
    ended: Ended
    processes: tuple[Process, ...]
    comparison: Comparison | None


class Course(Frozen):
    """How a run went: the failures that were noted, what was missing, and the processes that ended as asked.

    ``lack`` is None where nothing but the program's own code is known to be the reason of its end. What the
    table of errors knows of the failure is ``explained``.
    """

    failures: tuple[Failure, ...] = ()
    lack: Lack | None = None
    bounded: tuple[Bounded, ...] = ()
    lost: tuple[Failure, ...] = ()  # mixed precision that was asked of CUDA, and is off
    stacks: tuple[Stack, ...] = ()  # where processes were, if they were asked
    evaluated: frozenset[tuple[str, Span]] = frozenset()  # of what else was watched, by file
    explained: Entry | None = None

    def only_followed(self, ended: Ended) -> bool:
        """Whether it failed, or waited, only because the ranks had been ended after their steps."""
        parents = {process.parent for process in self.bounded}
        if ended.still:
            return bool(parents)
        return bool(self.failures) and all(failure.process in parents for failure in self.failures)


class Verdict(Frozen):
    """A run of a migrated project, and what it proves.

    ``torch`` is the one that ran it, ``migrated_for`` the one that it was migrated for, empty if not known.
    """

    outcome: str
    reasons: tuple[str, ...]
    ended: Ended
    processes: tuple[Process, ...]
    shares: Shares
    reached: tuple[Reached, ...]
    not_reached: int
    original: Original | None
    course: Course
    torch: str = ""
    migrated_for: str = ""
    set_to: tuple[str, ...] = ()  # the options that --shrink has set

    @property
    def other_torch(self) -> bool:
        """Whether the project was migrated for another torch than the one that ran it."""
        return bool(self.migrated_for) and self.migrated_for.split(".")[:2] != self.torch.split(".")[:2]

    @property
    def exit_code(self) -> int:
        """The exit code of ``npumigrate verify``."""
        return EXIT_CODES[self.outcome]

    @property
    def operators(self) -> dict[str, dict[str, int]]:
        """Operators that ran, by NPU."""
        total = _summed(process.operators for process in self.processes)
        return {device: dict(sorted(total[device].items())) for device in sorted(total, key=int)}

    @property
    def collectives(self) -> dict[str, dict[str, int]]:
        """Calls and bytes of each collective."""
        return dict(sorted(_summed(process.collectives for process in self.processes).items()))

    @property
    def without_npu_kernel(self) -> list[str]:
        """Operators that torch_npu has no kernel for."""
        return sorted({name for process in self.processes for name in process.without_npu_kernel})

    @property
    def transfer(self) -> bool:
        """Whether transfer_to_npu made the names of CUDA mean the NPU."""
        return any(process.transfer_to_npu for process in self.processes)


def _summed(parts: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    total: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for key, counts in (item for part in parts for item in part.items()):
        total[key].update(counts)
    return {key: dict(counts) for key, counts in total.items()}


def judge(
    ended: Ended,
    processes: Sequence[Process],
    reached: Sequence[Reached],
    places: Sequence[Place],
    original: Original | None,
    course: Course = Course(),
) -> Verdict:
    """Return the verdict on a run; ``original`` where a comparison was asked for."""
    shares = measure(processes)
    outcome, reasons = _outcome(ended, processes, shares, original, course)
    outcome = WARNED if outcome == PASSED and course.lost else outcome
    reasons += dict.fromkeys(each.text + each.place for each in course.lost)
    seen = (tuple(processes), shares, tuple(reached), len(places) - len(reached), original, course)
    return Verdict(outcome, tuple(reasons), ended, *seen)


def measure(processes: Sequence[Process]) -> Shares:
    """Return the NPUs' share of the work: of the multiply-adds, or of the operators where there were none."""

    def share(direction: str, what: str) -> float | None:
        npu, cpu = (getattr(sum_work(processes, direction, on_npu), what) for on_npu in (True, False))
        return npu / (npu + cpu) if npu + cpu else None

    forward, backward = share("forward", "multiply_adds"), share("backward", "multiply_adds")
    by_operators = share("backward", "operators")
    if forward is not None or backward is not None:
        return Shares(forward, by_operators if backward is None else backward, N_("multiply-adds"))
    # Preparing data is made of small operators too, on the CPU: only the backward pass shows it.
    forward = share("forward", "operators")
    return Shares(None if forward is None else float(forward > 0), by_operators, N_("operators"))


def _outcome(
    ended: Ended, processes: Sequence[Process], shares: Shares, original: Original | None, course: Course
) -> tuple[str, list[str]]:
    if ended.interrupted:
        return INTERRUPTED, [_("the run was interrupted")]
    if (ended.timed_out or ended.code) and not course.only_followed(ended):
        if course.lack is not None:
            return WAITS, [course.lack.name, *course.lack.lines, course.lack.advice]
        if ended.timed_out:
            return TIMED_OUT, [_("the program was stopped after {seconds:.0f} s", seconds=ended.seconds)]
        first = [f"{failure.who}: {failure.line}" for failure in course.failures[:1]]
        # What the table of errors says of it: its cause, and what to do.
        entry = course.explained
        more = [f"{entry.code}: {entry.said().cause}", *entry.said().do] if entry else []
        return FAILED, [_how_it_failed(ended.code), *first, *more]
    trouble = _not_on_npu(processes, shares)
    if trouble or original is None:
        return (NOT_ON_NPU if trouble else PASSED), trouble
    cpu, comparison = original.ended, original.comparison
    if cpu.interrupted:
        return INTERRUPTED, [_("the run of the original was interrupted")]
    if cpu.timed_out:
        return NOT_COMPARED, [_("the original was stopped after {seconds:.0f} s", seconds=cpu.seconds)]
    if cpu.code or comparison is None:
        return NOT_COMPARED, [_("the original on the CPU: {code}", code=_how_it_failed(cpu.code))]
    if not comparison.compared:
        return NOT_COMPARED, [_("the two runs printed no comparable numbers")]
    if not comparison.wrong:
        return PASSED, []
    wrong, compared = len(comparison.wrong), len(comparison.compared)
    share = _("{wrong} of {compared} lines", wrong=wrong, compared=compared)
    said = _("{share} differ by more than {tolerance:g}", share=share, tolerance=comparison.tolerance)
    return DIFFERENT, [said]


def _how_it_failed(code: int) -> str:
    if code > 128:
        return _("the program was terminated by signal {code}", code=code - 128)
    return _("the program ended with exit code {code}", code=code)


def _not_on_npu(processes: Sequence[Process], shares: Shares) -> list[str]:
    if not processes:
        return [_("no process imported torch, or none of those ended normally")]
    if not any(process.torch_npu for process in processes):
        return [_("torch_npu was never imported: everything ran on the CPU")]
    if shares.place == "nowhere":
        return [_("nothing was computed, on the NPU or the CPU")]
    reasons = []
    whole = {_("the training (its backward pass)"): shares.backward, _("the work"): shares.forward}
    for what, share in whole.items():
        if share is not None and share < 1 - _CPU_SHARE:
            part = _("ran for {value:.0%} of its {measure}", value=1 - share, measure=_(shares.measure))
            reasons.append(_("{what} {part} on the CPU", what=what, part=part if share else _("ran")))
    if reasons or not any(process.operators for process in processes):
        return reasons
    # The process of a launcher has a rank in a nested launch only; it computes nothing.
    idle = (each for each in processes if each.rank is not None and not each.operators)
    lazy = (each.rank for each in idle if each.amount("forward", False).products)
    return [_("rank {rank} ran nothing on an NPU", rank=rank) for rank in lazy]


# -- as JSON ---------------------------------------------------------------------------


def verdict_text(
    verdict: Verdict,
    project: str,
    command: Sequence[str],
    machine: Mapping[str, Any],
    repair: Mapping[str, Any] | None = None,
) -> str:
    """Return the verdict as JSON text, whose keys docs/verify.md lists.

    ``repair`` is what ``repair.loop.as_json`` gives, where there was one.
    """
    course, original = verdict.course, verdict.original
    compared = original.comparison if original else None
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
        "bounded": [
            {"pid": each.process, **_part(each, "parent", "rank", "steps", "passes")}
            for each in course.bounded
        ],
        "lacks": course.lack and asdict(course.lack),
        "explained": course.explained and entry_data(course.explained),
        "failures": [_failure(failure) for failure in course.failures],
        "lost_precision": [_failure(failure) for failure in course.lost],
        "repair": repair,
        "ran_on": verdict.shares.place,
        "trained": any(sum_work(verdict.processes, "backward", npu).operators for npu in (True, False)),
        "npu_share": asdict(verdict.shares),
        "operators": verdict.operators,
        "without_npu_kernel": verdict.without_npu_kernel,
        "collectives": verdict.collectives,
        "transfer_to_npu": verdict.transfer,
        "processes": [
            {
                **_part(process, "process", "rank", "command", "torch_npu"),
                "operators": {device: sum(counts.values()) for device, counts in process.operators.items()},
                "work": asdict(process)["work"],
                "dynamic_shapes": {"steps": process.steps, "operators": asdict(process)["new_shapes"]},
            }
            for process in verdict.processes
        ],
        "cuda_reached": [
            {
                **_part(reached.place, "file", "line"),
                "column": reached.place.span[1] + 1,
                **_part(reached.place, "kind", "source"),
                **_part(reached, "count", "by"),
            }
            for reached in verdict.reached
        ],
        "cuda_not_reached": verdict.not_reached,
        "original": original
        and {
            "folder": original.folder,
            "program": _ended(original.ended),
            "cuda_on_cpu": sum(process.cuda_on_cpu for process in original.processes),
            "comparison": compared
            and {
                **_part(compared, "tolerance", "agrees"),
                "lines": len(compared.compared),
                "numbers": compared.numbers,
                "largest_difference": compared.largest if compared.largest != float("inf") else None,
                "compared": [_part(pair, "original", "migrated", "agrees") for pair in compared.compared],
                **_part(compared, "only_original", "only_migrated"),
            },
        },
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _part(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _ended(ended: Ended) -> dict[str, Any]:
    return {
        "exit_code": ended.code,
        "seconds": round(ended.seconds, 1),
        "timed_out": ended.timed_out,
        "processes_left": ended.left,
        "still_seconds": round(ended.still, 1),
    }


def _failure(failure: Failure) -> dict[str, Any]:
    places = [f"{frame.file}:{frame.line}" for frame in failure.frames]
    return {**_part(failure, "process", "rank", "type", "text"), "place": places[-1] if places else None}
