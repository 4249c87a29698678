"""What the documents of torch_npu say of an API on one product line."""

from __future__ import annotations

from collections.abc import Iterable

HARDWARE = ("A1", "A2", "A3", "950DT")
# The product lines for which the documents tick what works. A1 is ticked beside a single API: elsewhere its
# absence says nothing, and only dtypes are listed for it.
_TICKED = frozenset(HARDWARE) - {"A1"}


def is_left_out(hardware: str, ticked: Iterable[str]) -> bool:
    """Whether a document ticks an API for other product lines and not for this one."""
    lines = set(ticked)
    return bool(lines) and hardware in _TICKED and hardware not in lines


def left_out_dtypes(hardware: str, groups: Iterable[str]) -> frozenset[str]:
    """The dtypes that a document takes from one product line: excluded there, or listed for others only.

    ``groups`` is as in api_support.csv: ``@950DT!:fp64`` excludes, ``@A1:fp16+fp32`` lists.
    """
    excluded: set[str] = set()
    here: set[str] = set()
    elsewhere: set[str] = set()
    for group in groups:
        where, colon, dtypes = group.partition(":")
        if not colon or not where.startswith("@") or where.endswith("+"):
            continue
        named = where.strip("@!").split("+")
        if where.endswith("!"):
            excluded.update(dtypes.split("+") if hardware in named else ())
        elif hardware in named:
            here.update(dtypes.split("+"))
        else:
            elsewhere.update(dtypes.split("+"))
    return frozenset(excluded | (elsewhere - here if here else set()))


def differs(hardware: str, limits: Iterable[str]) -> bool:
    """Whether one of the limits (``hw_950DT``, ``hw_A1_A2``) is about this product line."""
    return any(limit.startswith("hw_") and hardware in limit.split("_")[1:] for limit in limits)
