"""Options of rules: from what a pack writes to the dataclass that a kind of rule declares.

Of regular expressions only those are taken that cannot take long: a pack may come with the tree that is
looked at, and Python's ``re`` tries every way in which one can be fitted. ``(\\w+)+!`` takes years on a word
of forty letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from migrator.field_types import field_types
from migrator.language import N_, _, did_you_mean

T = TypeVar("T")
SAID = {"said": True}  # the metadata of an option that people read: a text, or a mapping to texts
Scalar = Union[str, int, bool, None]  # it is evaluated, on Python 3.9 too
WORDS = {"words": True}  # the metadata of an option that lists words of a file
EXPRESSION = {"expression": True}  # the metadata of an option that is one
NEVER = r"(?!)"  # the expression that nothing fits
LONGEST = 100  # characters of a text that are looked at
_MOST_WAYS = 20_000  # that is two repeats, one behind the other
_PARSER = "re._parser" if hasattr(re, "_parser") else "sre_parse"  # its name before Python 3.11
_WORDS = {str: N_("a string"), bool: N_("true or false"), int: N_("a whole number")}


class OptionError(ValueError):
    """An option that a dataclass does not take; ``name`` is the option's."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


def typed(declared: type[T], values: Mapping[str, Any]) -> T:
    """The values as an object of a dataclass of texts, truth values, numbers, tuples and mappings of them.

    A single text may stand for a tuple of texts. Raises OptionError for a name that the dataclass does not
    have, a value of another type, and a field that is missing and whose metadata say ``required``. What their
    metadata call ``said`` is translated.
    """
    types = field_types(declared)  # type: ignore[arg-type]  # a class can be hashed
    for name in values:
        if name not in types:
            meant = did_you_mean(name, types)
            raise OptionError(name, _("unknown option {name!r}{name2}", name=name, name2=meant))
    for field in fields(declared):  # type: ignore[arg-type]  # only dataclasses are declared
        if field.name not in values and field.metadata.get("required"):
            raise OptionError(field.name, _("{name!r} is missing", name=field.name))
    given = {name: _value(name, types[name], value) for name, value in values.items()}
    for field in fields(declared):  # type: ignore[arg-type]
        if field.name in given and field.metadata.get("said"):
            given[field.name] = _said(given[field.name])
    return declared(**given)


def _said(value: Any) -> Any:
    """Texts in the language of the run."""
    if isinstance(value, dict):
        return {key: _said(each) for key, each in value.items()}
    return _(" ".join(value.split()))


def _value(name: str, wanted: Any, value: Any) -> Any:
    if wanted is Any or type(value) is wanted:
        return value
    origin, parts = get_origin(wanted), get_args(wanted)
    if is_dataclass(wanted) and isinstance(value, dict):
        try:
            return typed(wanted, value)  # type: ignore[arg-type]  # it is a class
        except OptionError as error:
            raise OptionError(name, f"{name}: {error}") from None
    if origin is tuple and isinstance(value, (str, list, tuple)):
        several = (value,) if isinstance(value, str) else value
        return tuple(_value(name, parts[0], item) for item in several)
    if origin is dict and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _value(name, parts[1], item) for key, item in value.items()}
    if (origin is Literal and value in parts) or (origin is Union and type(value) in parts):
        return value
    if origin is Literal:
        choices = ", ".join(map(repr, parts))
        said = _("{name!r} is one of {repr}, not {value!r}", name=name, repr=choices, value=value)
    else:
        said = _("{name!r} is {wanted}, not {value!r}", name=name, wanted=_described(wanted), value=value)
    raise OptionError(name, said)


def _described(wanted: Any) -> str:
    """A type in plain words."""
    parts = get_args(wanted)
    if get_origin(wanted) is Union:
        return " or ".join(_described(part) for part in parts if part is not type(None))
    if get_origin(wanted) is tuple:
        return _("a list, each item {parts}", parts=_described(parts[0]))
    return _(_WORDS.get(wanted, N_("a mapping")))


def check_expressions(options: Any) -> None:
    """Raises OptionError for a bad regular expression, and for words that no file can have."""
    for field in fields(options):
        value = getattr(options, field.name)
        if is_dataclass(value):
            check_expressions(value)
        elif field.metadata.get("words"):
            for word in value:
                if not re.fullmatch(r"\w+", word):
                    said = N_("{name!r}: {word!r} is not one word of letters, digits and _")
                    raise OptionError(field.name, _(said, name=field.name, word=word))
        elif field.metadata.get("expression"):
            for text in (value,) if isinstance(value, str) else value:
                check_expression(field.name, text)


def check_expression(name: str, text: str) -> None:
    """Raises OptionError for a text that is no regular expression, or may take long."""
    try:
        ways = _ways(import_module(_PARSER).parse(text))
    except (re.error, OverflowError, RecursionError) as error:
        said = _("{name!r}: {text!r} is not a regular expression: {error}", name=name, text=text, error=error)
        raise OptionError(name, said) from None
    if ways > _MOST_WAYS:
        advice = _("repeat only single characters and character sets, at most two in a row")
        said = N_("{name!r}: the regular expression {text!r} may take too long: {advice}")
        raise OptionError(name, _(said, name=name, text=text, advice=advice))


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
