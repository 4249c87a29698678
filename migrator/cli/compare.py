"""``npumigrate compare``: where the numbers of two recorded runs part."""

from __future__ import annotations

import json
import re

import typer

from migrator.cli.ending import DONE, PROBLEMS, say, stop
from migrator.cli.options import Given
from migrator.language import N_, _


def compare(given: Given) -> None:
    """Find where two recorded runs first diverge, and the likely cause.

    A is the original, B the migrated program: folders of npumigrate record.

    Exit status: 0 the runs agree; 1 they do not; 2 usage error.
    """
    limit = None
    if given.max_loss_diff is not None:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", given.max_loss_diff.strip())
        if not match:
            said = N_("--max-loss-diff: {text!r} is not a share, such as 2% or 0.02")
            stop(said, text=given.max_loss_diff)
        limit = float(match[1]) / (100 if match[2] else 1)
    if given.output_format == "html" and given.output is None:
        stop("--format html needs a file: -o compare.html")
    from migrator.compare import showing
    from migrator.compare.reading import read_trace

    outcome = showing.compare(read_trace(given.first), read_trace(given.second), limit)
    ways = {"text": showing.as_text, "csv": showing.as_csv, "html": showing.as_page}
    if given.output_format == "json":
        text = json.dumps(showing.as_json(outcome), indent=2) + "\n"
    else:
        text = ways[given.output_format](outcome)
    if given.output is None:
        typer.echo(text, nl=False)
    else:
        from migrator.files.replacing import replace_file

        replace_file(given.output, text.encode("utf-8", "backslashreplace"))
        say(_("written: {file}", file=given.output))
    raise typer.Exit(DONE if outcome.agrees else PROBLEMS)
