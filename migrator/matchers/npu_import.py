"""Import statements: ``import torch_npu`` where it belongs, and names that come from their new place."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType

from migrator.files.source import newline_of
from migrator.findings.finding import Edit
from migrator.matchers.argument_edits import without_statement
from migrator.names.conditions import is_for_types
from migrator.names.index import ModuleIndex
from migrator.names.tree import FUNCTIONS, Import, head_lines, imported

NPU_IMPORT = "import torch_npu"
_FROM_IMPORT = re.compile(r"(from[\s\\]+)([^\s\\].*?)(?<![\s\\])([\s\\]+import\b[\s\\]*)(.+)", re.DOTALL)
# What may stand between the words of an import in parentheses.
_GAP = r"(?:[\s\\]|#[^\r\n]*(?=[\r\n]|\Z))+"  # a comment goes to the end of its line in one way
# A comment, or an imported name and what binds it.
_ALIAS = re.compile(rf"#[^\r\n]*|(?P<name>\w+)(?P<bound>{_GAP}as{_GAP}(?P<asname>\w+))?")
_MODULE = r"(?P<name>\w+(?:[\s\\]*\.[\s\\]*\w+)*)(?P<has_alias>[\s\\]+as[\s\\])?"


def torch_npu_imports(
    index: ModuleIndex,
    needing: Sequence[ast.AST],
    above: bool = False,
    statement: str = NPU_IMPORT,
    named: bool = False,
) -> list[tuple[ast.stmt, Edit]]:
    """The edits that put ``import torch_npu``, or another ``statement``, in force for the nodes that need it.

    Each comes with the statement it stands beside. Goes behind the first import of torch: the one at the top
    of the module where there is one, otherwise those inside the ``try``, ``if`` or function that hold the
    uses, never one that only type checkers run. Empty where it is there already: where the package is
    imported, or, if they are ``named``, where its name is bound. With ``above`` it goes above a first import
    that takes names from torch.
    """
    runtime = [node for node in index.imports if not is_for_types(index, node)]
    name = statement.rpartition(" ")[2]
    loading = [] if named else [node for node in runtime if names_package(node, name)]
    loading += [] if named else [node for node in runtime if name in [alias.name for alias in node.names]]
    present = [node for node in runtime if node in loading or _binds(node, name)]
    around = [index.parent(node) for node in present]
    # In a try or an if of the module its absence was thought of.
    around += [index.parent(each) for each in around if isinstance(each, (ast.Try, ast.If))]
    if any(isinstance(each, ast.Module) for each in around):
        return []
    torch = [node for node in runtime if names_package(node, "torch")]
    top = next((node for node in torch if _at_top(index, node)), None)
    if top is not None:
        if early := _import_before(index, top, needing):
            return [(early, insert_import(index, early, statement))]
        return [(top, _beside(index, top, above, statement))]

    def serves(node: Import, use: ast.AST) -> bool:
        return index.scope_of(use).inside(index.scope_of(node))

    first: dict[int, Import] = {}  # of each block
    for node in torch:
        first.setdefault(id(index.block(node)), node)
    having = {id(index.block(node)) for node in present}
    others = (node for block, node in first.items() if block not in having)
    chosen = [node for node in others if any(serves(node, use) for use in needing)]
    if torch and all(any(serves(node, use) for node in chosen) for use in needing):
        kept: list[Import] = []
        for node in chosen:  # without those that an earlier one of an enclosing block makes superfluous
            if not any(_comes_before(index, other, node) for other in kept):
                kept.append(node)
        return [(node, _beside(index, node, above, statement)) for node in kept]
    return [] if present else _at_beginning(index, statement)


def torch_module(index: ModuleIndex, node: ast.AST) -> str | None:
    """How code at a node names torch; None where it does not."""
    line = node.lineno if isinstance(node, ast.expr) else 0
    here = index.scope_of(node)
    for scope in here.and_outer():
        for name, bindings in scope.bindings.items():
            if len(bindings) == 1 and bindings[0].kind == "import" and bindings[0].name == "torch":
                if scope is not here or bindings[0].node.lineno < line:
                    return name
    return None


def import_at_top(index: ModuleIndex, statement: str) -> tuple[ast.stmt, Edit] | None:
    """The edit that puts an import behind those that a module starts with; None where it is there."""
    if any(_at_top(index, node) and index.segment(node) == statement for node in index.imports):
        return None
    return next(iter(_at_beginning(index, statement)), None)


def insert_import(index: ModuleIndex, node: ast.stmt, statement: str = NPU_IMPORT) -> Edit:
    """The edit that puts an import behind a statement, on a line of its own where that can be."""
    end, separator = index.end(node), statement_separator(index, node)
    if separator == "; ":
        return Edit(end, end, f"; {statement}")
    _, rest = index.lines.beside(index.span(node))
    stop, newline = end + len(rest), newline_of(index.text)
    indented = f"{separator.removeprefix(newline)}{statement}"
    written = f"{indented}{newline}" if rest.endswith((b"\n", b"\r")) else f"{newline}{indented}"
    return Edit(stop, stop, written)


def _binds(node: Import, name: str) -> bool:
    """Whether an import binds a name to the module that is called so: ``from . import torch_npu``, too."""
    if isinstance(node, ast.ImportFrom):
        return any(alias.name == name == (alias.asname or name) for alias in node.names)
    return any((alias.asname or alias.name.partition(".")[0]) == name for alias in node.names)


def _beside(index: ModuleIndex, node: Import, above: bool, statement: str) -> Edit:
    if not above or isinstance(node, ast.Import):
        return insert_import(index, node, statement)
    start, indent = index.start(node), _indentation(index, node)
    if indent is None:
        return Edit(start, start, f"{statement}; ")
    begin = start - len(indent.encode("utf-8"))
    return Edit(begin, begin, f"{indent}{statement}{newline_of(index.text)}")


def statement_separator(index: ModuleIndex, node: ast.stmt) -> str:
    """What stands between two statements that take the place of one."""
    indent = _indentation(index, node)
    # Another statement may follow, or a lone semicolon.
    goes_on = index.lines.beside(index.span(node))[1].lstrip(b" \t").startswith(b";")
    return "; " if indent is None or goes_on else newline_of(index.text) + indent


def names_package(node: Import, package: str) -> bool:
    """Whether an import statement imports a package or something of it."""
    return any(name.partition(".")[0] == package for name in imported(node))


def imports_package(index: ModuleIndex, package: str) -> bool:
    """Whether a file imports a package or something of it."""
    return any(names_package(node, package) for node in index.imports)


def _indentation(index: ModuleIndex, node: ast.stmt) -> str | None:
    """What stands before a statement on its line; None where that is other code."""
    before = index.lines.beside(index.span(node))[0].decode("utf-8")
    return before if not before.strip(" \t\f") else None


def _at_top(index: ModuleIndex, node: Import) -> bool:
    return isinstance(index.parent(node), ast.Module)


def _import_before(index: ModuleIndex, node: Import, needing: Sequence[ast.AST]) -> Import | None:
    """The last import above what runs before torch is imported by its own name: ``from helpers import *``."""
    at_top = (index.start(use) for use in needing if index.scope_of(use) is index.module_scope)
    first = min((start for start in at_top if start < index.start(node)), default=0)
    earlier = (each for each in index.imports if _at_top(index, each) and index.start(each) < first)
    return max(earlier, key=index.start, default=None)


def _comes_before(index: ModuleIndex, other: Import, node: Import) -> bool:
    """Whether a statement stands earlier in a block around another one, without leaving its function."""
    block = index.block(other)
    around = takewhile(lambda up: not isinstance(up, (ast.Module, *FUNCTIONS)), (node, *index.above(node)))
    places = [block.index(each) for each in around if isinstance(each, ast.stmt) and each in block]
    return bool(places) and block.index(other) < places[0]


def _at_beginning(index: ModuleIndex, statement: str) -> list[tuple[ast.stmt, Edit]]:
    """Behind the imports at a module's start; else behind its docstring, or before its first statement."""
    imports = (ast.Import, ast.ImportFrom)
    # A magic of a notebook stands as a pass, and one for a whole cell has to stay the cell's first line.
    body = [node for node in index.tree.body if not isinstance(node, ast.Pass)]
    beginning = takewhile(lambda node: isinstance(node, (*imports, ast.Expr)), body)
    last = max((node for node in beginning if isinstance(node, imports)), key=index.start, default=None)
    if last is not None:
        return [(last, insert_import(index, last, statement))]
    if not body:
        return []
    first = body[0]
    if ast.get_docstring(index.tree, clean=False) is not None:
        return [(first, insert_import(index, first, statement))]
    begin, _ = index.line_span(*[head_lines(first)[0]] * 2)
    return [(first, Edit(begin, begin, f"{statement}{newline_of(index.text)}"))]


