"""Kind ``argument``: one argument of an API is added, given another value, or reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.dotted import rule_fits
from migrator.matchers.packs import Rule


def find(context: FileContext, rules: list[Rule]) -> Iterator[Match]:
    """Calls of the rules' APIs.

    Options of such a rule: ``argument`` (its keyword), ``position`` (where it
    may stand without the keyword), ``when`` (``missing`` or ``present``),
    ``value`` (the source of the value to add), ``positional`` (added without
    the keyword), ``rename`` (what stands instead of the keyword and its
    value), ``instead`` (what stands for its value), ``unless_empty`` (a
    keyword whose empty list rules it out) and ``subclass`` (what is said of a
    class that derives from the API and does not speak of the argument).
    """
    yield from _subclasses(context, [rule for rule in rules if "subclass" in rule.options])
    index = context.index
    for call in index.calls:
        name = index.qualified_name(call.func)
        method = f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else ""
        for rule in rules:
            if not ((name and rule_fits(rule, name)) or (method and method in rule.match)):
                continue
            outcome = _checked(context, rule, call, name or method)
            if outcome is not None:
                yield outcome


def _subclasses(context: FileContext, rules: list[Rule]) -> Iterator[Match]:
    index = context.index
    for owner in index.classes if rules else ():
        starts = [item for item in owner.body if getattr(item, "name", "") == "__init__"]
        for base in owner.bases:
            name = index.qualified_name(base)
            for rule in rules:
                if not name or not rule_fits(rule, name):
                    continue
                if not any(str(rule.options["argument"]) in index.segment(item) for item in starts):
                    yield found(context, rule, base, api=name, message=str(rule.options["subclass"]))


def _checked(context: FileContext, rule: Rule, call: ast.Call, name: str) -> Match | None:
    options = rule.options
    wanted = str(options.get("argument", ""))
    position = options.get("position")
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    if any(k.arg == options.get("unless_empty") and _is_empty(k.value) for k in call.keywords):
        return None
    keyword = next((k for k in call.keywords if k.arg == wanted), None)
    given = keyword is not None or (isinstance(position, int) and len(call.args) > position)
    if given == (options.get("when") == "missing"):
        return None
    edits: list[Edit] = []
    if not given and "value" in options:
        keyword_name = "" if options.get("positional") else wanted
        edits = [added_argument(context, call, keyword_name, str(options["value"]))]
    elif keyword is not None and "rename" in options:
        value_off = _is_false(keyword.value)
        if value_off:
            return None
        start, end = context.index.start(keyword), context.index.end(keyword)
        text = str(options["rename"])
        if not (isinstance(keyword.value, ast.Constant) and keyword.value.value is True):
            text += f" if {context.index.segment(keyword.value)} else None"
        edits = [Edit(start, end, text)]
    elif keyword is not None and _is_false(keyword.value):
        return None
    elif keyword is not None and "instead" in options:
        value = keyword.value
        edits = [Edit(context.index.start(value), context.index.end(value), str(options["instead"]))]
    return found(context, rule, call, api=name, edits=edits)


def _is_empty(node: Any) -> bool:
    return isinstance(node, (ast.List, ast.Tuple)) and not node.elts


def _is_false(node: Any) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def added_argument(context: FileContext, call: ast.Call, keyword: str, value: str) -> Edit:
    """The edit that adds a keyword argument at a call's end, found by LibCST.

    A trailing comma, comments and line breaks inside the call stay as they are.
    """
    import libcst

    index = context.index
    source = index.segment(call)
    text = f"{keyword}={value}" if keyword else value
    parsed = libcst.parse_expression(source)
    if not isinstance(parsed, libcst.Call):
        raise ValueError("not a call")
    if not parsed.args:
        end = index.end(call) - 1
        return Edit(end, end, text)
    last = max([*call.args, *(k.value for k in call.keywords)], key=index.end)
    end = index.end(last)
    if isinstance(parsed.args[-1].comma, libcst.Comma):
        end += index.data[end:].index(b",") + 1
        return Edit(end, end, f" {text},")
    # Parentheses around the last argument belong to it.
    render = libcst.Module([]).code_for_node
    tail = len(render(parsed).encode()) - len(source.encode())
    after = source.encode("utf-8")[end - index.start(call) :]
    closing = _closing(after)
    return Edit(end + closing + tail, end + closing + tail, f", {text}")


def _closing(after: bytes) -> int:
    """How far behind the last value its own closing parentheses reach."""
    depth = after.count(b")") - 1
    if depth <= 0 or b"#" in after:
        return 0
    place = 0
    for _ in range(depth):
        place = after.index(b")", place) + 1
    return place
