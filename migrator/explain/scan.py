"""What fails in logs, in one pass: exceptions with tracebacks, and lines that the table of errors knows."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from migrator.explain.logs import Log, decoded
from migrator.explain.table import Entry, Table, entries_in, kinds_of, words

_BEFORE = 20  # lines in which the time or the rank of a line may stand
_MOST_LINES = 60  # of an exception's message
_MOST_FRAMES = 200
_LOST = 50  # lines without one of a traceback, after which it is over
_MOST_RECORDS = 20_000
_KEPT = 1_000  # characters of a record
WARNING, PLAIN, ERROR, EXCEPTION = range(4)  # how bad a record is

_STARTS = "Traceback (most recent call last)"
_FRAME = re.compile(
    r"(?:\s*|(?P<before>.{1,200}?(?:(?=  File )|\s(?=File )))(?:  )?(?=.*, in ))"
    r'File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?$'
)
_CUT_FRAME = re.compile(r'(?:.*\s)?File "[^"]+(?P<blank>"(?:,(?: line(?: \d+, in)?)?)?)?$')  # as terminals do
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Z]\w*)(?:\((\w+)\))?(?::(?: .*)?)?$")
_NAMED = re.compile(r"(?:^|[\s\].:])([A-Z]\w*(?:Error|Exception|Interrupt))(?:: |$)")
_ANOTHER = re.compile(r"During handling of the above exception|The above exception was the direct cause")
# Where a launcher says whose line it is: torchrun and torch, mpirun, Ray and vLLM, SGLang, docker compose.
_WHOSE = re.compile(
    r"\[?(?:rank|default)(?P<rank>\d+)\]:\s?|\[\d+,(?P<mpi>\d+)\]<std\w+>:\s?"
    r"|[(\[](?P<name>[\w.:]+(?: [\w.:=-]+){0,5}?) pid=(?P<pid>\d+)(?:, ip=[\w.:]+)?[)\]]\s?"
    r"|\[\d{4}-\d\d-\d\d [\d:.,]+(?P<groups>(?: [A-Z]{2,4}\d+)+)\]\s?|[\w.-]{1,80} +\| "
)
_IN_GROUP = re.compile(r"(?:\b|(?<!EngineCore)_)(?:([ET]P|rank)|[PD]P)[ =]?(\d+)(?=\b|_)")
_BY_LOGGER = re.compile(rb"\[rank(\d+)\]:\[[EWIF]\d{3,4} ")  # torch's, before a message's first line only
_SAID_RANK = re.compile(r"(?:\bRankID:|\[[Rr]ank[ :]?(?=\d+\])|\b[Rr]ank\[(?=\d+\]))(\d+)")
_SAID_PROCESS = re.compile(r"\bPID: ?(\d+)|^\[\w+\] ?\w+\((\d+),|^[EWIF]\d{4} [\d:.]+ (\d+) \S+\.py:")
_TIME = re.compile(
    r"\b(?:\d{4}[-/])?(\d\d)[-/](\d\d)[-_ T](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?"
    r"|(?:\b|\[)[EWIF](\d\d?)(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d+))?"
)
_WARNS = re.compile(r"\b(?:WARN(?:ING)?|INFO|DEBUG|EVENT|\w*Warning)\b|(?:^|\[)[WI]\d{3,4} |\[W ", re.ASCII)
_FAILS = re.compile(r"(?i)error|fatal|critical|fail|exception|abort|\bE[A-Z]?\d{4,5}\b|\[E\d")
_NEW_LINE = re.compile(r"\[?[EWIF]\d{3,4} |\[?\d{4}[-/]\d\d|\[?(?:INFO|WARN|ERROR|DEBUG)|\[[\w ]+\]:")
_GOES_ON = re.compile(r"\bERR\d{5}\b|\b[A-Z]{1,2}\d{4,5}\b: ?|^\[Error\]:")  # torch_npu's and CANN's part
_OF_TORCHRUN = re.compile(
    r"(?P<root>Root Cause \(first observed failure\))|\s*rank\s+: (?P<rank>\d+) \(local_rank: \d+\)"
    r"|\s*exitcode\s+: -?\d+ \(pid: (?P<pid>\d+)\)|.*failed \(exitcode: -?\d+\) local_rank: (?P<local>\d+) \("
)
_STRUCTURE = frozenset(words(b"Traceback File RankID observed local_rank exitcode"))
_INSTALLED = re.compile(
    r"[/\\](?:(?:site|dist)-packages|lib(?:64)?[/\\]python3?[\d.]*|Ascend[/\\](?:ascend-toolkit|cann|nnal)[^/\\]*)[/\\]"
    r"|^<|[/\\]s?bin[/\\][^/\\.]+$"
)


class Frame(NamedTuple):
    """One call of a traceback, with its line of the source where that is shown."""

    file: str
    line: int
    function: str
    source: str = ""


@dataclass
class Record:
    """Something that failed, or a line that says so.

    ``rank`` and ``process`` are empty where nothing says whose it is; ``time`` is in seconds of a year, and
    ``stamp`` as it stands in the log. ``place`` is the project's line of an exception. ``found`` are the
    entries that it may be about. ``listed`` is one in torchrun's table of the ranks that ended.
    """

    log: str
    line: int
    order: int
    rank: str
    process: str
    level: int
    text: str
    type: str = ""
    place: Optional[Frame] = None
    time: Optional[float] = None
    stamp: str = ""
    found: list[Entry] = field(default_factory=list)
    count: int = 1
    listed: bool = False


class _Trace:
    """A traceback that is being read."""

    def __init__(self, number: int, before: str, when: tuple[Optional[float], str], rank: str = "") -> None:
        self.last = self.raised_at = number
        self.when, self.rank = when, rank
        self.type = self._cut = ""
        self.frames: list[Frame] = []
        self.message: list[str] = []
        # What stands before each of its lines, as its logger has it. torchrun's table has two blanks.
        self._before = _pattern("  " if before.strip() == "traceback :" else before)

    def take(self, number: int, text: str) -> Optional[bool]:
        """Whether a line is one of its lines; None where it is at its end."""
        before = self._before.match(text)
        text = self._cut + (text[before.end() :] if before else text).lstrip(" " if self._cut else "")
        cut, frame, blank = _CUT_FRAME.match(text), _FRAME.match(text), not text.strip()
        self._cut = ""
        if self.type:
            new = _NEW_LINE.match(text) and not _GOES_ON.search(text[:200])
            if not before or frame or blank or new or _ANOTHER.match(text) or len(self.message) > _MOST_LINES:
                return None
            self.message.append(text)
        elif frame:
            called = Frame(frame["file"], int(frame["line"]), frame["function"] or "")
            self.frames = [*self.frames[-_MOST_FRAMES:], called]
            self._before = _pattern(frame["before"]) if frame["before"] else self._before
        elif cut:
            self._cut = text.rstrip() + (" " if cut["blank"] else "")
        elif self.frames and (raised := _RAISED.match(text)) and not raised[1].isupper():
            self.type, self.raised_at, self.message = raised[2] or raised[1], number, [text]
        elif self.frames and not blank and not self.frames[-1].source and number <= self.last + 1:
            self.frames[-1] = self.frames[-1]._replace(source=text.strip())
        elif not text.startswith(" ") or blank:
            return False if number - self.last < _LOST else None
        elif self.frames and text.strip(" ^~"):
            return False  # a part of the source, or what another said between
        self.last = number
        return True


def _pattern(before: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\d+", r"\\d+", re.escape(before)))


class Scan:
    """Reads logs one after the other, and keeps what fails in them: ``records``, in their order.

    ``ranks`` are those of processes, where a log says them, and ``seen`` all of which something is read;
    ``first`` is the rank that torchrun saw fail first.
    """

    def __init__(self, table: Table) -> None:
        self.records: list[Record] = []
        self.ranks: dict[str, str] = {}
        self.seen: set[str] = set()
        self.first = ""
        self._table = table
        self._words = _STRUCTURE.union(table)
        self._kept: dict[object, Record] = {}

    def read(self, log: Log, lines: Iterable[tuple[int, bytes]]) -> None:
        """Read one log to its end."""
        self._log = log
        self.seen.add(log.rank)
        self._open: dict[tuple[str, str], _Trace] = {}
        self._listed, self._root = "", False
        self._last: deque[bytes] = deque(maxlen=_BEFORE)
        for number, line in lines:
            if self._open or self._may_tell(words(line)):
                self._take(number, decoded(line))
            self._last.append(line)
        for whose in [*self._open]:
            self._close(whose)

    def _may_tell(self, said: list[bytes]) -> bool:
        """Whether a line with some words has to be looked at."""
        known = self._words.intersection(said)
        return not _STRUCTURE.isdisjoint(known) or any(
            sign[0].issubset(said) for word in known for sign in self._table.get(word, ())
        )

    def _take(self, number: int, text: str) -> None:
        rank, process, rest = _whose(text)
        whose, frame = (rank, process), _FRAME.match(rest)
        if frame and not rank and whose not in self._open:  # its first line alone says whose it is
            headed = [each for each in self._open if each[1] == process and not self._open[each].frames]
            if headed:
                self._open[whose] = self._open.pop(headed[0])
        before, starts, _after = rest.partition(_STARTS)
        taken = self._open[whose].take(number, rest) if whose in self._open and not starts else None
        if taken is None:
            self._close(whose)
        if taken is None and (starts or frame):  # Ray and a cut log have no line before the frames
            before = before if starts or not frame else frame["before"] or ""
            above = _SAID_RANK.search(decoded(self._last[-1])) if starts and self._last else None
            trace = _Trace(number, before, self._when(text), rank or (above[1] if above else ""))
            self._open[whose] = trace
            taken = bool(starts) or trace.take(number, rest)
        listed = "" if rank else self._from_torchrun(rest)
        if taken and not starts:  # before it another's line may stand
            return
        named = _NAMED.search(rest[:300])
        record = Record(self._log.name, number, 0, rank or listed, process, PLAIN, text)
        record.type, record.listed = named[1] if named else "", bool(listed)
        self._note(record)

    def _from_torchrun(self, text: str) -> str:
        """The rank of which a line of torchrun's table speaks."""
        said = _OF_TORCHRUN.match(text)
        if said and said["root"]:
            self._root, self._listed = True, ""
        elif said and said["rank"]:
            self._listed = said["rank"]
            if self._root:
                self.first, self._root = self._listed, False
        elif said and said["pid"]:
            self.ranks.setdefault(said["pid"], self._listed)
        elif said:
            self.first = self.first or said["local"]
        elif not text.lstrip().startswith(("error_file", "traceback")):
            self._listed = ""
        return self._listed

    def _close(self, whose: tuple[str, str]) -> None:
        """The traceback of a process is at its end: note its exception, or where it was cut."""
        trace = self._open.pop(whose, None)
        if trace is None:
            return
        own = next((frame for frame in reversed(trace.frames) if not _INSTALLED.search(frame.file)), None)
        if trace.type or own:
            level, rank = EXCEPTION if trace.type else WARNING, trace.rank or whose[0] or self._listed
            text = "\n".join(trace.message) or (own.source if own else "")
            record = Record(self._log.name, trace.raised_at, 0, rank, whose[1], level, text, trace.type, own)
            record.time, record.stamp = trace.when
            self._note(record)

    def _note(self, record: Record) -> None:
        """Keep what may have failed, where the table knows it or it is an exception."""
        text = record.text
        rank, process = _SAID_RANK.search(text), _SAID_PROCESS.search(text)
        record.rank = record.rank or (rank and rank[1]) or self._log.rank
        named = next(filter(None, process.groups())) if process else ""
        record.process = record.process or named or self._log.process
        self.seen.add(record.rank)
        if record.rank and record.process:
            self.ranks.setdefault(record.process, record.rank)
        if record.level == PLAIN:
            bad = ERROR if _FAILS.search(text[:_KEPT]) else PLAIN
            record.level = WARNING if _WARNS.search(text[:120]) else bad
        record.found = entries_in(self._table, text, kinds_of(record.type))
        if not (record.found or record.level == EXCEPTION or record.place):
            return
        if not (record.rank or record.type or _NEW_LINE.match(text)):
            record.rank = self._rank_of_message()
        what = (record.type, text[:80]) if record.level == EXCEPTION else ()  # once for each process
        key = tuple(each.code for each in record.found), record.rank, record.process, record.level, what
        if kept := self._kept.get(key):
            kept.count += 1
            kept.place = kept.place or record.place
        elif len(self.records) < _MOST_RECORDS:
            record.order = len(self.records) + 1
            if record.level != EXCEPTION or _TIME.search(text):
                record.time, record.stamp = self._when(text)
            record.text = text[:_KEPT]
            self._kept[key] = record
            self.records.append(record)

    def _rank_of_message(self) -> str:
        """The rank that torch's logger says before a message of several lines, of which one is read."""
        for line in reversed(self._last):
            if said := _BY_LOGGER.match(line):
                return said[1].decode()
            if not line.strip() or _WHOSE.match(decoded(line[:200])):
                break
        return ""

    def _when(self, text: str) -> tuple[Optional[float], str]:
        """When a line came, in seconds and as it is written: its time, or that of its rank's line before."""
        whose = _whose(text)[:2]
        for line in (text, *map(decoded, reversed(self._last))):
            if (said := _TIME.search(line[:_KEPT])) and (line is text or _whose(line)[:2] == whose):
                month, day, hour, minute, second = (int(said[at] or said[at + 6]) for at in range(1, 6))
                seconds = (((month * 31 + day) * 24 + hour) * 60 + minute) * 60 + second
                return seconds + float(f"0.{said[6] or said[12] or 0}"), said[0].lstrip("[EWIF")
        return None, ""


def _whose(text: str) -> tuple[str, str, str]:
    """The rank and the process that a launcher says before a line, and the line without that.

    In vLLM the rank among the experts' is the one among all, in SGLang the one of tensor parallelism.
    """
    rank = process = ""
    while said := _WHOSE.match(text):
        groups = _IN_GROUP.findall(said["name"] or said["groups"] or "")
        inner = [number for group, number in groups if group] or [number for _group, number in groups]
        rank = said["rank"] or said["mpi"] or max(inner, key=int, default=rank)
        process = said["pid"] or process
        text = text[said.end() :]
    return rank, process, text