def import_form(name: str) -> str:
    """The spelling of an NPU name in an import.

    ``torch.npu`` is ``torch_npu.npu`` put into torch; importing a module below ``torch.npu`` by that name
    makes a second copy of the module (seen with torch_npu 2.13), so imports go to the package that owns it.
    """
    if name == "torch.npu" or name.startswith("torch.npu."):
        return "torch_npu" + name[len("torch") :]
    return name


def move_names(
    index: ModuleIndex,
    node: ast.Import | ast.ImportFrom,
    moved: dict[str, str],
    values: Mapping[str, str] = MappingProxyType({}),
) -> Edit:
    """The edit that imports ``moved`` (imported name to new qualified name) from its new place.

    What the statement binds stays bound to the same names; what is not moved
    stays imported as it was. Names of ``values`` are bound to these expressions, in a ``from … import …``:
    comments between its names would be lost.
    """
    source = index.segment(node)
    new = {name: import_form(target) for name, target in moved.items()}
    if values:
        return Edit(*index.span(node), _with_values(index, node, new, values))
    if isinstance(node, ast.Import):
        text = re.sub(_MODULE, lambda match: _renamed_module(match, new), source)
    else:
        text = statement_separator(index, node).join(_moved_from_import(source, new))
    return Edit(*index.span(node), text)


