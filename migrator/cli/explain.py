"""``npumigrate explain``: what failed first in logs, why, and what to do."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import typer

from migrator.cli.ending import PROBLEMS, check_folder, print_json, stop
from migrator.cli.options import Given
from migrator.cli.progress import ProgressBar
from migrator.language import _, did_you_mean, english_for_programs

if TYPE_CHECKING:
    from migrator.explain.logs import Log
    from migrator.explain.show import Part

_WIDTH = 80


def explain(given: Given) -> None:
    """Explain the first failure in the logs of a run: cause, line, and what to do.

    Reads any mixture of tracebacks and logs of torch_npu, CANN (plog), HCCL and torchrun. LOG is a file, a
    folder, - for the standard input, or a code such as EI0006.

    Exit status: 0 explained; 1 an unknown failure, or none; 2 usage error.
    """
    from migrator.explain.judge import explain_logs
    from migrator.explain.show import as_data, entry_data, parts_of, parts_of_entry
    from migrator.explain.table import entries

    asked = given.logs or ([] if given.run else ["-"])
    if asked == ["-"] and sys.stdin.isatty():
        stop("give a log: npumigrate explain LOG, or - for the standard input")
    if given.output_format == "json":
        english_for_programs()
    codes = {entry.code: entry for entry in entries()}
    entry = next((codes[code] for code in codes if [code.lower()] == [each.lower() for each in asked]), None)
    if entry and not os.path.exists(asked[0]):
        if given.output_format == "json":
            print_json({"schema": 1, **entry_data(entry)})
        else:
            _print(parts_of_entry(entry), given.output_format)
        return
    logs = [log for path in asked for log in _logs_at(path, codes)]
    if given.run:
        check_folder(given.run, "--run: ")
        logs += _logs_at(str(given.run), codes)
    with ProgressBar(shown=True) as bar:
        explanation = explain_logs(logs, lambda done, total: bar(_("reading logs"), done, total))
    if given.output_format == "json":
        print_json(as_data(explanation))
    else:
        _print([*parts_of(explanation)], given.output_format)
    if explanation is None or explanation.entry is None:
        raise typer.Exit(PROBLEMS)


def _logs_at(path: str, codes: Iterable[str]) -> list[Log]:
    from migrator.explain.logs import log_at, logs_of_run

    if path != "-" and not os.path.exists(path):
        meant = did_you_mean(path, codes) if not os.path.dirname(path) else ""
        stop("{path}: no such file or folder{meant}", path=path, meant=meant)
    return logs_of_run(path) if os.path.isdir(path) else [log_at(path)]


def _print(parts: list[Part], output_format: str) -> None:
    from migrator.explain.show import as_markdown, as_text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    typer.echo(as_text(parts, width) if output_format == "text" else as_markdown(parts), nl=False)
