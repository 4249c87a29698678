"""What must hold for any input: only reported lines change, and the result settles."""

from __future__ import annotations

import ast
import re

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from migrator.files.source import decode, encode
from migrator.findings.finding import Result
from tests.checking import every_rule
from tests.matchers.migrating import migrate

_SNIPPETS = [
    example[key]
    for rule in every_rule()
    for example in rule.examples
    for key in ("before", "unchanged")
    if key in example and "__future__" not in example[key] and "file" not in example
]
_PADDING = [
    "\n",
    "# 显卡 é\n",
    "\x0c\n",
    "X = 'ü'  \n",
    "def pad():\n\treturn 1\n",
    "if True:\n    pass\n",
    "",
]


_SPLIT = re.compile("[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$").findall


def lost_lines(before: str, after: str, reported: set[int]) -> list[str]:
    """The lines of ``before`` that no finding covers and that ``after`` does not have, in their order.

    The last line may gain a newline when something is inserted behind it.
    """
    old, new = _SPLIT(before), iter(_SPLIT(after))
    lost = []
    for number, line in enumerate(old, 1):
        if number in reported:
            continue
        last = number == len(old)
        if not any(line == other or (last and line == other.rstrip("\r\n")) for other in new):
            lost.append(f"{number}: {line!r}")
    return lost


def reported_lines(result: Result) -> set[int]:
    return {
        line
        for finding in result.findings
        if finding.fixed
        for line in range(finding.lines[0], finding.lines[1] + 1)
    }


def check(before: str, result: Result) -> None:
    assert result.skipped == ""
    if result.text is None:
        assert not any(finding.fixed for finding in result.findings)
        return
    ast.parse(result.text)
    assert lost_lines(before, result.text, reported_lines(result)) == []
    again = migrate(result.text)
    assert again.skipped == ""
    assert again.text is None, "a second migration changes the result"


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    parts=st.lists(st.sampled_from(_SNIPPETS + _PADDING), min_size=1, max_size=5),
    newline=st.sampled_from(["\n", "\r\n", "\r"]),
    final=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "gbk", "utf-16-be-like"]),
)
@example(
    parts=[each for each in _SNIPPETS if "scale_pytorch" in each][:1],
    newline="\r",
    final=False,
    encoding="utf-8",
)
def test_any_mixture_of_examples(parts: list[str], newline: str, final: bool, encoding: str) -> None:
    text = "".join(part if part.endswith("\n") or not part else part + "\n" for part in parts)
    if encoding == "gbk":
        text = "# -*- coding: gbk -*-\n" + text.replace("é", "e").replace("ü", "u")
    if not final:
        text = text.rstrip("\n")
    text = text.replace("\n", newline)
    codec = encoding if encoding in ("utf-8", "utf-8-sig", "gbk") else "utf-8"
    data = text.encode(codec)
    source = decode(data, "example.py")
    assert encode(source, source.text) == data
    result = migrate(source.text)
    check(source.text, result)
    if result.text is not None:
        out = encode(source, result.text)
        assert out.decode(codec) == result.text


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(snippet=st.sampled_from(_SNIPPETS), indent=st.sampled_from(["    ", "\t", "  "]), data=st.data())
def test_examples_inside_functions_and_classes(snippet: str, indent: str, data: st.DataObject) -> None:
    header = data.draw(st.sampled_from(["def f():\n", "class C:\n", "if 1:\n", "try:\n", "async def g():\n"]))
    body = "".join(indent + line if line.strip() else line for line in snippet.splitlines(keepends=True))
    if '"""' in body or "import *" in body:
        return
    text = header + (body if body.endswith("\n") else body + "\n")
    if header == "try:\n":
        text += "except ImportError:\n" + indent + "pass\n"
    ast.parse(text)
    check(text, migrate(text))
