"""``npumigrate profile``: where the time and the memory of a step go."""

from __future__ import annotations

import typer

from migrator.cli.ending import print_json
from migrator.cli.options import Given


def profile(given: Given) -> None:
    """Show where a step's time and memory go in a profile, and what to change.

    PATH is a folder of torch_npu.profiler (…_ascend_pt, or one with the folders of ranks), a trace of
    torch.profiler (.json, .json.gz), or a memory snapshot (.pickle). Its contents are never executed.

    Exit status: 0 done; 2 usage error, or a profile that cannot be read.
    """
    from migrator.profile.read import insight_rows, read_profile
    from migrator.profile.report import as_json, as_text

    rows = insight_rows(given.insight) if given.insight else []
    found = read_profile(given.path)
    other = read_profile(given.against) if given.against else None
    if given.output_format == "json":
        print_json(as_json(found, rows, other))
    else:
        typer.echo(as_text(found, rows, other, given.output_format == "md"))
