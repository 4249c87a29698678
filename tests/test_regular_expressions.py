"""No regular expression of ours takes time that grows faster than its text: each is tried on bad ones."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Callable, Union

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its new name is not there before Python 3.11
    import sre_parse

import migrator
from tests.timing import TooSlow, grows_evenly

_HOUSE = Path(migrator.__file__).parent
_LENGTH = 8_000
_MOST = 100
_USES = frozenset("search match fullmatch finditer findall split sub subn".split())
_Pattern = Union[re.Pattern[str], re.Pattern[bytes]]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no interval timer")


def _patterns() -> Iterator[tuple[str, _Pattern, set[str]]]:
    """The regular expressions in the sources: place, expression, and the methods that are called.

    A word stands for what is put into one at run time.
    """
    for path in sorted(_HOUSE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
        known = {ast.unparse(node.targets[0]): node.value for node in assigned}
        names = {node.value: name for node in assigned for name in [ast.unparse(node.targets[0])]}
        attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        of_others = {node.attr for node in attributes if ast.unparse(node.value) not in (*known, "re")} & (
            _USES - {"split"}
        )
        called = {node.value: node.attr for node in attributes}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not re.match(r"re\.\w+\Z", ast.unparse(node.func)):
                continue
            method = ast.unparse(node.func).removeprefix("re.")
            text = _value(node.args[0], known) if method in {*_USES, "compile"} else "word"
            if text == "word":
                continue
            flags = next(
                (each for each in node.args[1:] if re.search(r"\bre\.[A-Z]", ast.unparse(each))), None
            )
            flags = next((each.value for each in node.keywords if each.arg == "flags"), flags)
            number = eval(ast.unparse(flags), {"re": re}) if flags is not None else 0
            uses = {method}
            if method == "compile":
                uses = {called[node]} if node in called else set()
                uses |= set(re.findall(rf"\b{names[node]}\.(\w+)", source)) if node in names else set()
            yield f"{path.relative_to(_HOUSE)}:{node.lineno}", re.compile(text, number), uses or of_others


def _value(node: ast.expr, known: dict[str, ast.expr]) -> Any:
    """The text of an expression, with a word for what is no constant."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in known:
        return _value(known[node.id], known)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _value(node.left, known) + _value(node.right, known)
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.FormattedValue) else part for part in node.values)
        return "".join(_value(part, known) for part in parts)
    return "word"


def _examples(items: Any) -> list[str]:
    """Texts that a sequence of a parsed expression matches: few, and short."""
    made = [""]
    for operator, value in items:
        made = [before + after for before in made[:3] for after in _of_one(str(operator), value)[:3]]
    return made


def _of_one(operator: str, value: Any) -> list[str]:
    if operator == "LITERAL":
        return [chr(value)]
    if operator == "IN":
        return _of_class(value)
    if operator in ("ANY", "NOT_LITERAL"):
        return ["x", "-", " "]
    if operator in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, _, inside = value
        return [text * max(least, 1) for text in _examples(inside)] + ([""] if not least else [])
    if operator == "BRANCH":
        return [text for branch in value[1] for text in _examples(branch)[:1]]
    if operator == "SUBPATTERN":
        return _examples(value[-1])
    if operator == "ATOMIC_GROUP":
        return _examples(value)
    return [""]


def _of_class(items: Any) -> list[str]:
    tried = "aZ_0 \t\n-.:=,;/\\\"'()[]{}<>#@$&|*+!?%~^`\r"
    parsed = [(operator, value) for operator, value in items]
    text = []
    for operator, value in parsed:
        if str(operator) == "RANGE":
            text.append(chr(value[0]))
        elif str(operator) == "LITERAL":
            text.append(chr(value))
    if parsed and str(parsed[0][0]) == "NEGATE":
        barred = set(text)
        return [char for char in tried if char not in barred][:4]
    for operator, value in parsed:
        if str(operator) == "CATEGORY":
            text += {"CATEGORY_WORD": ["a"], "CATEGORY_DIGIT": ["0"], "CATEGORY_SPACE": [" ", "\t"]}.get(
                str(value), ["-"]
            )
    return text[:4]


def _inside(items: Any) -> Iterator[Any]:
    """The sequences of a parsed expression, the whole first."""
    yield items
    for operator, value in items:
        if str(operator) in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            yield from _inside(value[2])
        elif str(operator) == "BRANCH":
            for branch in value[1]:
                yield from _inside(branch)
        elif str(operator) == "SUBPATTERN":
            yield from _inside(value[-1])


def _attacks(pattern: _Pattern, most: int) -> Iterator[Callable[[int], str]]:
    """Long texts that begin as an expression wants, go on with a part of it, and end with what is not in it.

    Each can be made of any length. Of very many some are left out.
    """
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parsed = list(sre_parse.parse(text, pattern.flags & ~re.UNICODE & ~re.DEBUG))
    begins = {"", *(start for stop in range(1, len(parsed)) for start in _examples(parsed[:stop])[:2])}
    pieces: set[str] = set()
    for sequence in _inside(parsed):
        sequence = list(sequence)
        for start in range(len(sequence)):
            for stop in (start + 1, start + 2, len(sequence)):
                pieces.update(_examples(sequence[start:stop]))
    made = [*product(sorted(pieces - {""}), sorted(begins), ("\x01", "\n\x01"))]
    for piece, begin, end in made[:: len(made) // most + 1]:
        yield partial(_attack, begin, piece, end)


def _attack(begin: str, piece: str, end: str, length: int) -> str:
    return begin + piece * (length // len(piece)) + end


def _search(pattern: Any, text: str, uses: set[str]) -> None:
    """Try an expression on a text: at its start, or at each place where it is searched."""
    attack = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    anchored = uses & {"match", "fullmatch"} if uses & _USES <= {"match", "fullmatch"} else set()
    for use in anchored:
        getattr(pattern, use)(attack)
    for _ in pattern.finditer(attack) if not anchored else ():
        pass


def _slow(pattern: _Pattern, uses: set[str], most: int = _MOST) -> Iterator[str]:
    for make in _attacks(pattern, most):
        try:
            even = grows_evenly(lambda text: _search(pattern, text, uses), make, _LENGTH, hangs=10)
        except TooSlow:
            even = False
        if not even:
            yield f"{make(_LENGTH)[:40]!r} … {make(0)[-3:]!r}"


@pytest.mark.parametrize("most", [25, pytest.param(_MOST, marks=pytest.mark.thorough)])
def test_no_expression_is_slow(most: int) -> None:
    slow = {place: next(_slow(pattern, uses, most), "") for place, pattern, uses in _patterns()}
    assert [f"{place}: {text}" for place, text in slow.items() if text] == []


@pytest.mark.parametrize("expression", [r"x*y", r"\s+;", r"(?:a|b)*c|a*d"])
def test_slow_expressions_are_seen(expression: str) -> None:
    assert any(_slow(re.compile(expression), {"search"}))


@pytest.mark.parametrize("expression", [r"\[", r"\bcuda\b", r"a{1,20}b", r"^\s+;"])
def test_quick_expressions_are_not(expression: str) -> None:
    assert not any(_slow(re.compile(expression), {"search"}))
