"""The options that the parsers of a program take: argparse's, click's, and those of known libraries."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Optional

from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name, elements, string_value

WORDS = frozenset({"add_argument", "option"})


@dataclass(frozen=True)
class Option:
    """An option of a program's parser; ``flag``: without a value. ``default`` is None where not plain.

    ``name`` is its long one, ``names`` are all. ``dest`` is the name of its value. ``call`` defines it.
    """

    name: str
    names: tuple[str, ...]
    dest: str
    flag: bool = False
    default: object = None
    choices: tuple[object, ...] = ()
    argparse: bool = True
    call: Optional[ast.Call] = field(default=None, compare=False)


def options(index: ModuleIndex) -> Iterator[Option]:
    """The options that a file's calls define."""
    for call in index.calls:
        if called_name(call) in WORDS:
            names = [name for name in map(string_value, call.args) if name and name.startswith("-")]
            if names:
                yield _option(call, names)


def _option(call: ast.Call, names: list[str]) -> Option:
    name = next((one for one in names if one.startswith("--")), names[0])
    plain = {one.arg: one.value for one in call.keywords if one.arg}
    action = string_value(plain.get("action")) or ""
    return Option(
        name,
        tuple(names),
        string_value(plain.get("dest")) or name.lstrip("-").replace("-", "_"),
        action == "store_true" or _is_true(plain.get("is_flag")),
        _value(plain.get("default")),
        tuple(_choices(plain.get("choices"), plain.get("type"))),
        called_name(call) == "add_argument",
        call,
    )


def _choices(offered: ast.expr | None, of_type: ast.expr | None) -> Iterable[object]:
    """What ``choices=[…]`` and ``type=click.Choice([…])`` offer, where that is plain."""
    if isinstance(of_type, ast.Call) and called_name(of_type) == "Choice" and of_type.args:
        offered = of_type.args[0]
    return (one.value for one in elements(offered) if isinstance(one, ast.Constant))


def _value(node: ast.expr | None) -> object:
    """What a literal stands for; None for anything else."""
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _is_true(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
