"""The regular expressions of rule packs: only those that cannot take long are taken.

A pack may come with the tree that is looked at, and Python's ``re`` tries every way in which an expression
can be fitted: ``(\\w+)+!`` takes years on a word of forty letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from migrator.language import _
from migrator.matchers.options import OptionError

EXPRESSION = {"expression": True}  # the metadata of an option that is one
LONGEST = 100  # characters of a text that are looked at
_MOST_WAYS = 20_000  # that is two repeats, one behind the other
_PARSER = "re._parser" if hasattr(re, "_parser") else "sre_parse"  # its name before Python 3.11


def check_expressions(options: Any) -> None:
    """Raises OptionError for an option that should be a regular expression, and is none or may take long."""
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            check_expressions(value)
        elif field.metadata.get("expression"):
            for text in (value,) if isinstance(value, str) else value:
                check_expression(field.name, text)


def check_expression(name: str, text: str) -> None:
    """Raises OptionError for a text that is no regular expression, or may take long."""
    try:
        ways = _ways(import_module(_PARSER).parse(text))
    except (re.error, OverflowError, RecursionError) as error:
        said = _("{name!r}: {text!r} is no regular expression: {error}", name=name, text=text, error=error)
        raise OptionError(name, said) from None
    if ways > _MOST_WAYS:
        about = {
            "name": name,
            "text": text,
            "advice": _("repeat only single characters and sets of them, at most two in a row"),
        }
        said = _("{name!r}: the regular expression {text!r} may take too long: {advice}", **about)
        raise OptionError(name, said)


def _ways(items: Iterable[tuple[Any, Any]]) -> int:
    """In how many ways a parsed expression fits a text at one place, at most; very many are cut."""
    ways = 1
    for operator, value in items:
        ways = min(ways * _ways_of(str(operator), value), _MOST_WAYS + 1)
    return ways


def _ways_of(operator: str, value: Any) -> int:
    if operator == "BRANCH":
        return sum(map(_ways, value[1]))
    if operator.endswith("_REPEAT"):
        least, most, inside = value
        most = min(int(most), LONGEST)
        inner = min(_ways(inside), _MOST_WAYS + 1)
        return sum(inner**times for times in range(min(int(least), most), most + 1))
    if operator in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        return _ways(value[-1])
    if operator == "ATOMIC_GROUP":
        return _ways(value)
    if operator == "GROUPREF_EXISTS":
        return sum(_ways(each) for each in value[1:] if each)
    return 1
