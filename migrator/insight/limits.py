"""Types and arguments that the documents of torch_npu do not list for an API, on the product line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Optional

from migrator.api_support.verdicts import Verdict
from migrator.insight.operator_names import names_of, verdict_of
from migrator.insight.recorded import FORWARD, Record
from migrator.insight.rows import Row, Run, Tally, tallies, text

KIND = "limits"


def find(run: Run) -> Iterator[Row]:
    """A row for each API, place and limit."""

    def key(record: Record) -> Optional[Sequence[str]]:
        if not record.by_program or record.phase != FORWARD or record.crossing:
            return None
        verdict = verdict_of(record.operator, run.version, run.hardware)
        if verdict is None:
            return None
        found = _beyond(record, verdict)
        return [record.operator, *found] if found else None

    for (operator, limit, what), tally in tallies(run, key):
        verdict = verdict_of(operator, run.version, run.hardware)
        assert verdict is not None
        yield _row(run, verdict, limit, what, tally)


def _beyond(record: Record, verdict: Verdict) -> Optional[tuple[str, str]]:
    """Which limit a call goes beyond, and by what."""
    if verdict.ticked:
        return "left_out", ""
    main = names_of("types").get(record.types[0], "") if record.types else ""
    if main and (verdict.refuses(main) or main in verdict.untried):
        return "dtype", main
    for option in record.options:
        if option.partition("=")[0] in verdict.parameters:
            return "option", option
    return None


def _row(run: Run, verdict: Verdict, limit: str, what: str, tally: Tally) -> Row:
    words = {
        "api": verdict.api,
        "version": verdict.asof or run.version,
        "dtype": what,
        "option": what,
        "line": f" on {run.hardware}" if limit == "dtype" and verdict.lacks(what) else "",
        "others": ", ".join(verdict.ticked),
        "allowed": " or ".join(sorted(verdict.dtypes)),
    }
    if not verdict.dtypes or "fp32" in verdict.dtypes:
        words["allowed"] = "float32"
    if limit == "left_out":
        words["line"] = run.hardware
    severity = "info" if limit == "dtype" and not verdict.refuses(what) else "warning"  # not tried, perhaps
    message, advice = text(KIND, limit, **words), text(KIND, f"{limit}_advice", **words)
    return tally.row(KIND, severity, verdict.api, message, advice, limit=limit, value=what)
