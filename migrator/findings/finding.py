"""What the engine says about one place in a file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """Replace the bytes ``start:end`` of a file's UTF-8 text by ``text``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Finding:
    """One place that a rule matched.

    ``line``, ``end_line`` and ``column`` are 1-based, and belong to the input
    file. ``span`` holds the bytes of the input's UTF-8 text that it is about.
    ``edits`` make up one fix: all of them are applied or none is.
    """

    code: str
    api: str
    line: int
    end_line: int
    column: int
    message: str
    severity: str = "warning"  # error | warning | info
    status: str = ""  # absent | unsupported | fallback | partial | unknown | ""
    safety: str = ""  # safe | unsafe; empty: there is no fix
    operation: str = ""  # INSERT | MODIFY | DELETE; empty: nothing was changed
    before: str = ""  # source before the fix; empty without one
    after: str = ""
    advice: str = ""  # what a person does about it
    edits: tuple[Edit, ...] = ()
    documents: str = ""  # the document's word on the API
    kernel: str = ""  # what torch_npu registers for it: kernel | composite | none
    certainty: str = ""  # certain, or "likely: " and why it is not
    form: str = ""  # of an API that has a better counterpart: class | function | torch | special
    instead: str = ""  # that counterpart
    span: tuple[int, int] = (0, 0)
    cell: int | None = None  # of a notebook: its lines are counted in the cell

    @property
    def fixed(self) -> bool:
        """True where the fix was applied."""
        return bool(self.operation)


@dataclass(frozen=True)
class FileResult:
    """What became of one file.

    ``text`` is the migrated text, or None where nothing changed. ``skipped``
    is the reason for which a file could not be processed and was left as it
    was, empty otherwise; ``left`` the reason for which a file that looks
    relevant is not meant to be processed.
    ``left_alone`` counts the words that look like CUDA and were judged to be
    something else. ``trace`` is the traceback of an internal error, for the log.
    """

    name: str
    text: str | None = None
    findings: tuple[Finding, ...] = ()
    skipped: str = ""
    left_alone: int = 0
    left: str = ""
    trace: str = ""
