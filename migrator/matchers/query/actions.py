"""What ``do`` may write: each function is an action, and gives its edits, or None where they cannot be made.

In a ``Template`` ``{}`` is the source of what the action is about, ``{()}`` the same in parentheses where it
needs them, ``{holder}`` what a member belongs to, ``{NAME}`` the source of an argument or a letter,
``{name}`` the API's last name, ``{function}`` what is called, ``{module}`` what stands before its last name,
``{target}`` what the value is assigned to.
"""

from __future__ import annotations

import ast
import re

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.matchers.argument_edits import added_argument, without_arguments
from migrator.matchers.context import instead_of
from migrator.matchers.npu_import import import_at_top, insert_import, names_package
from migrator.matchers.query.uses import Argument, Call, Template, Use, filled
from migrator.names.goes_to import taken_by
from migrator.names.strings import replace_text
from migrator.names.tree import arguments_of, bare_name, string_value

_PLAIN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.Set)


def replace(use: Use, text: Template) -> list[Edit]:
    """Another expression for the whole use."""
    return _written(use, use.node, text)


def rename(call: Call, text: Template) -> list[Edit]:
    """Another function, with the same arguments."""
    return [instead_of(call.index, call.call.func, filled(call, text))]


def rename_last(use: Use, name: str) -> list[Edit] | None:
    """Another last name, if the API is called by its own name, because an alias may have other uses."""
    func = use.call.func
    old, end = use.api.rpartition(".")[2], use.index.end(func)
    return [Edit(end - len(old.encode()), end, name)] if bare_name(func) == old else None


def put(call: Call, name: Argument, text: Template) -> list[Edit]:
    """A value for an argument, which replaces its present value."""
    node = call.argument(name)
    if node is None:
        return added_argument(call.index, call.call, name, filled(call, text))
    return _written(call, node, text)


def append(call: Call, text: Template) -> list[Edit]:
    """A further positional argument."""
    return added_argument(call.index, call.call, "", filled(call, text))


def first(call: Call, text: Template) -> list[Edit] | None:
    """A new first argument."""
    arguments = arguments_of(call.call)
    opening = call.index.data.index(b"(", call.index.end(call.call.func)) + 1
    start = call.index.start(arguments[0]) if arguments else opening
    if call.index.data[opening:start].strip():  # the argument has parentheses, or a comment, of its own
        start = opening
    return [Edit(start, start, filled(call, text) + (", " if arguments else ""))]


def another(call: Call, text: str, new: str) -> list[Edit] | None:
    """A string after the string argument, in the same quotes."""
    node = next((each for each in call.call.args if string_value(each) == text), None)
    if node is None:
        return None
    end = call.index.end(node)
    return [Edit(end, end, f", {call.index.segment(node).replace(text, new)}")]


def instead(call: Call, name: Argument, text: Template) -> list[Edit] | None:
    """Another keyword argument in place of a keyword argument."""
    written = call.keyword(name)
    return [instead_of(call.index, written, filled(call, text))] if written is not None else None


def keyword(call: Call, name: Argument, new: str) -> list[Edit]:
    """Another keyword for an argument, or a keyword for a positional one."""
    written = call.keyword(name)
    if written is not None:
        start = call.index.start(written)
        return [Edit(start, start + len(name), new)]
    start = call.index.start(call.argument(name) or call.node)
    return [Edit(start, start, f"{new}=")]


def positional(call: Call, name: Argument) -> list[Edit] | None:
    """An argument without its keyword, if its position stays the same."""
    given, written = call.call, call.keyword(name)
    if not written or given.keywords[0] is not written or len(given.args) != call.rule.positions[name]:
        return None
    start = call.index.start(written)
    sign = re.compile(rb"\s*=\s*").match(call.index.data, start + len(name))
    return [Edit(start, sign.end(), "")] if sign else None


def drop(call: Call, *names: Argument) -> list[Edit] | None:
    """Removes arguments; None if a comment or a parenthesis is in between."""
    gone = [call.keyword(name) or call.argument(name) for name in names]
    return without_arguments(call.index, call.call, [each for each in gone if each is not None])


