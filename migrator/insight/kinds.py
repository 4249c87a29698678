"""What a run shows: a function for each kind of row, of single operators and of collectives."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Optional

from migrator.api_support.verdict_type import Verdict
from migrator.core.check import check, no_fix
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.files.errors import Unreadable
from migrator.files.source import read_bytes
from migrator.insight.recorded import FORWARD, Collective, Place, Record, Sum, most_steps
from migrator.insight.rows import (
    NOWHERE,
    Row,
    Run,
    Tally,
    lacks_kernel,
    names_of,
    shown,
    size,
    tallies,
    text,
    verdict_of,
)
from migrator.language import N_, _
from migrator.project.project import Project


def fallbacks(run: Run) -> Iterator[Row]:
    """Operators that torch_npu leaves to the CPU, recorded before the emulator computes them."""
    kind = "cpu_fallback"
    lacking = {
        record.operator
        for process in run.processes
        for record in process.records
        if lacks_kernel(record.operator, process, run.version, run.ran_with)
    }

    def key(record: Record) -> Optional[Sequence[str]]:
        return [record.operator] if record.by_program and record.operator in lacking else None

    for (operator,), tally in tallies(run, key):
        api, copies = shown(operator, run.version), 2 * tally.amount.calls
        words = {"api": api, "version": run.version, "often": tally.often, "size": size(tally.amount.bytes)}
        more = {"operator": operator, "copies": copies}
        yield tally.row(kind, "warning", api, "fallback", {**words, "copies": copies}, more=more)


def limits(run: Run) -> Iterator[Row]:
    """Types and arguments that the documents of torch_npu do not list for an API, on the product line."""

    def key(record: Record) -> Optional[Sequence[str]]:
        if not record.by_program or record.phase != FORWARD or record.crossing:
            return None
        verdict = verdict_of(record.operator, run.version, run.hardware)
        found = _beyond(record, verdict) if verdict else None
        return [record.operator, *found] if found else None

    for (operator, limit, what), tally in tallies(run, key):
        verdict = verdict_of(operator, run.version, run.hardware)
        assert verdict is not None
        line = f" on {run.hardware}" if limit == "dtype" and verdict.lacks(what) else ""
        floats = not verdict.dtypes or "fp32" in verdict.dtypes
        words = {
            "api": verdict.api,
            "version": verdict.asof or run.version,
            "dtype": what,
            "option": what,
            "line": run.hardware if limit == "left_out" else line,
            "others": ", ".join(verdict.ticked),
            "allowed": "float32" if floats else " or ".join(sorted(verdict.dtypes)),
        }
        # Not tried, perhaps.
        severity = "info" if limit == "dtype" and not verdict.refuses(what) else "warning"
        more = {"limit": limit, "value": what}
        yield tally.row("limits", severity, verdict.api, limit, words, more=more)


def _beyond(record: Record, verdict: Verdict) -> Optional[tuple[str, str]]:
    """Which limit a call goes beyond, and by what."""
    if verdict.ticked:
        return "left_out", ""
    main = names_of("types").get(record.types[0], "") if record.types else ""
    if main and (verdict.refuses(main) or main in verdict.untried):
        return "dtype", main
    limited = (each for each in record.options if each.partition("=")[0] in verdict.parameters)
    option = next(limited, None)
    return ("option", option) if option else None


def host_sync(run: Run) -> Iterator[Row]:
    """Where the host waits for an NPU in a step: only what comes in later steps, where there are any."""
    kind, later = "host_sync", most_steps(run.processes) - 1

    def key(record: Record) -> Optional[Sequence[str]]:
        way = _way(record)
        # What warms up comes in one of the steps after the first.
        if not way or not record.by_program or (later > 0 and record.seen_steps < min(later, 2)):
            return None
        return [way, record.operator if way == "by_values" else ""]

    for (way, operator), tally in tallies(run, key):
        api = shown(operator, run.version) if operator else names_of("ways")[way]
        amount, severity = tally.amount, "info" if way == "to_npu" else "warning"
        words = {"api": api, "often": tally.often, "size": size(amount.bytes / max(1, amount.calls))}
        effect = tally.per_step or amount.calls
        yield tally.row(kind, severity, api, way, words, effect=effect, more={"way": way})


def _way(record: Record) -> str:
    if record.place is not None and record.place.through == "print":
        return "print" if record.name == "_local_scalar_dense" or record.crossing else ""
    if record.name in ("_local_scalar_dense", "equal"):
        return "number"
    if record.crossing:
        way, _, blocking = record.crossing.partition(", ")
        return way if blocking else ""
    return "by_values" if _by_values(record) else ""


def _by_values(record: Record) -> bool:
    """Whether the size of the result depends on the values of a tensor."""
    return record.name in names_of("sized_by_values") or (record.by_truth and record.name == "index")


def new_shapes(run: Run) -> Iterator[Row]:
    """Shapes that came after the first step: a row for each operator and place from which they come."""
    kind, steps = "dynamic_shape", most_steps(run.processes)

    def key(record: Record) -> Optional[Sequence[str]]:
        begins = record.phase == FORWARD and record.origins and record.place and not record.place.through
        # In one step only: a smaller last batch, an evaluation, a wrapper that is warming up.
        if not begins or not (record.changed_in > 1 or (steps == 2 and record.changed_in > 0)):
            return None
        from_program = "from_values" if _by_values(record) else "from_program"
        return [record.operator, "from_host" if record.crossing.startswith("to_npu") else from_program]

    first = run.processes[:1]
    behind = sum(r.changed_in > 0 and not r.origins for process in first for r in process.records)
    for (operator, origin), tally in tallies(run, key):
        most = max(tally.records, key=lambda record: record.changed_in)
        api, new = shown(operator, run.version), most.changed_in
        late = (most.examples[max(1, most.first_shapes) :] or most.examples[-1:])[0]
        example = _("{examples}, then {late}", examples=most.examples[0], late=late)
        words = {"api": api, "new": new, "steps": steps - 1, "shapes": most.shapes, "example": example}
        words["origin"] = text(kind, origin)
        more = {"origin": origin, "shapes": most.shapes, "new_steps": new, "examples": most.examples[:8]}
        row = tally.row(kind, "warning", api, "changed", words, f"{origin}_advice", new, more)
        said = f"{row.message}; {text(kind, 'behind', count=behind)}" if behind else row.message
        yield replace(row, message=said)


def vendor_rows(run: Run) -> Iterator[Mapping[str, Any]]:
    """The rows of ``msft_dynamic_shape_analysis_report.csv``: operators whose shapes changed."""
    records = [record for process in run.processes[:1] for record in process.records]
    changed = [r for r in records if r.changed_in and r.place and not r.place.through]
    written = set()
    for record in sorted(changed, key=lambda record: -record.changed_in):
        assert record.place is not None
        taken, given = _ranges(record)
        row = {"function": shown(record.operator, run.version), "inputs": taken, "outputs": given}
        row |= {"file": record.place.file, "line": str(record.place.line)}
        key = tuple(row.values())
        if key not in written:  # with another type, or forward and backward
            written.add(key)
            yield {**row, "stack": [f"<{frame}>" for frame in record.stack], "severity": "info"}


def _ranges(record: Record) -> tuple[str, str]:
    """From the smallest to the largest size of each argument and result, by the number of its dimensions."""
    sides: tuple[list[_Sizes], list[_Sizes]] = ([], [])
    for example in record.examples:
        for side, shapes in zip(sides, example.split(">")):
            for i, shape in enumerate(shapes.split()):
                side += [defaultdict(list)] if len(side) <= i else []
                if shape != "()":
                    sizes = tuple(map(int, shape.split("x")))
                    side[i][len(sizes)].append(sizes)

    def shown_range(by_dims: _Sizes) -> str:
        ends = ([tuple(map(end, zip(*by_dims[dims]))) for end in (min, max)] for dims in sorted(by_dims))
        return f"[{' | '.join(f'{low}-{high}' for low, high in ends) or '()'}]"

    taken, given = (", ".join(map(shown_range, side)) or "None" for side in sides)
    return taken, given


_Sizes = defaultdict[int, list[tuple[int, ...]]]  # of an argument by its number of dimensions


def fused(run: Run, root: Path) -> Iterator[Row]:
    """Fused alternatives that the source could use, with what its lines cost in the run.

    The rules that find them do not ask the project around a file.
    """
    records: defaultdict[str, list[Record]] = defaultdict(list)
    process = max(run.processes, key=lambda each: len(each.records))
    for record in process.records:
        if record.place is not None:
            records[record.place.file].append(record)
    whole = sum((record.all for record in process.records), Sum())
    rules = rules_for(Settings(run.version.text, select=("NPU8",), hardware=run.hardware))
    for file in sorted(records):
        try:
            source = document(read_bytes(root / file), file)
        except (Unreadable, OSError):
            continue
        for finding in check(source, rules, Project(), no_fix, write=False).findings:
            first, last = finding.lines
            inside = [r for r in records[file] if r.place is not None and first <= r.place.line <= last]
            amount = sum((record.all for record in inside), Sum())
            if not amount.calls:
                continue
            share = amount.bytes / max(1, whole.bytes)
            products = amount.multiply_adds / max(1, whole.multiply_adds)
            function = next((r.place.function for r in inside if r.place is not None), "")
            message = text("fused", "missed", message=finding.message, share=share, products=products)
            place, subject = Place(file, first, function), finding.instead or finding.api
            yield Row(
                *("fused", "info", place, subject, amount.calls, None, amount.bytes, message, finding.advice),
                ranks=(process.who,),
                share=share,
                effect=max(share, products),
                more={"rule": finding.code, "share_of_products": products},
            )


_COMMUNICATION = "communication"
_UNBALANCED = 1.25  # times the work of another rank


def waits_and_calls(run: Run) -> Iterator[Row]:
    """What ranks wait for, then what they say to each other."""
    yield from _meetings(run)
    yield from _balance(run)
    for fact in collectives(run):
        call, amount = fact["call"], Sum(fact["calls"], fact["bytes"])
        tally = Tally(call.place or NOWHERE, amount, fact["per_step"], fact["ranks"])
        words = {"size": call.size, "often": tally.often, "bytes": size(fact["bytes"] / fact["calls"])}
        yield tally.row(_COMMUNICATION, "info", _named(call), "calls", {**words, "collective": _named(call)})


def collectives(run: Run) -> list[dict[str, Any]]:
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
            last = text(_COMMUNICATION, "none")
            if turn:
                before = ranks[missing][turn - 1]
                last = text(_COMMUNICATION, "last", collective=_named(before), where=_where(before))
            words = {"rank": rank, "collective": _named(call), "other": missing, "last": last}
            yield _at(call, came).row(_COMMUNICATION, "error", _named(call), "missing", words)
            return
        if len({_alike(call) for call in came.values()}) > 1:
            each = N_("rank {number} {kind} of {bytes} at {place}")
            said = "; ".join(
                _(each, number=number, kind=_named(c), bytes=size(c.bytes), place=_where(c))
                for number, c in came.items()
            )
            usual = Counter(map(_alike, came.values())).most_common(1)[0][0]
            odd = next(call for call in reversed(came.values()) if _alike(call) != usual)
            yield _at(odd, came).row(_COMMUNICATION, "error", _named(odd), "differ", {"calls": said})
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
        yield tally.row(_COMMUNICATION, "warning", _named(waits), "unbalanced", words)


def _named(call: Collective) -> str:
    return call.kind.removeprefix("Hccl")


def _where(call: Collective) -> str:
    return f"{call.place.file}:{call.place.line}" if call.place else "?"


def _at(call: Collective, ranks: Iterable[object], sent: int | None = None) -> Tally:
    """What is to be said of one call."""
    amount = Sum(1, call.bytes if sent is None else sent)
    return Tally(call.place or NOWHERE, amount, None, [*map(str, ranks)])
