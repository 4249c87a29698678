"""What is found in a file, and the fix for it: the one type that every command, report and format reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Optional

from migrator.api_support.verdict_type import Verdict
from migrator.language import _
from migrator.light import NamedTuple

# A blocker surely stops a program that can be started; an error, where its place is reached.
Severity = Literal["blocker", "error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "error", "blocker")  # the gravest last
Safety = Literal["safe", "unsafe"]
Place = tuple[int, int]  # line and column
Operation = Literal["INSERT", "MODIFY", "DELETE"]


class Edit(NamedTuple):
    """Replace the bytes ``start:end`` of a file's UTF-8 text by ``text``."""

    start: int
    end: int
    text: str


class Fix(NamedTuple):
    """What repairs a finding. All of its edits are made, or none.

    ``edits`` are about the input; they are empty where the fix only completes what another fix writes.
    ``imports`` are the imports that it needs, which it may share with other fixes. ``message`` says in a
    few words what it does. Where the fix was ``made``, ``lines`` are the first and the last line of the
    input that it touches, ``before`` is their text, and ``after`` what stands in their place in the result.
    """

    edits: tuple[Edit, ...]
    safety: Safety
    operation: Operation = "MODIFY"
    imports: tuple[Edit, ...] = ()
    message: str = ""
    made: bool = False
    before: str = ""
    after: str = ""
    lines: Optional[tuple[int, int]] = None

    @property
    def all_edits(self) -> tuple[Edit, ...]:
        """Its own edits and the imports, in the order of the text."""
        return tuple(sorted({*self.edits, *self.imports}, key=lambda edit: (edit.start, edit.end)))


class Finding(NamedTuple):
    """One place that a rule matched.

    Lines and columns are 1-based, columns in characters; ``end_column`` is behind the last character. In a
    notebook they count inside ``cell``, the 1-based number of the cell among all cells. ``span`` holds the
    bytes of the checked text (UTF-8) that the finding is about. ``rule`` is the rule's name, ``file`` the
    file as the user spells it. ``noqa_line`` is the line whose end takes a comment that suppresses the
    finding, None where no comment can.
    """

    code: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    severity: Severity = "warning"
    rule: str = ""
    api: str = ""
    advice: str = ""  # what a person does about it
    fix: Optional[Fix] = None
    span: tuple[int, int] = (0, 0)
    cell: Optional[int] = None
    file: str = ""
    noqa_line: Optional[int] = None
    url: str = ""  # a document about it
    verdict: Optional[Verdict] = None  # how well NPUs support the API, where the rule judges that
    certainty: str = ""  # certain, or "likely: " and why it is not
    form: str = ""  # of an API that has a better equivalent: class | function | torch | special
    instead: str = ""  # that equivalent

    @property
    def start(self) -> Place:
        """Line and column of its first character."""
        return self.line, self.column

    @property
    def end(self) -> Place:
        """Line and column behind its last character."""
        return self.end_line, self.end_column

    @property
    def status(self) -> str:
        """The verdict's: absent, unsupported, fallback, partial or unknown; empty without one."""
        return self.verdict.status if self.verdict else ""

    @property
    def lines(self) -> tuple[int, int]:
        """The first and the last line that a report names: those that were changed, or its own."""
        return (self.fix.lines if self.fix else None) or (self.line, self.end_line)

    @property
    def fixed(self) -> bool:
        """Whether its fix was made."""
        return self.fix is not None and self.fix.made

    @property
    def safety(self) -> str:
        """How safe its fix is; empty without one."""
        return self.fix.safety if self.fix else ""

    @property
    def safely_fixable(self) -> bool:
        """Whether it has a safe fix."""
        return self.safety == "safe"


class SyntaxTrouble(NamedTuple):
    """Why a file, or a ``cell`` of a notebook, could not be parsed; line 0 where none is known."""

    line: int
    message: str
    cell: Optional[int] = None


class Result(NamedTuple):
    """What became of one file.

    ``text`` is its text with all admitted fixes, or None where nothing changed. ``skipped`` is the reason
    for which the file could not be processed and was left unchanged, empty otherwise; ``syntax`` says where
    that is its syntax. ``left`` is the reason for which a file that looks relevant is not meant to be
    processed. ``left_alone`` counts the strings that look like CUDA and were judged to be something else.
    ``trace`` is the traceback of an internal error, for the log. ``type`` is that of a file that is no
    Python, see ``files.document``.
    """

    name: str
    findings: tuple[Finding, ...] = ()
    text: Optional[str] = None
    skipped: str = ""
    left_alone: int = 0
    left: str = ""
    trace: str = ""
    syntax: tuple[SyntaxTrouble, ...] = ()
    type: str = ""


def longest_beginning(codes: Iterable[str], code: str) -> int:
    """How much of a rule's code its longest beginning among ``codes`` has: 0 for ALL, -1 without any."""
    beginnings = ("" if each == "ALL" else each for each in codes)
    return max((len(each) for each in beginnings if begins(each, code)), default=-1)


def begins(beginning: str, code: str) -> bool:
    """Whether a rule's code, or the beginning of some, stands for a rule.

    NPU12 does for NPU121 and NPU1210; NPU121, the whole code of a rule, does for that one alone.
    """
    is_whole = len(beginning) == _WHOLE and beginning.startswith("NPU")
    return code == beginning if is_whole else code.startswith(beginning)


_WHOLE = len("NPU101")


def internal_error(name: str, error: BaseException) -> Result:
    """The result for the file ``name`` after an internal error, which stops the work on that file only.

    What is no Exception stopped it as it took too long; its first argument is the seconds.
    """
    import traceback

    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    at, place = _at_work(error), ""
    if at[0]:
        place = _(" (rule {code}, line {line})", code=at[0], line=at[1] or "?")
    if isinstance(error, Exception):
        said = _("internal error, file left unchanged: {error!r}", error=error)
    else:
        seconds = f"{error.args[0]:g}"
        said = _("given up after {seconds} s of processor time, file left unchanged", seconds=seconds)
    return Result(name, skipped=said + place, trace=trace)


def _at_work(error: BaseException) -> tuple[str, int]:
    """The rule that was at work when an error was raised, and the line of what it looked at; else nothing."""
    code, line, seen, trace = "", 0, 0, error.__traceback__
    while trace:
        held = trace.tb_frame.f_locals
        use = held.get("use")  # of the query language
        rule = held.get("rule", getattr(use, "rule", None))
        nodes = (getattr(each, "lineno", 0) for each in (getattr(use, "node", None), *held.values()))
        seen = next(filter(None, nodes), seen)
        if rule is not None and getattr(rule, "code", code) != code:
            code, line = rule.code, seen
        line = line or seen
        trace = trace.tb_next
    return code, line
