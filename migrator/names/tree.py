"""Python's syntax trees: a file's, and a quick way through one."""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Union

from migrator.names.large import LARGE, parse_large

# What holds no expression of the program's.
_SKIPPED = frozenset({"ctx", "op", "ops", "type_comment", "kind", "type_ignores"})

String = Union[ast.Constant, ast.JoinedStr]
Text = Union[String, ast.keyword]  # also the name of an argument that is a key: dict(cuda=1)
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
Import = Union[ast.Import, ast.ImportFrom]
# What has a place of its own in the tree of statements: cases are none for ``ast``.
Statement = Union[ast.stmt, ast.ExceptHandler, "ast.match_case"]
STATEMENTS = (ast.stmt, ast.ExceptHandler, getattr(ast, "match_case", ast.stmt))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def parse(text: str) -> ast.Module:
    """``ast.parse`` without the warnings about the user's escapes.

    Raises SyntaxError, ValueError (NUL bytes), RecursionError or MemoryError
    (expressions too deep), as ``ast.parse`` does.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text) if len(text) <= LARGE else parse_large(text)


_KINDS = [each for each in vars(ast).values() if isinstance(each, type) and issubclass(each, ast.AST)]
# The fields of a kind of node that can hold other nodes: code in Python that looks there takes thrice the
# time.
fields_of = {
    kind: tuple(each for each in kind._fields if each not in _SKIPPED) for kind in _KINDS
}.__getitem__


def children(node: ast.AST, but: tuple[str, ...] = ()) -> list[ast.AST]:
    """The nodes right below one, in the order of the text, without operators, contexts and some fields.

    What ``ast.iter_child_nodes`` gives, in a third of its time.
    """
    found: list[ast.AST] = []
    for name in fields_of(node.__class__):
        if name in but:
            continue
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, in the order of the text."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(children(node))


def called_name(call: ast.AST | None) -> str:
    """The last name of what a call calls; empty where it has none."""
    return bare_name(call.func) if isinstance(call, ast.Call) else ""


def bare_name(node: ast.AST | None) -> str:
    """The last name of a name or an attribute: ``c`` of ``a.b.c``; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def last_name(node: ast.AST | None) -> str:
    """The last name that is written in a target: an attribute, a key, a variable."""
    if isinstance(node, ast.Subscript):
        key = string_value(node.slice)
        return last_name(node.value) if key is None else key
    if isinstance(node, (ast.Tuple, ast.List)):
        return " ".join(last_name(element) for element in node.elts)
    return bare_name(node)


def string_value(node: ast.AST | None) -> str | None:
    """The text of a string literal; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def is_enum(node: ast.AST | None) -> bool:
    """Whether a node is a class of constants: ``class Device(str, Enum)``."""
    return isinstance(node, ast.ClassDef) and any("Enum" in bare_name(base) for base in node.bases)


def is_read(node: ast.AST) -> bool:
    """Whether an expression is read, neither bound nor deleted."""
    return isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))  # a call has none


def is_cpu(node: ast.AST | None) -> bool:
    """Whether an expression is the string ``"cpu"``."""
    return string_value(node) == "cpu"


def attributes(node: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes of a dotted name, the last one first: ``a.b.c`` and ``a.b``."""
    while isinstance(node, ast.Attribute):
        yield node
        node = node.value


def imported(node: Import) -> list[str]:
    """What each name of an import statement stands for, in full; nothing where the import is relative."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.level or not node.module:
        return []
    return [node.module if alias.name == "*" else f"{node.module}.{alias.name}" for alias in node.names]


def is_none(node: ast.AST | None) -> bool:
    """Whether an expression is written ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


def is_off(node: ast.AST | None) -> bool:
    """Whether an argument is not given, or is ``False`` or ``None``."""
    return node is None or (isinstance(node, ast.Constant) and node.value in (False, None))


def elements(node: ast.AST | None) -> list[ast.expr]:
    """The elements of a list, a tuple or a set that is written there; none of anything else."""
    return node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else []


def only_target(node: ast.AST | None) -> ast.expr | None:
    """What an assignment with one target assigns to; None for any other node."""
    return node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None


