"""Whether a run proves that a migrated project works on NPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.verify.numbers import Comparison
from migrator.verify.observed import Process, Reached, Work, sum_collectives, sum_operators, sum_work
from migrator.verify.places import Place
from migrator.verify.processes import Ended

PASSED = "passed"
FAILED = "program failed"
TIMED_OUT = "timed out"
NOT_ON_NPU = "not on the NPU"
DIFFERENT = "numbers differ"
NOT_COMPARED = "not compared"
INTERRUPTED = "interrupted"
EXIT_CODES = {
    PASSED: 0,
    FAILED: 1,
    TIMED_OUT: 1,
    NOT_ON_NPU: 3,
    DIFFERENT: 4,
    NOT_COMPARED: 5,
    INTERRUPTED: 130,
}
# A share of the CPU that preparing data and computing metrics do not reach.
_CPU_SHARE = 0.1


@dataclass(frozen=True)
class Shares:
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


@dataclass(frozen=True)
class Original:
    """The run of the original on the CPU, and what came of the comparison; None where it did not end well."""

    folder: str
    ended: Ended
    processes: tuple[Process, ...]
    comparison: Comparison | None


@dataclass(frozen=True)
class Verdict:
    """A run of a migrated project, and what it proves."""

    outcome: str
    reasons: tuple[str, ...]
    ended: Ended
    processes: tuple[Process, ...]
    shares: Shares
    reached: tuple[Reached, ...]
    not_reached: int
    original: Original | None

    @property
    def exit_code(self) -> int:
        """The exit code of ``npumigrate verify``."""
        return EXIT_CODES[self.outcome]

    @property
    def trained(self) -> bool:
        """Whether a backward pass ran."""
        return any(sum_work(self.processes, "backward", npu).operators for npu in (True, False))

    @property
    def operators(self) -> dict[str, dict[str, int]]:
        """Operators that ran, by NPU."""
        return sum_operators(self.processes)

    @property
    def collectives(self) -> dict[str, dict[str, int]]:
        """Calls and bytes of each collective."""
        return sum_collectives(self.processes)

    @property
    def without_npu_kernel(self) -> list[str]:
        """Operators that torch_npu has no kernel for."""
        return sorted({name for process in self.processes for name in process.without_npu_kernel})

    @property
    def transfer(self) -> bool:
        """Whether transfer_to_npu made the names of CUDA mean the NPU."""
        return any(process.transfer for process in self.processes)


def judge(
    ended: Ended,
    processes: Sequence[Process],
    reached: Sequence[Reached],
    places: Sequence[Place],
    original: Original | None,
) -> Verdict:
    """Return the verdict on a run; ``original`` where a comparison was asked for."""
    shares = measure(processes)
    outcome, reasons = _outcome(ended, processes, shares, original)
    return Verdict(
        outcome,
        tuple(reasons),
        ended,
        tuple(processes),
        shares,
        tuple(reached),
        len(places) - len(reached),
        original,
    )


def measure(processes: Sequence[Process]) -> Shares:
    """Return the NPUs' share of the work: of the multiply-adds, or of the operators where there were none."""
    amounts = {
        (direction, npu): sum_work(processes, direction, npu)
        for direction in ("forward", "backward")
        for npu in (True, False)
    }
    if any(amount.multiply_adds for amount in amounts.values()):
        return Shares(
            _share(amounts["forward", True].multiply_adds, amounts["forward", False].multiply_adds),
            _backward_share(amounts["backward", True], amounts["backward", False]),
            "multiply-adds",
        )
    # Preparing data is made of small operators too, on the CPU: only the backward pass tells.
    on_npu = amounts["forward", True].operators
    forward = None if not on_npu and not amounts["forward", False].operators else float(on_npu > 0)
    backward = _share(amounts["backward", True].operators, amounts["backward", False].operators)
    return Shares(forward, backward, "operators")


def _backward_share(npu: Work, cpu: Work) -> float | None:
    share = _share(npu.multiply_adds, cpu.multiply_adds)
    return _share(npu.operators, cpu.operators) if share is None else share


def _share(npu: int, cpu: int) -> float | None:
    return npu / (npu + cpu) if npu + cpu else None


def _outcome(
    ended: Ended, processes: Sequence[Process], shares: Shares, original: Original | None
) -> tuple[str, list[str]]:
    if ended.interrupted:
        return INTERRUPTED, ["the run was interrupted"]
    if ended.timed_out:
        return TIMED_OUT, [f"the program was ended after {ended.seconds:.0f} s"]
    if ended.code:
        return FAILED, [_how_it_failed(ended.code)]
    trouble = _not_on_npu(processes, shares)
    if trouble:
        return NOT_ON_NPU, trouble
    if original is None:
        return PASSED, []
    return _compared(original)


def _how_it_failed(code: int) -> str:
    return f"the program was ended by signal {code - 128}" if code > 128 else f"the program ended with {code}"


def _not_on_npu(processes: Sequence[Process], shares: Shares) -> list[str]:
    if not processes:
        return ["no process imported torch, or none that did came to its end in order"]
    if not any(process.torch_npu for process in processes):
        return ["torch_npu was never imported: everything ran on the CPU"]
    if shares.place == "nowhere":
        return ["nothing was computed, neither on an NPU nor on the CPU"]
    reasons = []
    for share, what in ((shares.backward, "the training (its backward pass)"), (shares.forward, "the work")):
        if share is not None and share < 1 - _CPU_SHARE:
            part = "ran" if share == 0 else f"ran for {1 - share:.0%} of its {shares.measure}"
            reasons.append(f"{what} {part} on the CPU")
    ranks = [process for process in processes if process.rank is not None and not process.operators]
    if not reasons and any(process.operators for process in processes):
        # The process of a launcher has a rank in a nested launch only; it computes nothing.
        idle = [process.rank for process in ranks if process.amount("forward", False).products]
        reasons += [f"rank {rank} ran nothing on an NPU" for rank in idle]
    return reasons


def _compared(original: Original) -> tuple[str, list[str]]:
    ended, comparison = original.ended, original.comparison
    if ended.interrupted:
        return INTERRUPTED, ["the run of the original was interrupted"]
    if ended.timed_out:
        return NOT_COMPARED, [f"the original was ended after {ended.seconds:.0f} s"]
    if ended.code or comparison is None:
        return NOT_COMPARED, [f"the original on the CPU: {_how_it_failed(ended.code)}"]
    if not comparison.comparable:
        return NOT_COMPARED, ["the two runs printed no line with a number that could be compared"]
    wrong = [pair for pair in comparison.compared if not pair.agrees]
    if wrong:
        return DIFFERENT, [
            f"{len(wrong)} of {len(comparison.compared)} lines differ by more than {comparison.tolerance:g}"
        ]
    return PASSED, []