def leave_out(use: Use, name: str) -> list[Edit] | None:
    """Removes the argument that this name is; another last name if it is the only one or conditional."""
    call = taken_by(use.index, use.node).holder
    edits = None
    if isinstance(call, ast.Call) and len(arguments_of(call)) > 1:
        gone = [each for each in call.keywords if each.value is use.node]
        edits = without_arguments(use.index, call, gone)
    return rename_last(use, name) if edits is None else edits


def cut(call: Call, name: Argument, length: int) -> list[Edit]:
    """Keeps the first elements of a list or tuple argument."""
    node = call.argument(name)
    if not isinstance(node, (ast.List, ast.Tuple)):
        return []
    comma = "," if isinstance(node, ast.Tuple) and length == 1 else ""
    return [Edit(call.index.end(node.elts[length - 1]), call.index.end(node.elts[-1]), comma)]


def entry(call: Call, name: Argument, text: str) -> list[Edit] | None:
    """A first entry for a dictionary argument."""
    opening = re.compile(rb"\{\s*").match(call.index.data, call.index.start(call.argument(name) or call.node))
    return [Edit(opening.end(), opening.end(), f"{text}, ")] if opening else None


def insert(use: Use, text: Template) -> list[Edit] | None:
    """A statement after the statement that consists of the use."""
    statement = use.index.parent(use.node)
    if not isinstance(statement, ast.stmt):
        return None
    return [insert_import(use.index, statement, filled(use, text))]


def ensure_import(use: Use, module: str) -> list[Edit] | None:
    """An import of a module at the top of the file, if none is in effect; None if its name is taken."""
    index, bindings = use.index, use.index.scope_of(use.node).look_up(module)
    if any(each.kind != "import" or each.name != module for each in bindings):
        return None
    around = [*index.above(use.node)]  # it may be imported below ``if __name__ == "__main__"`` only
    added = import_at_top(index, f"import {module}")
    return [] if added is None or any(index.parent(each.node) in around for each in bindings) else [added[1]]


def import_above(use: Use, module: str) -> list[Edit] | None:
    """An import of a module above the first import of the API's package at the top of the file."""
    index, api = use.index, use.node.func if isinstance(use.node, ast.Call) else use.node
    package = index.qualified_name(api).partition(".")[0]
    at_top = (node for node in index.imports if isinstance(index.parent(node), ast.Module))
    own = [node for node in at_top if names_package(node, package)]
    if not own or index.scope_of(own[0]).look_up(module.partition(".")[0]):
        return None
    begin = index.start(min(own, key=index.start))
    return [Edit(begin, begin, f"import {module}{newline_of(index.text)}")]


def phrase(use: Use, text: str) -> list[Edit]:
    """Other text for the phrase of a string."""
    index, node = use.index, use.node
    return replace_text(index, node, use.api, text) if isinstance(node, (ast.Constant, ast.JoinedStr)) else []


def _written(use: Use, node: ast.expr, text: str) -> list[Edit]:
    """The edits that write a template in a node's place; what stays of the node is not touched."""
    kept: ast.expr = node
    if "{holder}" in text and isinstance(node, ast.Attribute):
        kept, text = node.value, text.replace("{holder}", "{}")
    for letter, value in use.letters.items():
        if text.count(f"{{{letter}}}") == 1 and node in use.index.above(value):
            kept, text = value, text.replace(f"{{{letter}}}", "{()}")
    opened, closed = ("", "") if isinstance(kept, _PLAIN) else ("(", ")")
    text = filled(use, text.replace("{()}", f"{opened}{{}}{closed}"))
    before, found, after = text.partition("{}")
    if not found or isinstance(kept, ast.Constant):  # a literal has nothing in it that others change
        return [instead_of(use.index, node, text.replace("{}", use.index.segment(kept)))]
    (start, end), (first, last) = use.index.span(node), use.index.span(kept)
    made = (Edit(start, first, before), Edit(last, end, after))
    return [edit for edit in made if edit.text or edit.start < edit.end]
