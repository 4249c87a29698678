"""CUDA operators that many projects define, and what stands for them on NPUs: api_db/operators.csv."""

from __future__ import annotations

import re
from functools import cache
from typing import Optional

from migrator.api_support import tables
from migrator.language import _

# A row by its columns, of which docs/api_db.md has the meaning.
KnownOperator = dict[str, str]
_COLUMNS = "operator functions modules packages bundled equivalents differs limits backward hardware source"
# Of these the extension's name, or its file's, says more than their own.
_OF_A_MODULE = r"(?:run_)?(?:forward|backward|fwd|bwd)(?:_\w+)?"


@cache
def _table() -> list[KnownOperator]:
    return [dict(zip(_COLUMNS.split(), row)) for row in tables.rows("operators")]


@cache
def known_operator(function: str, place: str) -> Optional[KnownOperator]:
    """What a function is that an extension binds for Python; ``place`` has the names of module and file."""
    asked = (each for each in _table() if each["modules"] and re.search(each["modules"], place.lower()))
    by_module = next(asked, None)
    by_name = next((each for each in _table() if re.fullmatch(each["functions"], function)), None)
    return by_module if by_name is None or (by_module and re.fullmatch(_OF_A_MODULE, function)) else by_name


def equivalents_of(known: Optional[KnownOperator]) -> str:
    """What an operator is, and what stands for it on NPUs, in words; nothing for one that is not known."""
    if known is None:
        return ""
    said = [_("Operator: {operator}. NPU equivalents: {equivalents}", **known)]
    said += [_("arguments: {differs}", **known)] if known["differs"] else []
    said += [_("limits: {limits}", **known)] if known["limits"] else []
    said += [_("without backward")] if known["backward"] == "no" else []
    return "; ".join(said) + "."


@cache
def operators_of_libraries() -> dict[str, KnownOperator]:
    """The operators by the patterns of names that libraries have for them."""
    return {pattern: each for each in _table() for pattern in each["packages"].split()}
