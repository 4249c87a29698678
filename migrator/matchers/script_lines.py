"""Lines of scripts and configurations that name CUDA's variables, devices or backends, and what to write."""

from __future__ import annotations

import re
from collections.abc import Iterator

from migrator.api_support import env_vars
from migrator.findings.finding import Finding, Severity
from migrator.language import _

VARIABLE, DEVICE = "NPU404", "NPU124"

_WORD = re.compile(
    r"""(?P<name>\b[A-Z][A-Z0-9_]{4,}\b)"""
    r"""(?:["']?[ \t]*[:=][ \t]*(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s"';&|}]*))?"""
)
# What a key's name begins with is not read, and of two repetitions in a row none can take what the other can:
# otherwise a line of 20,000 dashes or blanks would take minutes.
_DEVICE = re.compile(
    r"""(?:device|backend|map_location)s?\b["']?(?:[ \t]*[:=]|\t* )[ \t\[]*"""
    r"""["']?(?P<value>cuda(?::\d+)?|nccl)(?![\w.:/-])""",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"\s*(?:#|//|;|::|REM\b)")
_FORMS = {"cuda": "npu", "nccl": "hccl"}


def find_lines(text: str) -> Iterator[Finding]:
    """A finding for each such place, but in comments. No line is changed: its reader knows what it means."""
    for number, line in enumerate(text.split("\n"), 1):
        if _COMMENT.match(line):
            continue
        seen: set[str] = set()
        for found in _WORD.finditer(line):
            if found["name"] not in seen:
                seen.add(found["name"])
                yield from _variable(found, number)
        for found in _DEVICE.finditer(line):
            value = found["value"]
            name, colon, index = value.partition(":")
            new = _FORMS[name.lower()] + colon + index
            what = "device" if name.lower() == "cuda" else "backend"
            message = _("the {what} {value} is {new} on NPUs", what=_(what), value=value, new=new)
            yield _finding(
                DEVICE, value, number, found.start("value"), message, _("Write {new}.", new=new), "warning"
            )


def _variable(found: re.Match[str], line: int) -> Iterator[Finding]:
    known = env_vars.look_up(found["name"])
    if known is None or known.npu == known.name:
        return
    value = (found["value"] or "").strip("\"'")
    severity: Severity = "warning"
    advice = known.advice
    if not known.npu:
        severity, message = "info", known.on_npus()
    elif not value or env_vars.carries_over(known, value):
        message = known.on_npus()
        advice = _("Write {npu}{value}.", npu=known.npu, value="=" + value if value else "")
    elif known.same_values:
        message = known.refuses(value)
    else:
        message = known.on_npus(_("; the values differ"))
    yield _finding(VARIABLE, known.name, line, found.start("name"), message, advice, severity)


def _finding(
    code: str, api: str, line: int, column: int, message: str, advice: str, severity: Severity
) -> Finding:
    end = column + 1 + len(api)
    return Finding(code, message, line, column + 1, line, end, severity, api=api, advice=advice)