def without_names(
    index: ModuleIndex, node: Import, gone: Collection[ast.alias], more: Iterable[str] = ()
) -> Edit | None:
    """The edit that takes names out of an import, and puts ``more`` statements there; None with comments."""
    kept = ", ".join(ast.unparse(each) for each in node.names if each not in gone)
    start = f"from {node.module} import" if isinstance(node, ast.ImportFrom) else "import"
    statements = [*([f"{start} {kept}"] if kept else []), *more]
    if not statements:
        return without_statement(index, node)
    new = statement_separator(index, node).join(statements)
    return None if "#" in index.segment(node) else Edit(*index.span(node), new)


def _with_values(
    index: ModuleIndex, node: ast.Import | ast.ImportFrom, new: dict[str, str], values: Mapping[str, str]
) -> str:
    """What imports the other names, and the assignments."""
    parts = _FROM_IMPORT.fullmatch(index.segment(node))
    assert parts is not None
    start, module, _, names = parts.groups()
    aliases = [match for match in _ALIAS.finditer(names) if match["name"]]
    others = ", ".join(re.sub(_GAP, " ", alias[0]) for alias in aliases if alias["name"] not in values)
    bound = [alias for alias in aliases if alias["name"] in values]
    statements = _moved_from_import(f"{start}{module} import {others}", new) if others else []
    statements += [f"{alias['asname'] or alias['name']} = {values[alias['name']]}" for alias in bound]
    separator = statement_separator(index, node)
    return separator.join(each if separator == "; " else each.replace("\n", separator) for each in statements)


def _renamed_module(module: re.Match[str], new: dict[str, str]) -> str:
    """A module under its new name, where it stays bound: by its alias, or as one of the same package."""
    old, alias = module["name"], module["has_alias"] or ""
    name = re.sub(_GAP, "", old)
    moved = new.get(name, old)
    return moved + alias if alias or moved.partition(".")[0] == name.partition(".")[0] else module[0]


def _moved_from_import(source: str, new: dict[str, str]) -> list[str]:
    """The statements that a ``from … import …`` becomes."""
    parts = _FROM_IMPORT.fullmatch(source)
    assert parts is not None, source
    start, module, middle, names = parts.groups()
    if names == "*":
        return [start + new["*"] + middle + names]
    aliases = [match for match in _ALIAS.finditer(names) if match["name"]]
    homes = [new.get(match["name"], "").rpartition(".")[0] for match in aliases]
    if len(set(homes)) == 1:
        return [start + (homes[0] or module) + middle + _ALIAS.sub(lambda match: _renamed(match, new), names)]
    if "#" in names:
        return _split_with_comments(source, new)
    groups: dict[str, list[str]] = {"": []} if "" in homes else {}  # what stays comes first
    for match, home in zip(aliases, homes):
        groups.setdefault(home, []).append(re.sub(_GAP, " ", _renamed(match, new)))
    if middle.endswith("import"):
        middle += " "
    return [start + (home or module) + middle + ", ".join(group) for home, group in groups.items()]


def _split_with_comments(source: str, new: dict[str, str]) -> list[str]:
    """As many statements as the names have homes, each in parentheses with the comments of its names.

    LibCST knows which name a comment belongs to. It is loaded for such statements only: that takes longer
    than all the rest of a hook's run.
    """
    import libcst

    tree = libcst.parse_module(source)
    line = libcst.ensure_type(tree.body[0], libcst.SimpleStatementLine)
    statement = libcst.ensure_type(line.body[0], libcst.ImportFrom)
    assert not isinstance(statement.names, libcst.ImportStar)
    groups: dict[str, list[libcst.ImportAlias]] = {"": []}  # what stays comes first
    for alias in statement.names:
        old = alias.evaluated_name
        home, _, name = new.get(old, f".{old}").rpartition(".")
        if name != old:
            bound = libcst.AsName(libcst.Name(alias.evaluated_alias or old))
            asname = None if alias.evaluated_alias == name else bound
            alias = alias.with_changes(name=libcst.Name(name), asname=asname)
        groups.setdefault(home, []).append(alias)
    split = []
    for home, aliases in ((home, each) for home, each in groups.items() if each):
        comma = aliases[-1].comma  # with what stood between the name and the next one, or the parenthesis
        if isinstance(comma, libcst.Comma) and comma is not statement.names[-1].comma:
            between, none = comma.whitespace_after, libcst.SimpleWhitespace("")
            if isinstance(between, libcst.ParenthesizedWhitespace):
                between = between.with_changes(last_line=none)
            else:
                between = none
            aliases[-1] = aliases[-1].with_changes(comma=comma.with_changes(whitespace_after=between))
        module = libcst.parse_expression(home) if home else statement.module
        split.append(tree.code_for_node(statement.with_changes(module=module, names=aliases)))
    return split


def _renamed(alias: re.Match[str], new: dict[str, str]) -> str:
    """An alias under its new name, still bound to what it was."""
    old = alias["name"]
    name = new.get(old, old).rpartition(".")[2] if old else old
    if name == old:
        return alias[0]
    return name if name == alias["asname"] else name + (alias["bound"] or f" as {old}")
