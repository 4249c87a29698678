"""JUnit XML, which most CI servers show: a suite for each file, a failed test for each finding."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TextIO
from xml.etree import ElementTree

from migrator.files.errors import harmless
from migrator.report.formats import LintReport
from migrator.report.formats.style import cell_of, relative, words_of

# What XML 1.0 cannot hold.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(report: LintReport, stream: TextIO) -> None:
    """One document; where nothing was found it has one test, which passed."""
    total = len(report.findings)
    root = ElementTree.Element(
        "testsuites", name="npumigrate", tests=str(total or 1), failures=str(total), errors="0"
    )
    for path, group in groupby(report.findings, key=lambda item: item.file):
        items = list(group)
        name = _text(relative(path))
        suite = ElementTree.SubElement(
            root, "testsuite", name=name, tests=str(len(items)), failures=str(len(items)), errors="0"
        )
        for item in items:
            place = f"{cell_of(item, ', ')}line {item.line}"
            case = ElementTree.SubElement(
                suite, "testcase", name=f"{item.code} {place}", classname=name, line=str(item.line)
            )
            words = _text(words_of(item))
            failure = ElementTree.SubElement(case, "failure", type=item.severity, message=words)
            failure.text = f"{name}: {place}, column {item.column}: {item.code} {words}"
    if not total:
        suite = ElementTree.SubElement(
            root, "testsuite", name="npumigrate", tests="1", failures="0", errors="0"
        )
        ElementTree.SubElement(suite, "testcase", name="no findings", classname="npumigrate")
    stream.write('<?xml version="1.0" encoding="utf-8"?>\n')
    stream.write(ElementTree.tostring(root, encoding="unicode"))
    stream.write("\n")


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", harmless(text))
