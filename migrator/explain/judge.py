"""Logs in, an explanation out: which of what fails failed first, and what it is about."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Callable, Optional

from migrator.explain.logs import ERROR_FILE, Log, lines, lines_of_error_file
from migrator.explain.scan import ERROR, WARNING, Frame, Record, Scan
from migrator.explain.table import Entry, kinds_of, known, weight
from migrator.light import Frozen

_NEAR = 40  # lines of one failure
_AT_ONCE = 2.0  # seconds


class Explanation(Frozen):
    """What failed first: its ``record``, the ``entry`` that explains it, the project's line.

    ``entry`` is None where the table knows no cause, ``place`` where no traceback has a line of the project.
    ``others`` are the codes and names of what else was reported, with the ranks that did. An entry that
    follows from another error shows a rank that does not report it: those are ``silent``.
    """

    record: Record
    entry: Optional[Entry]
    rank: str
    place: Optional[Frame]
    others: Sequence[tuple[str, str, Sequence[str]]]
    silent: Sequence[str]


def explain_logs(
    logs: Sequence[Log], told: Callable[[int, int], object] = lambda done, total: None
) -> Optional[Explanation]:
    """What failed first in some logs; None where nothing did.

    ``told`` gets the bytes that are read, and of how many. Raises OSError for the one log that cannot be
    read; of several it is left out.
    """
    scan, done = Scan(known()), 0
    total = sum(Path(log.path).stat().st_size for log in logs if Path(log.path).is_file())

    def read(count: int) -> None:
        nonlocal done
        done += count
        told(done, total)

    given, skipped = nullcontext(sys.stdin.buffer), [OSError] if len(logs) > 1 else []
    for log in logs:
        with suppress(*skipped), open(log.path, "rb") if log.path else given as stream:
            json = Path(log.path).name == ERROR_FILE
            scan.read(log, lines_of_error_file(stream.read()) if json else lines(stream, read))
    return explain(scan)


def explain(scan: Scan) -> Optional[Explanation]:
    """Explain what a scan has found; None where nothing failed."""
    records = scan.records
    for record in records:
        record.rank = record.rank or scan.ranks.get(record.process, "")
        if record.listed and scan.first not in ("", record.rank):
            record.level = WARNING  # torchrun ended it after the one that failed
    windows = (records[max(0, at - _NEAR) : at + _NEAR] for at in range(len(records)))
    ranks = [each.rank or _rank_beside(each, around) for each, around in zip(records, windows)]
    for record, rank in zip(records, ranks):
        record.rank = rank
    if not any(record.level > WARNING or record.place for record in records):
        return None  # nothing but warnings
    best = min(map(_class, records))
    worst = [record for record in records if _class(record) == best]
    in_time = all(record.time is not None for record in worst)
    first = min(worst, key=lambda each: (each.time if in_time else 0, each.rank != scan.first, each.order))
    own = [record for record in records if _same_process(record, first)]
    near = [record for record in own if record is first or _together(record, first)]
    failed = [record for record in near if record.level > WARNING]
    found = _found(failed)
    if not found and any(record.found for record in failed):  # torch_npu shows CANN's errors as warnings, too
        found = _found(near)
    if not found and first.rank:  # in a log of CANN, mostly
        found = _found(record for record in own if record.level > WARNING)
    if best == 2:  # unknown: it follows only from what CANN said before, or in a log of its own
        elsewhere = [one for one in own if one.log != first.log or one.order < first.order]
        known_before = [] if _of_python(first) else elsewhere
        found = [each for each in found if not each[0].follows or each[1] in known_before]
    most = min(found, key=lambda each: weight(each[0], each[1].text), default=None)
    entry, record = most or (None, first)
    place = first.place or record.place or _nearest_place(first, records)
    known_ranks = any(each.rank and not each.listed for each in records)
    rank = record.rank or first.rank or ("" if known_ranks else scan.first)
    others: dict[str, tuple[str, dict[str, None]]] = {}
    for each in records:
        for one in each.found:
            if one is not entry or each.rank != rank:
                others.setdefault(one.code, (one.name, {}))[1][each.rank] = None
    report = {each.rank for each in records if entry in each.found}
    silent = sorted(filter(None, scan.seen - report), key=int) if entry and entry.follows else []
    also = [(code, name, [*filter(None, ranks)]) for code, (name, ranks) in others.items()]
    return Explanation(record, entry, rank, place, also, silent)


def _class(record: Record) -> int:
    """How likely a record is the failure that led to the others: the least is the likeliest."""
    if record.level == WARNING:
        return 4
    if any(not entry.follows for entry in record.found):
        return 0 if record.level >= ERROR else 1
    return 3 if record.found and not _of_python(record) else 2


def _found(records: Iterable[Record]) -> list[tuple[Entry, Record]]:
    return [(each, record) for record in records for each in record.found if not each.vague]


def _of_python(record: Record) -> bool:
    """Whether it is an exception of Python's own that CANN's errors never are: those are RuntimeErrors."""
    kinds = kinds_of(record.type)
    return len(kinds) > 1 and "RuntimeError" not in kinds


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
    of_launcher = record.listed or any(each.code == "rank-failed" for each in record.found)
    return max(ranks) if len(ranks - {""}) == 1 and not of_launcher else ""


def _nearest_place(first: Record, records: Sequence[Record]) -> Optional[Frame]:
    """The project's line of the process that failed first: its next exception, else the one before."""
    own = [each for each in records if each.place and _same_process(each, first)]
    if not own and not first.rank:
        own = [each for each in records if each.place and each.log == first.log]
    after = [each for each in own if each.order >= first.order]
    return after[0].place if after else own[-1].place if own else None
