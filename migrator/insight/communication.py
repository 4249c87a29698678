"""Collectives by kind, size, group and place; which rank waits for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, Optional

from migrator.insight.operator_names import names_of
from migrator.insight.recorded import Collective, Place, Recorded, Sum
from migrator.insight.rows import NOWHERE, Row, Run, Tally, often, size, text
from migrator.language import N_, _

KIND = "communication"
_UNBALANCED = 1.25  # times the work of another rank


def find(run: Run) -> Iterator[Row]:
    """What ranks wait for, then what they say to each other."""
    yield from _meetings(run)
    yield from _balance(run)
    for fact in facts(run):
        call: Collective = fact["call"]
        kind = _named(call.kind)
        amount = fact["bytes"]
        times, each = often(fact["calls"], fact["per_step"]), size(amount / fact["calls"])
        message = text(KIND, "calls", collective=kind, size=call.size, often=times, bytes=each)
        yield _row("info", call, message, "", fact["ranks"], amount, fact["calls"], fact["per_step"])


def facts(run: Run) -> list[dict[str, Any]]:
    """Collectives by kind, group size and place: of each number the largest of a rank."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for process in run.processes:
        own: dict[tuple[Any, ...], dict[str, Any]] = {}
        for call, step in process.collectives:
            key = (call.kind, call.size, call.place)
            entry = own.setdefault(key, {"call": call, "calls": 0, "bytes": 0, "late": 0})
            entry["calls"] += 1
            entry["bytes"] += call.bytes
            entry["late"] += 0 < step < process.steps
        for key, entry in own.items():
            whole = found.setdefault(key, {**entry, "ranks": [], "per_step": None})
            whole["ranks"].append(process.who)
            if process.steps > 1:
                whole["per_step"] = max(whole["per_step"] or 0.0, entry["late"] / (process.steps - 1))
            if entry["calls"] > whole["calls"]:
                whole.update(calls=entry["calls"], bytes=entry["bytes"])
    return sorted(found.values(), key=lambda entry: (-entry["bytes"], -entry["calls"], entry["call"].kind))


def _meetings(run: Run) -> Iterator[Row]:
    """The first call in each group at which the ranks do not meet."""
    groups: dict[str, dict[int, list[Collective]]] = {}
    for process in run.processes:
        for call, _place in process.collectives:
            if call.size > 1 and call.kind not in names_of("between_two"):
                groups.setdefault(call.group, {}).setdefault(call.rank, []).append(call)
    recorded = {int(process.rank) for process in run.processes if process.rank}
    for ranks in groups.values():
        everyone = set(range(next(iter(ranks.values()))[0].size))
        if recorded == everyone:  # the group of all: those without a call are known, too
            ranks = {rank: ranks.get(rank, []) for rank in everyone}
        if ranks.keys() == everyone:  # what a rank did that left nothing behind is not known
            yield from _first_difference(ranks)


def _first_difference(ranks: Mapping[int, list[Collective]]) -> Iterator[Row]:
    numbers = sorted(ranks)
    for turn, calls in enumerate(zip_longest(*(ranks[number] for number in numbers))):
        came = {number: call for number, call in zip(numbers, calls) if call is not None}
        if len(came) < len(numbers):
            missing = next(number for number in numbers if number not in came)
            rank, call = next(iter(came.items()))
            before = ranks[missing][turn - 1] if turn else None
            last = text(KIND, "none")
            if before is not None:
                last = text(KIND, "last", collective=_named(before.kind), where=_where(before.place))
            kind = _named(call.kind)
            message = text(KIND, "missing", rank=rank, collective=kind, other=missing, last=last)
            advice = text(KIND, "missing_advice")
            yield _row("error", call, message, advice, map(str, came), call.bytes)
            return
        if len({_alike(call) for call in came.values()}) > 1:
            each = N_("rank {number} {kind} of {bytes} at {place}")
            said = "; ".join(
                _(each, number=number, kind=_named(c.kind), bytes=size(c.bytes), place=_where(c.place))
                for number, c in came.items()
            )
            usual = Counter(map(_alike, came.values())).most_common(1)[0][0]
            odd = next(call for call in reversed(came.values()) if _alike(call) != usual)
            message = text(KIND, "differ", calls=said)
            advice = text(KIND, "differ_advice")
            yield _row("error", odd, message, advice, map(str, came), odd.bytes)
            return


def _alike(call: Collective) -> tuple[str, int]:
    return call.kind, 0 if call.kind in names_of("own_amount") else call.bytes


def _balance(run: Run) -> Iterator[Row]:
    """Where the rank with the least work of a step waits for the one with the most."""
    work = {process.who: (_work(process), process) for process in run.processes if process.collectives}
    work = {who: each for who, each in work.items() if each[0]}
    if len(work) < 2:
        return
    least = min(work, key=lambda who: work[who][0])
    most = max(work, key=lambda who: work[who][0])
    ratio = work[most][0] / work[least][0]
    placed = [call for call, _ in work[least][1].collectives if call.place is not None]
    if ratio < _UNBALANCED or not placed:
        return
    waits = Counter(placed).most_common(1)[0][0]
    message = text(KIND, "unbalanced", rank=least, other=most, ratio=ratio)
    yield _row("warning", waits, message, text(KIND, "unbalanced_advice"), [least], 0)


def _work(process: Recorded) -> float:
    """Multiply-adds in the steps after the first, or in all of the run."""
    late = sum(record.later.multiply_adds for record in process.records)
    return late or sum(record.all.multiply_adds for record in process.records)


def _named(kind: str) -> str:
    return kind.removeprefix("Hccl")


def _where(place: Optional[Place]) -> str:
    return f"{place.file}:{place.line}" if place else "?"


def _row(
    severity: str,
    call: Collective,
    message: str,
    advice: str,
    ranks: Iterable[str],
    amount: int,
    calls: int = 1,
    per_step: Optional[float] = None,
) -> Row:
    tally = Tally(call.place or NOWHERE, Sum(calls, amount), per_step, list(ranks))
    return tally.row(KIND, severity, _named(call.kind), message, advice)
