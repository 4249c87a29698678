"""What must hold for any input: only reported lines change, and the result settles."""

from __future__ import annotations

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.checking import every_rule
from tests.fuzzing.properties import broken
from tests.matchers.migrating import engine

_SNIPPETS = [
    example[key]
    for rule in every_rule()
    for example in rule.examples
    for key in ("before", "unchanged")
    if key in example and "__future__" not in example[key] and "file" not in example
]
_RULES = engine("2.6")
_PADDING = [
    "\n",
    "# 显卡 é\n",
    "\x0c\n",
    "X = 'ü'  \n",
    "def pad():\n\treturn 1\n",
    "if True:\n    pass\n",
    "",
]


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
    assert broken("example.py", text.encode(codec), _RULES) == ""


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
    assert broken("example.py", text.encode(), _RULES) == ""
