"""What changed between two reports of a project, and how a terminal or a pipe shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from migrator.language import _
from migrator.report.terminal import COLOURS, WIDEST
from migrator.report.views.model import Texts, counts_of, readiness
from migrator.report.views.run import Run
from migrator.wrapping import padded, wrap

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


def show_difference(console: Console, found: Difference, name: str) -> None:
    """Print what is new, then what is gone, and how many findings stayed."""
    texts = Texts()
    width = min(console.width, WIDEST)
    before, after = found.readiness
    console.print(Text(texts("diff_title", name=name), style="bold"), soft_wrap=True)
    console.print(Text(texts("diff_readiness", before=before, after=after)))
    for key, rows, sign in (("diff_new", found.new, "+"), ("diff_fixed", found.fixed, "-")):
        console.print()
        console.print(Text(texts(key, len(rows)), style="bold"))
        for row in rows.to_dict("records"):
            line = Text(f"{sign} ")
            line.append(padded(_(row["severity"]), 7), style=COLOURS.get(row["severity"], ""))
            line.append(f"  {row['code']}  {row['file']}:{row['line']}")
            console.print(line, soft_wrap=True)
            for part in wrap(row["message"], width - 11):
                console.print(Text(f"{'':11}{part}"), soft_wrap=True)
    console.print()
    console.print(Text(texts("diff_same", found.same)))
