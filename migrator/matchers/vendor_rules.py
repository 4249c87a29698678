"""The rule files of pytorch_gpu2npu.sh (its option -r) as rules of a pack.

The format is that of the tool's documents:
https://www.hiascend.com/document/detail/en/mindstudio/500/msug/msug_000052.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrator.files.errors import Unreadable
from migrator.files.source import read_settings

_CODE = "MSFT"
_KINDS = ("ArgsModifyRule", "FuncNameModifyRule", "ModuleNameModifyRule")
_MOST_ARGUMENTS = 1000  # no function takes as many
Entry = dict[str, Any]


def as_pack(document: Entry) -> str:
    """The text of a pack with the rules of a file that have an equivalent."""
    entries = [rule for _, rule in _each(document["rules"]) if isinstance(rule, dict)]
    numbered = ({"code": f"{_CODE}{number:03}", **entry} for number, entry in enumerate(entries, 1))
    return "\n".join(f"- {json.dumps(entry, ensure_ascii=False)}" for entry in numbered) or "[]"


def not_converted(path: Path) -> list[str]:
    """A line for each rule of such a file that has no equivalent."""
    try:
        document = json.loads(read_settings(path))
    except (Unreadable, ValueError, RecursionError):
        return []  # to load it tells why
    rules = document.get("rules") if isinstance(document, dict) else None
    every = _each(rules) if isinstance(rules, dict) else ()
    return [f"{name}: {outcome}" for name, outcome in every if isinstance(outcome, str)]


def _each(rules: Entry) -> Iterator[tuple[str, Entry | str]]:
    for kind, several in rules.items():
        if kind not in _KINDS or not isinstance(several, list):
            yield kind, f"no such rules; there are {', '.join(_KINDS)}"
            continue
        for number, each in enumerate(several):
            name = f"{kind} {number + 1}"
            yield name, _rule(kind, each) if isinstance(each, dict) else "it is no object"


def _rule(kind: str, rule: Entry) -> Entry | str:
    if kind == "ArgsModifyRule":
        return _argument(rule)
    old, new = str(rule.get("old_name", "")), str(rule.get("new_name", ""))
    if not old or not new:
        return "old_name and new_name are needed"
    if kind == "ModuleNameModifyRule":
        parent = str(rule.get("parent_module", ""))
        before, after = (".".join(filter(None, (parent, name))) for name in (old, new))
        message, match, replace = f"the module {before} is {after}", f"{before}.*", f"{after}.*"
    elif "." not in old:
        return f"{old!r} has no module, and would be any function of that name: write it as package.{old}"
    else:
        message, match, replace = f"{old} is {new}", old, new
        replace = new if "." in new else f"{old.rpartition('.')[0]}.{new}"
    options = {"needs_npu": "npu" in replace}
    return _entry(match, message, kind="name", replace=replace, options=options)


def _entry(match: str, message: str, **more: Any) -> Entry:
    said = {"name": "own-rule", "fix": "safe", "summary": message, "message": message}
    return {**said, "match": match, **more}


def _argument(rule: Entry) -> Entry | str:
    function, new = str(rule.get("func_name", "")), str(rule.get("arg_new", ""))
    place, keyword = rule.get("arg_idx", -1), str(rule.get("arg_keyword") or "")
    has_place = isinstance(place, int) and 0 <= place <= _MOST_ARGUMENTS
    if not function or not (keyword or has_place):
        return "func_name, and arg_idx or arg_keyword, are needed"
    if not new:
        return f"it takes an argument of {function} away: there is no rule for that, change it by hand"
    name = keyword or "argument"
    before = [f"argument_{number}" for number in range(place)] if has_place else ["*"]
    query: Entry = {"on": "call", "args": [*before, name], "where": f"not off({name!r})"}
    query.update(do=f"put({name!r}, {new!r})", options={} if "npu" in new else {"needs_npu": False})
    message = f"{keyword or f'argument {place}'} of {function} is {new}"
    return _entry(function if "." in function else f".{function}", message, **query)
