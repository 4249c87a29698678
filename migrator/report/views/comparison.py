"""The difference between two reports on the terminal: at 80 columns, and as plain text in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from migrator.language import _
from migrator.report.terminal import COLOURS, WIDEST
from migrator.report.views.compare import Difference
from migrator.report.views.texts import Texts
from migrator.wrapping import padded, wrap

if TYPE_CHECKING:
    import pandas


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
        _show(console, rows, sign, width)
    console.print()
    console.print(Text(texts("diff_same", found.same)))


def _show(console: Console, rows: pandas.DataFrame, sign: str, width: int) -> None:
    for row in rows.to_dict("records"):
        line = Text(f"{sign} ")
        line.append(padded(_(row["severity"]), 7), style=COLOURS.get(row["severity"], ""))
        line.append(f"  {row['code']}  {row['file']}:{row['line']}")
        console.print(line, soft_wrap=True)
        for part in wrap(row["message"], width - 11):
            console.print(Text(f"{'':11}{part}"), soft_wrap=True)
