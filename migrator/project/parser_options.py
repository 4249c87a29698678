"""The options that the parsers of a program take: those of argparse, click and absl.

Also their positional arguments, and which of them a word of a command is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Optional

from migrator.names.index import ModuleIndex
from migrator.names.tree import argument_of, called_name, elements, string_value

# absl's functions, whose first arguments are the name, the default and, of an enum, the choices.
_FLAGS = frozenset(f"DEFINE_{kind}" for kind in "string enum list integer float bool boolean".split())
WORDS = frozenset({"add_argument", "option", "argument", "add_subparsers", *_FLAGS})
_WITHOUT_VALUE = frozenset({"store_true", "store_false", "store_const", "count", "help", "version"})


@dataclass(frozen=True)
class Option:
    """An option of a program's parser; ``flag``: without a value. ``default`` is None where not plain.

    ``name`` is its long one, ``names`` are all. ``dest`` is the name of its value. ``call`` defines it,
    where its tree is at hand; ``span`` is the place of that. ``takes`` is how many words are its values, None
    where that depends on what is there.
    """

    name: str
    names: tuple[str, ...]
    dest: str
    flag: bool = False
    default: object = None
    choices: tuple[object, ...] = ()
    argparse: bool = True
    takes: Optional[int] = 1
    call: Optional[ast.Call] = field(default=None, compare=False)
    span: tuple[int, ...] = field(default=(), compare=False)


def options(index: ModuleIndex) -> Iterator[Option]:
    """The options that a file's calls define."""
    for call in index.calls:
        if called_name(call) in ("add_argument", "option"):
            names = [name for name in map(string_value, call.args) if name and name.startswith("-")]
            if names:
                yield _option(call, names)
        elif called_name(call) in _FLAGS and (name := string_value(argument_of(call, "name", 0))):
            yield _option(call, [f"--{name}", f"-{name}"])


def given_values(call: ast.Call) -> dict[str, ast.expr]:
    """What a call that defines an option says of its values: default, choices, const, type."""
    plain = {one.arg: one.value for one in call.keywords if one.arg}
    if called_name(call) in _FLAGS:
        plain |= dict(
            zip(("name", "default", "choices" if called_name(call) == "DEFINE_enum" else "help"), call.args)
        )
    return plain


def positionals(index: ModuleIndex) -> Iterator[Option]:
    """The positional arguments that a file's calls define, in the order of their calls."""
    for call in index.calls:
        name = string_value(call.args[0]) if len(call.args) == 1 else None
        if name and not name.startswith("-") and called_name(call) in ("add_argument", "argument"):
            yield _option(call, [name])


def place_of(words: Sequence[Optional[str]], wanted: int, known: Iterable[Option]) -> Optional[int]:
    """How many positional arguments stand before a word of a program's own; None where nobody knows.

    None also where the word is the value of an option. ``words`` are None where only a shell knows them.
    """
    by_name = {name: option for option in known for name in option.names}
    before, at = 0, 0
    while at < wanted:
        word = words[at]
        at += 1
        if word is None:
            return None
        if not word.startswith("-") or word == "-":
            before += 1
            continue
        name, sign, _ = word.partition("=")
        option = by_name.get(name)
        if option is None or option.takes is None:
            return None
        at += 0 if sign else option.takes
    return before if at == wanted else None


def _option(call: ast.Call, names: list[str]) -> Option:
    name = next((one for one in names if one.startswith("--")), names[0])
    plain = given_values(call)
    action, is_flag = string_value(plain.get("action")) or "", _value(plain.get("is_flag")) is True
    # choices=[…] and type=click.Choice([…]), where that is plain.
    offered, of_type = plain.get("choices"), plain.get("type")
    if isinstance(of_type, ast.Call) and called_name(of_type) == "Choice" and of_type.args:
        offered = of_type.args[0]
    number = _value(plain.get("nargs")) if "nargs" in plain else 1
    is_flag = is_flag or called_name(call).startswith("DEFINE_bool")
    takes = 0 if is_flag or action in _WITHOUT_VALUE else number
    return Option(
        name,
        tuple(names),
        string_value(plain.get("dest")) or name.lstrip("-").replace("-", "_"),
        action == "store_true" or is_flag,
        _value(plain.get("default")),
        tuple(one.value for one in elements(offered) if isinstance(one, ast.Constant)),
        called_name(call) == "add_argument",
        takes if isinstance(takes, int) else None,
        call,
        span_of(call),
    )


def span_of(call: ast.Call) -> tuple[int, ...]:
    """The lines and columns of a call."""
    return call.lineno, call.col_offset, call.end_lineno or 0, call.end_col_offset or 0


def _value(node: ast.expr | None) -> object:
    """What a literal stands for; None for anything else."""
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
