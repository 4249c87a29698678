"""The types of a record's fields, and records in a form that JSON can hold."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Callable, Literal, Optional, TypeVar, Union, get_args, get_origin

Made = TypeVar("Made")
_PLAIN, _LISTS = (str, int, bool), (list, tuple)
# Thousands of fields ask: to compare types of typing calls code of its own.
_PLAIN_ONES = frozenset(map(id, _PLAIN))
_READ_AS_IT_IS = _PLAIN_ONES | {id(Any)}


@cache
def field_types(record: Any) -> dict[str, Any]:
    """What ``typing.get_type_hints`` gives for a dataclass or a named tuple, in a fifth of its time.

    All annotations of a class are evaluated in one go: our modules keep them as strings, of which named
    tuples make references.
    """
    found: dict[str, Any] = {}
    for base in reversed(record.__mro__):
        written = _annotations(base)
        if written:
            texts = (each if isinstance(each, str) else each.__forward_arg__ for each in written.values())
            whole, names = f"({','.join(texts)},)", vars(sys.modules[base.__module__])
            found.update(zip(written, eval(whole, names)))  # nosec B307: annotations of our own records
    return found


def _annotations(base: type) -> dict[str, Any]:
    """A class's own annotations; before Python 3.10 the attribute is inherited, too."""
    own: dict[str, Any] = (
        getattr(base, "__annotations__", {})
        if sys.version_info >= (3, 10)
        else vars(base).get("__annotations__", {})
    )
    return own


def to_json(value: Any) -> Any:
    """A record as a list of its values, a set in order, a mapping as pairs where its keys are no text."""
    if is_dataclass(value):
        return [to_json(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: to_json(item) for key, item in value.items()}
        return [[to_json(key), to_json(item)] for key, item in value.items()]
    if isinstance(value, frozenset):
        return [to_json(item) for item in sorted(value)]
    return [to_json(item) for item in value] if isinstance(value, (list, tuple)) else value


def from_json(kind: type[Made], data: Any) -> Optional[Made]:
    """What ``to_json`` was given, by the types of the records' fields; None for data of another form.

    They are read while the program runs: their modules import them, and Python 3.9 asks for Optional.
    """
    try:
        return built(kind, data)
    except (_OtherFormError, TypeError):  # of a mapping a field may be missing
        return None


def built(record: type[Made], content: Any) -> Made:
    """A record from what JSON has of it by the names of its fields; other keys are left out."""
    wanted: Any = record  # to functools no type is hashable
    made: Made = _reader(wanted)(content)
    return made


def fits(value: Any, shape: Any) -> bool:
    """Whether what JSON holds has the types that it should: a type, or lists and mappings of them.

    A list of one shape is of any length, a tuple has a shape for each item; ``str`` as a key is any key.
    """
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        pairs = ((value.values() if key is str else [value.get(key)], each) for key, each in shape.items())
        return all(fits(item, each) for items, each in pairs for item in items)
    if isinstance(shape, (list, tuple)):
        shapes = shape if isinstance(shape, tuple) else shape * len(value) if isinstance(value, list) else ()
        return isinstance(value, list) and len(value) == len(shapes) and all(map(fits, value, shapes))
    return isinstance(value, shape)


class _OtherFormError(Exception):
    """Data that ``to_json`` has not given for a type."""


def _of(kinds: tuple[type, ...], data: Any) -> Any:
    """Data of one of some types; a bool is no int."""
    if type(data) not in kinds:
        raise _OtherFormError
    return data


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        types = field_types(kind)
        kinds = [*types.values()]
        readers = {name: _reader(each) for name, each in types.items() if id(each) not in _READ_AS_IT_IS}
        # Most fields are plain: to look at their types here takes half the time of a call for each.
        plain = [place for place, each in enumerate(kinds) if id(each) in _PLAIN_ONES]
        wanted = [kinds[place] for place in plain]
        others = [(place, readers[name]) for place, name in enumerate(types) if name in readers]

        def made(data: Any) -> Any:
            if type(data) is dict:
                given = {name: each for name, each in data.items() if name in types}
                return kind(**given | {name: readers[name](given[name]) for name in readers if name in given})
            values = [*_of(_LISTS, data)]
            if len(values) != len(kinds) or [type(values[place]) for place in plain] != wanted:
                raise _OtherFormError
            for place, read in others:
                values[place] = read(values[place])
            return kind(*values)

        return made
    if origin is Union:  # Optional
        some = _reader(inner[0])
        return lambda data: None if data is None else some(data)
    if origin is tuple and inner[-1] is not ...:
        return _row([_reader(item) for item in inner])
    if (origin is tuple or origin is frozenset) and inner[0] in _PLAIN:
        only = frozenset({inner[0]})

        def plain_items(data: Any) -> Any:
            if type(data) not in _LISTS or not only.issuperset(map(type, data)):
                raise _OtherFormError
            return origin(data)

        return plain_items
    if origin is tuple or origin is frozenset:
        each = _reader(inner[0])
        return lambda data: origin(map(each, _of(_LISTS, data)))
    if origin in (Mapping, dict):
        of_pair = _row([_reader(item) for item in inner])

        def mapping(data: Any) -> Any:
            pairs = data.items() if isinstance(data, dict) else _of((list,), data)
            return dict(map(of_pair, pairs))

        return mapping
    if origin is Literal:
        return lambda data: data if data in inner else _of((), data)
    return (lambda data: _of((kind,), data)) if kind in _PLAIN else (lambda data: data)


def _row(readers: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """A reader of a list with just these items."""

    def read_row(data: Any) -> Any:
        if len(_of(_LISTS, data)) != len(readers):
            raise _OtherFormError
        return tuple(read(item) for read, item in zip(readers, data))

    return read_row
