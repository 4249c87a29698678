"""The output formats of ``npumigrate lint``: one module each, loaded when it is asked for.

A module has one public function, ``write(report, stream)``. To add a format, add its
name here and the module beside this file.
"""

from __future__ import annotations

from importlib import import_module
from typing import Callable, TextIO

from migrator.report.lint_report import LintReport

Write = Callable[[LintReport, TextIO], None]

FORMATS = (
    *("full", "concise", "grouped", "json", "json-lines"),
    *("sarif", "github", "gitlab", "junit", "azure", "pylint", "rdjson"),
)


def writer(name: str) -> Write:
    """The ``write`` function of a format, one of ``FORMATS``. Raises KeyError for another name."""
    if name not in FORMATS:
        raise KeyError(name)
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    write: Write = module.write
    return write
