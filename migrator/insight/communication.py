"""Collectives by kind, size, group and place; which rank waits for whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from migrator.insight.recorded import Collective, Sum
from migrator.insight.rows import NOWHERE, Row, Run, Tally, names_of, size, text
from migrator.language import N_, _

_KIND = "communication"
_UNBALANCED = 1.25  # times the work of another rank


def waits_and_calls(run: Run) -> Iterator[Row]:
    """What ranks wait for, then what they say to each other."""
    yield from _meetings(run)
    yield from _balance(run)
    for fact in facts(run):
        call, amount = fact["call"], Sum(fact["calls"], fact["bytes"])
        tally = Tally(call.place or NOWHERE, amount, fact["per_step"], fact["ranks"])
        words = {"size": call.size, "often": tally.often, "bytes": size(fact["bytes"] / fact["calls"])}
        yield tally.row(_KIND, "info", _named(call), "calls", {**words, "collective": _named(call)})


def facts(run: Run) -> list[dict[str, Any]]:
    """Collectives by kind, group size and place: of each number the largest of a rank."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for process in run.processes:
        own: defaultdict[tuple[Any, ...], list[tuple[Collective, int]]] = defaultdict(list)
        for call, step in process.collectives:
            own[call.kind, call.size, call.place].append((call, step))
        for key, made in own.items():
            calls, sent = len(made), sum(call.bytes for call, _ in made)
            entry = {"call": made[0][0], "calls": 0, "bytes": 0, "ranks": [], "per_step": None}
            whole = found.setdefault(key, entry)
            whole["ranks"].append(process.who)
            if process.steps > 1:
                often = sum(0 < step < process.steps for _, step in made) / (process.steps - 1)
                whole["per_step"] = max(whole["per_step"] or 0.0, often)
            if calls > whole["calls"]:
                whole.update(calls=calls, bytes=sent)
    return sorted(found.values(), key=lambda entry: (-entry["bytes"], -entry["calls"], entry["call"].kind))


def _meetings(run: Run) -> Iterator[Row]:
    """The first call in each group at which the ranks do not meet."""
    groups: dict[str, dict[int, list[Collective]]] = {}
    for process in run.processes:
        for call, _step in process.collectives:
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
            last = text(_KIND, "none")
            if turn:
                before = ranks[missing][turn - 1]
                last = text(_KIND, "last", collective=_named(before), where=_where(before))
            words = {"rank": rank, "collective": _named(call), "other": missing, "last": last}
            yield _at(call, came).row(_KIND, "error", _named(call), "missing", words)
            return
        if len({_alike(call) for call in came.values()}) > 1:
            each = N_("rank {number} {kind} of {bytes} at {place}")
            said = "; ".join(
                _(each, number=number, kind=_named(c), bytes=size(c.bytes), place=_where(c))
                for number, c in came.items()
            )
            usual = Counter(map(_alike, came.values())).most_common(1)[0][0]
            odd = next(call for call in reversed(came.values()) if _alike(call) != usual)
            yield _at(odd, came).row(_KIND, "error", _named(odd), "differ", {"calls": said})
            return


def _alike(call: Collective) -> tuple[str, int]:
    return call.kind, 0 if call.kind in names_of("own_amount") else call.bytes


def _balance(run: Run) -> Iterator[Row]:
    """Where the rank with the least work of a step waits for the one with the most."""
    work = {}
    for process in run.processes if len(run.processes) > 1 else ():
        late = sum(record.later.multiply_adds for record in process.records)
        every = late or sum(record.all.multiply_adds for record in process.records)
        if process.collectives and every:
            work[process.who] = (every, process)
    if len(work) < 2:
        return
    least, most = (end(work, key=lambda who: work[who][0]) for end in (min, max))
    ratio = work[most][0] / work[least][0]
    placed = [call for call, _ in work[least][1].collectives if call.place is not None]
    if ratio >= _UNBALANCED and placed:
        waits = Counter(placed).most_common(1)[0][0]
        tally, words = _at(waits, [least], 0), {"rank": least, "other": most, "ratio": ratio}
        yield tally.row(_KIND, "warning", _named(waits), "unbalanced", words)


def _named(call: Collective) -> str:
    return call.kind.removeprefix("Hccl")


def _where(call: Collective) -> str:
    return f"{call.place.file}:{call.place.line}" if call.place else "?"


def _at(call: Collective, ranks: Iterable[object], sent: int | None = None) -> Tally:
    """What is to be said of one call."""
    amount = Sum(1, call.bytes if sent is None else sent)
    return Tally(call.place or NOWHERE, amount, None, [*map(str, ranks)])
