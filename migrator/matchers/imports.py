"""Import statements, rewritten by LibCST, and ``import torch_npu`` where it belongs."""

from __future__ import annotations

import ast
from typing import Any

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.names.index import ModuleIndex


def import_form(name: str) -> str:
    """The spelling of an NPU name in an import.

    ``torch.npu`` is ``torch_npu.npu`` put into torch; importing a module below
    ``torch.npu`` by that name makes a second copy of the module (seen with
    torch_npu 2.13), so imports go to the package that owns it.
    """
    if name == "torch.npu" or name.startswith("torch.npu."):
        return "torch_npu" + name[len("torch") :]
    return name


def move_names(index: ModuleIndex, node: Any, moved: dict[str, str]) -> Edit | None:
    """The edit that imports ``moved`` (imported name to new qualified name) from its new place.

    What the statement binds stays bound to the same names; what is not moved
    stays imported as it was. None where LibCST cannot read the statement.
    """
    import libcst

    source = index.segment(node)
    try:
        parsed = libcst.parse_module(source)
    except libcst.ParserSyntaxError:
        return None
    line = parsed.body[0]
    if not isinstance(line, libcst.SimpleStatementLine):
        return None
    statement = line.body[0]
    render = parsed.code_for_node  # with the newlines of the statement
    if isinstance(statement, libcst.Import):
        return _move_plain_import(index, node, statement, moved, render)
    if not isinstance(statement, libcst.ImportFrom):
        return None
    if isinstance(statement.names, libcst.ImportStar):
        target = import_form(next(iter(moved.values())))
        changed = statement.with_changes(module=_dotted(target))
        return Edit(index.start(node), index.end(node), render(changed))
    kept: list[Any] = []
    groups: dict[str, list[Any]] = {}
    for alias in statement.names:
        name = str(alias.name.value)
        if name not in moved:
            kept.append(alias)
            continue
        module, _, last = import_form(moved[name]).rpartition(".")
        groups.setdefault(module, []).append(_renamed(alias, name, last))
    pieces = []
    for module, aliases in groups.items():
        pieces.append(statement.with_changes(module=_dotted(module), names=_tidy(aliases, statement)))
    if kept:
        kept_piece = statement.with_changes(names=_tidy(kept, statement))
        pieces.insert(0, kept_piece)
    if len(pieces) > 1:
        pieces = [_flat(piece) for piece in pieces]
    text = _joined(index, node, [render(piece) for piece in pieces])
    return Edit(index.start(node), index.end(node), text)


def _move_plain_import(
    index: ModuleIndex, node: Any, statement: Any, moved: dict[str, str], render: Any
) -> Edit | None:
    """``import torch.cuda.amp as amp``: each alias has its own module."""
    names = []
    for alias, plain in zip(statement.names, node.names):
        if plain.asname and plain.name in moved:
            alias = alias.with_changes(name=_dotted(import_form(moved[plain.name])))
        names.append(alias)
    return Edit(index.start(node), index.end(node), render(statement.with_changes(names=names)))


def _dotted(name: str) -> Any:
    import libcst

    first, *rest = name.split(".")
    result: Any = libcst.Name(first)
    for part in rest:
        result = libcst.Attribute(result, libcst.Name(part))
    return result


def _renamed(alias: Any, old: str, new: str) -> Any:
    """The alias under its new name, still bound to the old one."""
    import libcst

    if new == old:
        return alias
    changed = alias.with_changes(name=libcst.Name(new))
    if alias.asname is None:
        changed = changed.with_changes(asname=libcst.AsName(libcst.Name(old)))
    elif isinstance(alias.asname.name, libcst.Name) and alias.asname.name.value == new:
        changed = changed.with_changes(asname=None)
    return changed


def _tidy(aliases: list[Any], statement: Any) -> list[Any]:
    """Aliases whose last one has no comma, unless the statement ends in one inside parentheses."""
    import libcst

    if len(aliases) == len(statement.names):
        return aliases
    comma = libcst.Comma(whitespace_after=libcst.SimpleWhitespace(" "))
    return [alias.with_changes(comma=comma) for alias in aliases[:-1]] + [
        aliases[-1].with_changes(comma=libcst.MaybeSentinel.DEFAULT)
    ]


def _flat(statement: Any) -> Any:
    """The statement without parentheses, for pieces of one that was split."""
    import libcst

    comma = libcst.Comma(whitespace_after=libcst.SimpleWhitespace(" "))
    names = list(statement.names)
    names = [alias.with_changes(comma=comma) for alias in names[:-1]] + [
        names[-1].with_changes(comma=libcst.MaybeSentinel.DEFAULT)
    ]
    return statement.with_changes(names=names, lpar=None, rpar=None)


def indentation(index: ModuleIndex, node: Any) -> str | None:
    """What stands before a statement on its line; None where that is other code."""
    start = index.start(node)
    begin, _ = index.line_span(index.line_of(start), index.line_of(start))
    before = index.data[begin:start].decode("utf-8")
    return before if not before.strip(" \t\f") else None


def _joined(index: ModuleIndex, node: Any, statements: list[str]) -> str:
    indent = indentation(index, node)
    separator = "; " if indent is None or ends_in_semicolon(index, node) else newline_of(index.text) + indent
    return separator.join(statements)


