"""Which of what fails in logs failed first, and what it is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Optional

from migrator.explain.scan import ERROR, WARNING, Frame, Record, Scan
from migrator.explain.table import Entry, kinds_of, weight

_NEAR = 40  # lines of one failure
_AT_ONCE = 2.0  # seconds


@dataclass(frozen=True)
class Explanation:
    """What failed first: its ``record``, the ``entry`` that explains it, the project's line.

    ``entry`` is None where the table knows no cause, ``place`` where no traceback has a line of the project.
    ``others`` are the codes and names of what else was reported, with the ranks that did. An entry that
    follows from another error tells of a rank that does not report it: those are ``silent``.
    """

    record: Record
    entry: Optional[Entry]
    rank: str
    place: Optional[Frame]
    others: Sequence[tuple[str, str, Sequence[str]]]
    silent: Sequence[str]


def explain(scan: Scan) -> Optional[Explanation]:
    """Explain what a scan has found; None where nothing failed."""
    records = scan.records
    for record in records:
        record.rank = record.rank or scan.ranks.get(record.process, "")
        if record.listed and scan.first not in ("", record.rank):
            record.level = WARNING  # torchrun ended it after the one that failed
    for at, record in enumerate(records):
        record.rank = record.rank or _rank_beside(record, records[max(0, at - _NEAR) : at + _NEAR])
    if not any(record.level > WARNING or record.place for record in records):
        return None  # nothing but warnings
    best = min(map(_class, records))
    worst = [record for record in records if _class(record) == best]
    in_time = all(record.time is not None for record in worst)

    def order(record: Record) -> tuple[float, bool, int]:
        return (record.time or 0 if in_time else 0), record.rank != scan.first, record.order

    first = min(worst, key=order)
    same = [record for record in records if _same_process(record, first) and record.level > WARNING]
    near = [record for record in same if record is first or _together(record, first)]
    # What a process says elsewhere of its failure, as CANN does in a log of its own, explains it, too.
    found = _found(near)
    if not found and any(record.found for record in near):  # CANN's error begins as a warning of torch_npu
        found = _found(each for each in records if _same_process(each, first) and _together(each, first))
    found = found or (_found(same) if first.rank else [])
    if best == 2:
        found = [each for each in found if not each[0][0].follows or _tells(each[1], first)]
    entry, record = None, first
    if found:
        (entry, _beside), record = min(found, key=lambda each: weight(each[0]))
    place = first.place or record.place or _nearest_place(first, records)
    known_ranks = any(each.rank and not each.listed for each in records)
    rank = record.rank or first.rank or ("" if known_ranks else scan.first)
    others: dict[str, tuple[str, dict[str, None]]] = {}
    for each in records:
        for one, _beside in each.found:
            if one is not entry or each.rank != rank:
                others.setdefault(one.code, (one.name, {}))[1][each.rank] = None
    report = {each.rank for each in records if entry in [one for one, _beside in each.found]}
    silent = sorted(filter(None, scan.seen - report), key=int) if entry and entry.follows else []
    return Explanation(
        record,
        entry,
        rank,
        place,
        [(code, name, [*filter(None, ranks)]) for code, (name, ranks) in others.items()],
        silent,
    )


def _class(record: Record) -> int:
    """How likely a record is the failure that led to the others: the least is the likeliest."""
    if record.level == WARNING:
        return 4
    if any(not entry.follows for entry, _beside in record.found):
        return 0 if record.level >= ERROR else 1
    return 3 if record.found and not _of_python(record) else 2


def _found(records: Iterable[Record]) -> list[tuple[tuple[Entry, bool], Record]]:
    return [(each, record) for record in records for each in record.found if not each[0].vague]


def _of_python(record: Record) -> bool:
    """Whether it is an exception of Python's own that CANN's errors never are: those are RuntimeErrors."""
    kinds = kinds_of(record.type)
    return len(kinds) > 1 and "RuntimeError" not in kinds


def _tells(record: Record, unknown: Record) -> bool:
    """Whether what mostly follows from another error tells of an exception that the table does not know.

    CANN has said it before, or in a log of its own.
    """
    before = record.log != unknown.log or record.order < unknown.order
    return before and not _of_python(unknown)


def _same_process(one: Record, other: Record) -> bool:
    if one.rank or other.rank:
        return one.rank == other.rank
    return one.log == other.log and (not one.process or other.process in ("", one.process))


def _together(one: Record, other: Record) -> bool:
    if one.log == other.log and abs(one.line - other.line) <= _NEAR:
        return True
    return one.time is not None and other.time is not None and abs(one.time - other.time) <= _AT_ONCE


def _rank_beside(record: Record, around: Sequence[Record]) -> str:
    """The rank of the lines around one that does not say whose it is; empty where they are of several."""
    ranks = {
        each.rank
        for each in around
        if each.log == record.log and abs(each.line - record.line) <= _NEAR and not each.listed
        if not (each.process and record.process) or each.process == record.process
    }
    return max(ranks) if len(ranks - {""}) == 1 and not record.listed else ""


def _nearest_place(first: Record, records: Sequence[Record]) -> Optional[Frame]:
    """The project's line of the process that failed first: its next exception, else the one before."""
    own = [each for each in records if each.place and _same_process(each, first)]
    if not own and not first.rank:
        own = [each for each in records if each.place and each.log == first.log]
    after = [each for each in own if each.order >= first.order]
    return after[0].place if after else own[-1].place if own else None
