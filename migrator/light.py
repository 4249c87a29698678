"""Records that cost little to declare: a short run declares more classes than it makes objects of."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple

    from typing_extensions import dataclass_transform
else:
    dataclass_transform = lambda **_: lambda declared: declared  # noqa: E731 (it is for type checkers)

    class _Maker(type):
        def __new__(cls, name, bases, body):
            types = body["__annotations__"]
            defaults = [body.pop(each) for each in types if each in body]
            made = namedtuple(name, types, defaults=defaults, module=body["__module__"])
            for key, value in body.items():
                setattr(made, key, value)
            return made

    # typing's takes thrice as long: it makes a reference of each annotation.
    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})


@dataclass_transform(frozen_default=True)
class Declared:
    """Classes below it are dataclasses without methods of their own: to write these takes 0.7 ms a class.

    An object is equal to itself only, and can be a key.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *given: Any, **values: Any) -> None:
        names, defaults, makers = _fields_of(type(self))  # type: ignore[arg-type]  # it can be hashed
        values.update(zip(names, given))
        made = {name: make() for name, make in makers.items() if name not in values}
        vars(self).update(defaults, **made)
        vars(self).update(values)
        if len(vars(self)) != len(names):
            raise TypeError(f"{type(self).__name__} does not have just these fields: {', '.join(values)}")


@cache
def _fields_of(declared: Any) -> tuple[list[str], dict[str, Any], dict[str, Callable[[], Any]]]:
    """The names of the fields, the values of those that have a default, and what makes one."""
    every = fields(declared)
    values = {each.name: each.default for each in every if each.default is not MISSING}
    makers = {each.name: each.default_factory for each in every if each.default_factory is not MISSING}
    return [each.name for each in every], values, makers


class Frozen(Declared):
    """Such a record, equal to another one with the same values."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._values() == self._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        names = _fields_of(type(self))[0]  # type: ignore[arg-type]
        said = map("{}={!r}".format, names, self._values())
        return f"{type(self).__qualname__}({', '.join(said)})"

    def _values(self) -> tuple[Any, ...]:
        names = _fields_of(type(self))[0]  # type: ignore[arg-type]
        return tuple(map(vars(self).__getitem__, names))