def targets_of(node: ast.AST) -> list[ast.expr]:
    """What an assignment assigns to, with or without an annotation; nothing for any other node."""
    if isinstance(node, ast.Assign):
        return node.targets
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """The values that a call gives, by place and by keyword."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def argument_of(call: ast.Call, keyword: str, position: int | None = None) -> ast.expr | None:
    """The value by keyword (``**``: the mapping handed on) or place; None if not given, or behind ``*``."""
    by_keyword = (item.value for item in call.keywords if (item.arg or "**") == keyword)
    before = call.args[: position + 1] if position is not None and 0 <= position < len(call.args) else []
    starred = any(isinstance(each, ast.Starred) for each in before)
    return next(by_keyword, before[-1] if before and not starred else None)


def hands_on(call: ast.Call) -> bool:
    """Whether a call has ``*args`` or ``**kwargs``: then it is not known which arguments it gives."""
    starred = any(isinstance(item, ast.Starred) for item in call.args)
    return starred or any(keyword.arg is None for keyword in call.keywords)


def summands(node: ast.expr) -> list[ast.expr]:
    """The parts of a sum, from left to right; else the expression itself."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*summands(node.left), *summands(node.right)]
    return [node]


def holder_of(call: ast.Call) -> ast.expr | None:
    """What the method belongs to that a call calls; None where it calls a plain name."""
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """A function's parameters, as ``parameters`` gives them, each with its default."""
    missing = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    given = [*[None] * missing, *arguments.defaults, *arguments.kw_defaults, None, None]
    return zip(parameters(arguments), given)


def parameters(arguments: ast.arguments) -> list[ast.arg]:
    """A function's parameters: by position, by keyword, and the starred ones."""
    starred = [star for star in (arguments.vararg, arguments.kwarg) if star]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *starred]


def root(node: ast.expr) -> ast.expr:
    """What a dotted name begins with: ``a`` of ``a.b.c``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def chain(node: ast.expr) -> Iterator[ast.expr]:
    """An expression, and all that it is a member, an item or the result of: ``a.b()``, ``a.b``, ``a``."""
    while True:
        yield node
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return


# -- statements ------------------------------------------------------------

BODY_FIELDS = ("body", "handlers", "orelse", "finalbody", "cases")


def touches(node: Any, lines: list[int]) -> bool:
    """Whether a node lies on one of some lines, which are in order."""
    first = getattr(node, "lineno", None)
    if first is None:  # match patterns, arguments and comprehensions carry no place of their own
        return any(touches(child, lines) for child in children(node))
    place = bisect_left(lines, first)
    return place < len(lines) and lines[place] <= node.end_lineno


# The fields of a kind of statement that hold statements.
body_fields = {
    kind: tuple(each for each in BODY_FIELDS if each in kind._fields) for kind in _KINDS
}.__getitem__


def head_lines(statement: Any) -> tuple[int, int]:
    """The first and the last line of a statement, without those that only its body has."""
    cls = statement.__class__
    bodies = body_fields(cls)
    if not bodies:
        return statement.lineno, statement.end_lineno
    if cls.__name__ == "match_case":  # it has no place of its own
        return statement.pattern.lineno, statement.body[0].lineno
    decorators = getattr(statement, "decorator_list", None)
    first = decorators[0].lineno if decorators else statement.lineno
    below = getattr(statement, bodies[0])[0]
    return first, getattr(below, "pattern", below).lineno


LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_END_PROGRAM = frozenset({"exit", "_exit", "quit", "abort"})
_END_TEST = frozenset({"skip", "skipTest", "fail", "xfail", "importorskip"})


def leaves(statement: ast.AST | None) -> bool:
    """Whether what stands behind a statement in its block does not run."""
    return isinstance(statement, LEAVING) or ends_run(statement)


def ends_run(statement: ast.AST | None) -> bool:
    """Whether a statement calls what ends the program, or a test."""
    return _called(statement) in _END_PROGRAM | _END_TEST


def stops(statement: ast.AST | None) -> bool:
    """Whether a statement raises, or ends the program."""
    return isinstance(statement, ast.Raise) or _called(statement) in _END_PROGRAM


def _called(statement: ast.AST | None) -> str:
    return called_name(statement.value) if isinstance(statement, ast.Expr) else ""
