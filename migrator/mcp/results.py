"""The results of the tools: clients get the schema of each."""

from __future__ import annotations

from typing import Any, Optional

from pydantic import BaseModel, Field


class ApiAnswer(BaseModel):
    """What is known of a name: what ``npumigrate api --json`` prints."""

    asked: str
    torch: Optional[str] = Field(description="The torch version that was asked for.")
    answers: list[dict[str, Any]] = Field(
        description="One for each name that fits; 'at' is what holds at the torch version."
    )
    nearest: list[str] = Field(description="Names that look like one of which nothing is known.")
    not_shown: int = Field(0, description="How many more names fit the pattern.")


class Rules(BaseModel):
    """Rules: what ``npumigrate rule --output-format json`` prints."""

    rules: list[dict[str, Any]]


class Finding(BaseModel):
    """One finding of lint."""

    file: str
    line: int
    column: int
    cell: Optional[int] = Field(None, description="The cell of a notebook that the line is in.")
    code: str = Field(description="The rule, for explain_rule.")
    severity: str = Field(description="blocker, error, warning or info.")
    message: str
    advice: Optional[str] = None
    api: Optional[str] = None
    fix: Optional[str] = Field(None, description="safe, or unsafe: a person should look at the change.")
    fix_message: Optional[str] = None


class LintResult(BaseModel):
    """The findings, the gravest first."""

    torch: str = Field(description="The torch version that was judged for.")
    total: int
    by_severity: dict[str, int]
    by_rule: dict[str, int]
    findings: list[Finding]
    not_shown: int = Field(0, description="How many more findings there are.")
    troubles: list[str] = Field(default_factory=list, description="Files that could not be looked at.")


class ChangedFile(BaseModel):
    """A file that a migration would change."""

    file: str
    added: int = Field(description="Lines.")
    removed: int = Field(description="Lines.")


class Preview(BaseModel):
    """What a migration would do; nothing was written."""

    torch: str
    files: list[ChangedFile]
    diff: str = Field(description="A unified diff, as patch -p1 takes it.")
    diff_complete: bool = Field(description="Whether it is all there: it is cut at a line where it is long.")
    unsafe: list[Finding] = Field(description="Changes that a person should look at.")
    review: list[Finding] = Field(description="What no rule changes and a person has to.")
    not_shown: int = Field(0, description="How many more there are of both.")
    troubles: list[str] = Field(default_factory=list)


class Explained(BaseModel):
    """What failed first: what ``npumigrate explain --output-format json`` prints."""

    explained: bool
    code: Optional[str] = None
    name: Optional[str] = None
    cause: Optional[str] = None
    do: list[str] = Field(default_factory=list, description="Steps.")
    collect: list[str] = Field(default_factory=list, description="What to look at to be surer.")
    sure: Optional[str] = Field(None, description="certain, likely or possible.")
    source: list[str] = Field(default_factory=list, description="Where that is known from.")
    failure: Optional[dict[str, Any]] = Field(description="Rank, log, time, message, and the project's line.")
    others: list[dict[str, Any]] = Field(default_factory=list, description="What else was reported.")


class Verified(BaseModel):
    """What a run on emulated NPUs proves: the verdict of ``npumigrate verify --json``."""

    verdict: str
    exit_code: int
    reasons: list[str]
    command: list[str]
    ran_on: Optional[str] = None
    failures: list[dict[str, Any]] = Field(default_factory=list)
    cuda_reached: list[dict[str, Any]] = Field(
        default_factory=list, description="Places that still ask for CUDA and were run."
    )
    output: str = Field(description="The end of what the program printed.")
