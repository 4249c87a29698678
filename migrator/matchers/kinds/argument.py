"""Kind ``argument``: one argument of an API is added, given another value, or reported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Optional

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found, instead_of
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, arguments_of, hands_on

_EQUALS = re.compile(rb"\s*=\s*")
# What stands behind a call's last argument: comments, parentheses around the argument, a trailing comma.
_MARKS = re.compile(rb"#[^\r\n]*|[),]")


@dataclass(frozen=True)
class ArgumentOptions(Options):
    """Which argument of the API a rule is about, and what becomes of it.

    ``argument`` is its keyword, ``position`` where it may stand without. A ``missing`` one is added with the
    source ``value``, without its keyword where it is ``positional``; a ``present`` one that is ``positional``
    loses its keyword. Of others ``rename`` stands for keyword and value, ``keyword`` for the keyword,
    ``instead`` for the value; the ``argument`` as ``keyword`` is for one without. ``unless_empty`` is a
    keyword whose empty list rules a call out. ``subclass`` is said of a class that derives from the API and
    does not speak of the argument.
    """

    argument: str = field(default="", metadata={"required": True})
    position: Optional[int] = None
    when: Literal["missing", "present"] = "present"
    value: str = ""
    positional: bool = False
    rename: str = ""
    keyword: str = ""
    unless_empty: str = ""
    subclass: str = field(default="", metadata=SAID)


def find(context: FileContext, rules: list[Rule[ArgumentOptions]]) -> Iterator[Match]:
    """Calls of the rules' APIs, and classes that derive from them."""
    yield from _subclasses(context, [rule for rule in rules if rule.options.subclass])
    index = context.index
    for call in index.calls:
        name = index.qualified_name(call.func)
        method = f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
        for rule in rules:
            if not ((name and rule.fits(name)) or (method and method in rule.match)):
                continue
            outcome = _checked(context, rule, call, name or method)
            if outcome is not None:
                yield outcome


def _subclasses(context: FileContext, rules: list[Rule[ArgumentOptions]]) -> Iterator[Match]:
    index = context.index
    for owner in index.classes if rules else ():
        starts = [item for item in owner.body if getattr(item, "name", "") == "__init__"]
        for base in owner.bases:
            name = index.qualified_name(base)
            for rule in rules:
                if not name or not rule.fits(name):
                    continue
                if not any(rule.options.argument in index.segment(item) for item in starts):
                    yield found(context, rule, base, api=name, message=rule.options.subclass)


def _checked(context: FileContext, rule: Rule[ArgumentOptions], call: ast.Call, name: str) -> Match | None:
    options = rule.options
    wanted, position = options.argument, options.position
    unless = argument_of(call, options.unless_empty)
    keyword = next((k for k in call.keywords if k.arg == wanted), None)
    sure = not hands_on(call) or (keyword is not None and not options.unless_empty)
    if not sure or (isinstance(unless, (ast.List, ast.Tuple)) and not unless.elts):
        return None
    given = keyword is not None or (position is not None and len(call.args) > position)
    if given == (options.when == "missing") or (given and _is_as_wanted(options, keyword)):
        return None
    edits: list[Edit] = []
    if keyword is None:
        if options.value and not given:
            keyword_name = "" if options.positional else wanted
            edits = added_argument(context.index, call, keyword_name, options.value)
        elif options.keyword and position is not None:
            start = context.index.start(call.args[position])
            edits = [Edit(start, start, f"{options.keyword}=")]
    elif options.positional:
        edits = _without_keyword(context.index, call, keyword, position or 0)
    elif isinstance(keyword.value, ast.Constant) and not keyword.value.value:
        return None
    elif options.rename:
        text = options.rename
        if not (isinstance(keyword.value, ast.Constant) and keyword.value.value is True):
            text += f" if {context.index.segment(keyword.value)} else None"
        edits = [instead_of(context.index, keyword, text)]
    elif options.keyword:
        start = context.index.start(keyword)
        edits = [Edit(start, start + len(wanted), options.keyword)]
    elif options.instead:
        edits = [instead_of(context.index, keyword.value, options.instead)]
    if keyword is None and options.instead and given and position is not None:
        edits = [instead_of(context.index, call.args[position], options.instead)]
    return found(context, rule, call, api=name, edits=edits)


def _is_as_wanted(options: ArgumentOptions, keyword: Optional[ast.keyword]) -> bool:
    """Whether an argument that is given has its keyword, or none, as the rule wants it."""
    if keyword is None:
        return options.positional
    return options.keyword == options.argument


def _without_keyword(index: ModuleIndex, call: ast.Call, keyword: ast.keyword, position: int) -> list[Edit]:
    """The edit that takes the keyword away; none where the value would stand at another place then."""
    if len(call.args) != position or call.keywords[0] is not keyword:
        return []
    start = index.start(keyword)
    sign = _EQUALS.match(index.data, start + len(keyword.arg or ""))
    return [Edit(start, sign.end(), "")] if sign else []


def added_argument(index: ModuleIndex, call: ast.Call, keyword: str, value: str) -> list[Edit]:
    """The edits that add an argument at a call's end.

    A trailing comma, comments and line breaks inside the call stay as they are.
    """
    text = f"{keyword}={value}" if keyword else value
    closing = index.end(call) - 1
    arguments = arguments_of(call)
    if not arguments:
        return [Edit(closing, closing, text)]
    last = max(arguments, key=index.end)
    end = index.end(last)
    if end > closing:  # a bare generator shares its parentheses with the call
        start = index.start(last)
        return [Edit(start, start, "("), Edit(end, end, f", {text})")]
    trailing_comma = False
    # Parentheses around the last argument belong to it.
    for mark in _MARKS.finditer(index.data, end, closing):
        if not mark[0].startswith(b"#"):
            end, trailing_comma = mark.end(), mark[0] == b","
    return [Edit(end, end, f" {text}," if trailing_comma else f", {text}")]
