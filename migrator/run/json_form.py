"""Frozen dataclasses and named tuples in a form that JSON can hold, for the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Callable, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind")


def to_json(value: Any) -> Any:
    """A record as a list of its values, a set in order, a mapping as pairs where its keys are no text."""
    if is_dataclass(value):
        return [to_json(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: to_json(item) for key, item in value.items()}
        return [[to_json(key), to_json(item)] for key, item in value.items()]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def from_json(kind: type[Kind], data: Any) -> Kind:
    """What ``to_json`` was given, by the types of the records' fields.

    They are read while the program runs: their modules import them, and Python 3.9 asks for Optional.
    """
    wanted: Any = kind  # to functools no type is hashable
    value: Kind = _reader(wanted)(data)
    return value


def fits(kind: Any, data: Any) -> bool:
    """Whether data from JSON have the form in which ``to_json`` gives values of a type."""
    return _check(kind)(data)


@cache
def _check(kind: Any) -> Callable[[Any], bool]:
    origin, inner = get_origin(kind), get_args(kind)
    if names := _fields(kind):
        hints = get_type_hints(kind)
        return _row([_check(hints[name]) for name in names])
    if origin is Union:  # Optional
        some = _check(inner[0])
        return lambda data: data is None or some(data)
    if origin is Literal:
        return lambda data: isinstance(data, str) and data in inner
    if origin is tuple and inner[-1] is not ...:
        return _row([_check(item) for item in inner])
    if origin in (tuple, frozenset):
        each = _check(inner[0])
        return lambda data: isinstance(data, list) and all(map(each, data))
    if origin in (Mapping, dict):
        pair, value = _row([_check(item) for item in inner]), _check(inner[1])
        return lambda data: (
            all(map(value, data.values()))
            if isinstance(data, dict)
            else isinstance(data, list) and all(map(pair, data))
        )
    if kind in (str, int, bool):
        return lambda data: type(data) is kind
    return lambda data: True


def _fields(kind: Any) -> Sequence[str]:
    """The names of a record's fields; none of what is no record."""
    if is_dataclass(kind) and isinstance(kind, type):
        return [field.name for field in fields(kind)]
    return getattr(kind, "_fields", ())


def _row(checks: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    def fitting(data: Any) -> bool:
        if not isinstance(data, list) or len(data) != len(checks):
            return False
        return all(check(item) for check, item in zip(checks, data))

    return fitting


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if names := _fields(kind):
        hints = get_type_hints(kind)
        readers = [_reader(hints[name]) for name in names]
        reading = [(place, read) for place, read in enumerate(readers) if read is not _same]

        def made(data: Any) -> Any:
            values = list(data)
            for place, read in reading:
                values[place] = read(values[place])
            return kind(*values)

        return made
    if origin is Union:  # Optional
        some = _reader(inner[0])
        return lambda data: None if data is None else some(data)
    if origin is tuple and inner[-1] is not ...:
        readers = [_reader(item) for item in inner]
        return lambda data: tuple(read(item) for read, item in zip(readers, data))
    if origin is tuple or origin is frozenset:
        each = _reader(inner[0])
        return origin if each is _same else lambda data: origin(map(each, data))
    if origin is Mapping:
        key, value = map(_reader, inner)
        return lambda data: {
            key(name): value(item) for name, item in (data.items() if isinstance(data, dict) else data)
        }
    return _same


def _same(data: Any) -> Any:
    return data
