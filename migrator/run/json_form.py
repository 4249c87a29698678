"""Frozen dataclasses in a form that JSON can hold, for the cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Callable, TypeVar, Union, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind")


def to_json(value: Any) -> Any:
    """A dataclass as a list of its fields' values, a mapping as pairs, a set in order; for ``from_json``."""
    if is_dataclass(value):
        return [to_json(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return [[to_json(key), to_json(item)] for key, item in value.items()]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def from_json(kind: type[Kind], data: Any) -> Kind:
    """What ``to_json`` was given, by the types of the dataclasses' fields.

    They are read while the program runs: their modules import them, and Python 3.9 asks for Optional.
    """
    wanted: Any = kind  # to functools no type is hashable
    value: Kind = _reader(wanted)(data)
    return value


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        readers = [_reader(hints[field.name]) for field in fields(kind)]
        return lambda data: kind(*(read(item) for read, item in zip(readers, data)))
    if origin is Union:  # Optional
        some = _reader(inner[0])
        return lambda data: None if data is None else some(data)
    if origin is tuple and inner[-1] is not ...:
        readers = [_reader(item) for item in inner]
        return lambda data: tuple(read(item) for read, item in zip(readers, data))
    if origin is tuple or origin is frozenset:
        each = _reader(inner[0])
        return lambda data: origin(each(item) for item in data)
    if origin is Mapping:
        key, value = map(_reader, inner)
        return lambda data: {key(name): value(item) for name, item in data}
    return _same


def _same(data: Any) -> Any:
    return data
