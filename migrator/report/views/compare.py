"""What changed between two reports of a project: findings that are gone, and new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrator.report.views.estimates import counts_of, readiness
from migrator.report.views.run import Run

if TYPE_CHECKING:
    import pandas

# A finding is the same where these are: its line may have moved.
_KEY = ["file", "code", "api", "message"]


@dataclass(frozen=True)
class Difference:
    """The findings that are gone, those that are new, how many stayed, and the readiness of both."""

    fixed: pandas.DataFrame
    new: pandas.DataFrame
    same: int
    readiness: tuple[int, int]


def difference(before: Run, after: Run) -> Difference:
    """Compare what two runs left to a person; several equal findings of a file are counted."""
    import pandas

    sides = []
    for run in (before, after):
        rows = run.findings.sort_values(["file", "line"], kind="stable")
        sides.append(rows.assign(number=rows.groupby(_KEY).cumcount()))
    merged = pandas.merge(*sides, on=[*_KEY, "number"], how="outer", suffixes=("_before", ""), indicator=True)
    gone = merged[merged["_merge"] == "left_only"]
    gone = gone.assign(**{name: gone[f"{name}_before"] for name in ("line", "severity", "advice")})
    columns = ["file", "line", "severity", "code", "message", "advice"]

    def ordered(rows: pandas.DataFrame) -> pandas.DataFrame:
        return rows[columns].astype({"line": int}).sort_values(["file", "line"], kind="stable")

    return Difference(
        ordered(gone),
        ordered(merged[merged["_merge"] == "right_only"]),
        int((merged["_merge"] == "both").sum()),
        (readiness(counts_of(before))[0], readiness(counts_of(after))[0]),
    )
