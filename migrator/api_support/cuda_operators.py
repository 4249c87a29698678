"""CUDA operators that many projects define, and what stands for them on NPUs: api_db/operators.csv."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple, Optional

from migrator.api_support import tables
from migrator.language import _

# Of these the extension's name, or its file's, says more than their own.
_OF_A_MODULE = re.compile(r"(?:run_)?(?:forward|backward|fwd|bwd)(?:_\w+)?")


class KnownOperator(NamedTuple):
    """One operator, as a row of the table has it.

    ``functions`` fits the functions that extensions bind for it; ``modules`` the names of extensions, or of
    files, whose ``forward`` and ``backward`` are it; ``packages`` are the names in libraries. ``bundled``:
    functions of ours for those of an extension (``theirs:ours`` where the names differ), and for those that
    ``libraries`` have by these names.
    """

    operator: str
    functions: str
    modules: str
    packages: str
    bundled: str
    libraries: str
    equivalents: str
    differs: str
    limits: str
    backward: str
    hardware: str
    source: str

    def ours(self, function: str) -> list[str]:
        """Functions of ours that may stand for one that an extension binds, or that a library has."""
        pairs = (pair.partition(":") for pair in self.bundled.split())
        return [own or theirs for theirs, _colon, own in pairs if theirs == function]

    def __str__(self) -> str:
        said = [_("Operator: {operator}. NPU equivalents: {equivalents}", **self._asdict())]
        said += [_("arguments: {differs}", **self._asdict())] if self.differs else []
        said += [_("limits: {limits}", **self._asdict())] if self.limits else []
        said += [_("without backward")] if self.backward == "no" else []
        return "; ".join(said) + "."


@cache
def known_operator(function: str, *places: str) -> Optional[KnownOperator]:
    """What a function is that an extension binds for Python; ``places`` are its module and its file."""
    table = [KnownOperator(*row) for row in tables.rows("operators")]
    around = " ".join(places).lower()
    by_module = next((each for each in table if each.modules and re.search(each.modules, around)), None)
    by_name = next((each for each in table if re.fullmatch(each.functions, function)), None)
    return by_module if by_name is None or (by_module and _OF_A_MODULE.fullmatch(function)) else by_name


def bundled_libraries() -> frozenset[str]:
    """The packages that have operators for which there are functions of ours."""
    return frozenset(pattern.partition(".")[0] for pattern in operators_of_libraries("libraries"))


@cache
def operators_of_libraries(column: Literal["packages", "libraries"] = "packages") -> dict[str, KnownOperator]:
    """The operators by the patterns of names that libraries have for them."""
    table = (KnownOperator(*row) for row in tables.rows("operators"))
    return {pattern: each for each in table for pattern in getattr(each, column).split()}
