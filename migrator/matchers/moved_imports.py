"""Import statements that take names from their new place."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from types import MappingProxyType

from migrator.findings.finding import Edit
from migrator.matchers.npu_import import statement_separator
from migrator.names.index import ModuleIndex

_FROM_IMPORT = re.compile(r"(from[\s\\]+)([^\s\\].*?)(?<![\s\\])([\s\\]+import\b[\s\\]*)(.+)", re.DOTALL)
# What may stand between the words of an import in parentheses.
_GAP = r"(?:[\s\\]|#[^\r\n]*(?=[\r\n]|\Z))+"  # a comment goes to the end of its line in one way
# A comment, or an imported name and what binds it.
_ALIAS = re.compile(rf"#[^\r\n]*|(?P<name>\w+)(?P<bound>{_GAP}as{_GAP}(?P<asname>\w+))?")
_MODULE = re.compile(r"(?P<name>\w+(?:[\s\\]*\.[\s\\]*\w+)*)(?P<has_alias>[\s\\]+as[\s\\])?")


def import_form(name: str) -> str:
    """The spelling of an NPU name in an import.

    ``torch.npu`` is ``torch_npu.npu`` put into torch; importing a module below
    ``torch.npu`` by that name makes a second copy of the module (seen with
    torch_npu 2.13), so imports go to the package that owns it.
    """
    if name == "torch.npu" or name.startswith("torch.npu."):
        return "torch_npu" + name[len("torch") :]
    return name


def can_bind(index: ModuleIndex, node: ast.Import | ast.ImportFrom) -> bool:
    """Whether ``move_names`` can bind values in place of an import: it would lose comments between names."""
    return isinstance(node, ast.ImportFrom) and "#" not in index.segment(node)


def move_names(
    index: ModuleIndex,
    node: ast.Import | ast.ImportFrom,
    moved: dict[str, str],
    values: Mapping[str, str] = MappingProxyType({}),
) -> Edit:
    """The edit that imports ``moved`` (imported name to new qualified name) from its new place.

    What the statement binds stays bound to the same names; what is not moved
    stays imported as it was. Names of ``values`` are bound to these expressions.
    """
    source = index.segment(node)
    new = {name: import_form(target) for name, target in moved.items()}
    if values:
        return Edit(index.start(node), index.end(node), _with_values(index, node, new, values))
    if isinstance(node, ast.Import):
        text = _MODULE.sub(lambda match: _renamed_module(match, new), source)
    else:
        text = statement_separator(index, node).join(_moved_from_import(source, new))
    return Edit(index.start(node), index.end(node), text)


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
    return statement_separator(index, node).join(statements)


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
        return [start + homes[0] + middle + _ALIAS.sub(lambda match: _renamed(match, new), names)]
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