def ends_in_semicolon(index: ModuleIndex, node: Any) -> bool:
    """Whether another statement (or a lone semicolon) follows on a statement's line."""
    end = index.end(node)
    _, stop = index.line_span(index.line_of(max(end - 1, 0)), index.line_of(max(end - 1, 0)))
    return index.data[end:stop].lstrip(b" \t").startswith(b";")


def torch_npu_imports(index: ModuleIndex, needing: list[Any]) -> list[tuple[Any, Edit]]:
    """The edits that put ``import torch_npu`` in force for the nodes that need it.

    Each comes with the statement it follows. Goes behind the first import of
    torch: the one at the top of the module where there is one, otherwise those
    inside the ``try``, ``if`` or function that hold the uses, never one that
    only type checkers run. Empty where it is there already.
    """
    runtime = [node for node in index.imports if not _only_for_types(index, node)]
    present = [node for node in runtime if names_package(node, "torch_npu")]
    if any(_at_top(index, node) or _guarded_at_top(index, node) for node in present):
        return []
    torch = [node for node in runtime if names_package(node, "torch")]
    at_top = [node for node in torch if _at_top(index, node)]
    if at_top:
        return [(at_top[0], insert_import(index, at_top[0]))]
    if torch:
        chosen = _first_of_each_block(index, torch)
        served = [_block(index, node) for node in present]
        chosen = [node for node in chosen if not any(_block(index, node) is block for block in served)]
        chosen = [node for node in chosen if _serves(index, node, needing)]
        if all(any(_serves(index, node, [use]) for node in chosen) for use in needing):
            return [(node, insert_import(index, node)) for node in _not_dominated(index, chosen)]
    if present:
        return []
    place = _last_top_import(index)
    if place is not None:
        return [(place, insert_import(index, place))]
    return _at_module_start(index)


def names_package(node: Any, package: str) -> bool:
    """Whether an import statement imports a package or something of it."""
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == package for alias in node.names)
    return node.level == 0 and (node.module or "").split(".")[0] == package


def _at_top(index: ModuleIndex, node: Any) -> bool:
    return isinstance(index.parent(node), ast.Module)


def _guarded_at_top(index: ModuleIndex, node: Any) -> bool:
    """Whether an import stands in a ``try`` or an ``if`` of the module: its absence was thought of."""
    parent = index.parent(node)
    guarded = isinstance(parent, (ast.Try, ast.If))
    return guarded and isinstance(index.parent(parent), ast.Module)


def _not_dominated(index: ModuleIndex, nodes: list[Any]) -> list[Any]:
    """The imports that no earlier one of an enclosing block makes superfluous."""
    kept: list[Any] = []
    for node in nodes:
        around = node
        dominated = False
        while not isinstance(around, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef)):
            block = _block(index, around)
            if block is not None and any(
                other in block and block.index(other) < block.index(around) for other in kept
            ):
                dominated = True
            around = index.parent(around)
        if not dominated:
            kept.append(node)
    return kept


def _only_for_types(index: ModuleIndex, node: Any) -> bool:
    child = node
    while not isinstance(child, ast.Module):
        parent = index.parent(child)
        if isinstance(parent, ast.If) and child in parent.body:
            test = parent.test
            name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
            if name == "TYPE_CHECKING":
                return True
        child = parent
    return False


def _block(index: ModuleIndex, node: Any) -> Any:
    """The list of statements that holds a statement."""
    for field in ("body", "orelse", "finalbody", "handlers"):
        statements = getattr(index.parent(node), field, None)
        if isinstance(statements, list) and node in statements:
            return statements
    return None


def _first_of_each_block(index: ModuleIndex, nodes: list[Any]) -> list[Any]:
    chosen: list[Any] = []
    for node in nodes:
        if not any(_block(index, node) is _block(index, other) for other in chosen):
            chosen.append(node)
    return chosen


def _serves(index: ModuleIndex, node: Any, needing: list[Any]) -> bool:
    """Whether a use lies in the scope of an import (or in one inside it)."""
    return any(index.scope_of(use).inside(index.scope_of(node)) for use in needing)


def insert_import(index: ModuleIndex, node: Any, statement: str = "import torch_npu") -> Edit:
    """The edit that puts an import behind a statement, on a line of its own where that can be."""
    end = index.end(node)
    indent = indentation(index, node)
    if indent is None or ends_in_semicolon(index, node):
        return Edit(end, end, f"; {statement}")
    line = index.line_of(max(end - 1, 0))
    _, stop = index.line_span(line, line)
    if index.data[end:stop].endswith((b"\n", b"\r")):
        return Edit(stop, stop, f"{indent}{statement}{newline_of(index.text)}")
    return Edit(stop, stop, f"{newline_of(index.text)}{indent}{statement}")


def _last_top_import(index: ModuleIndex) -> Any:
    """The last of the imports that the module starts with."""
    last = None
    for node in index.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            last = node
        elif last is not None and not isinstance(node, ast.Expr):
            break
        elif last is None and not isinstance(node, ast.Expr):
            break
    return last


def _at_module_start(index: ModuleIndex) -> list[tuple[Any, Edit]]:
    """Behind the docstring, before the first statement."""
    body = index.tree.body
    if not body:
        return []
    first = body[0]
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    if is_docstring:
        return [(first, insert_import(index, first))]
    decorators = getattr(first, "decorator_list", None)
    start = index.start(decorators[0]) if decorators else index.start(first)
    begin, _ = index.line_span(index.line_of(start), index.line_of(start))
    return [(first, Edit(begin, begin, f"import torch_npu{newline_of(index.text)}"))]
