"""The versions that a project asks for of the libraries whose versions matter."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache

from migrator.api_support.library_defaults import Limits, libraries
from migrator.project.wanted_torch import SPECIFIED, limits_of


@cache
def wanted_libraries(requirements: tuple[str, ...]) -> Mapping[str, Limits]:
    """The limits for each library that a line of requirements, or of guides, asks for by a version."""
    named = re.compile(rf"(?<![\w.-])({_either(libraries())})(?:\[[\w, -]*\])?{SPECIFIED}", re.IGNORECASE)
    found: dict[str, Limits] = {}
    for line in requirements:
        for match in named.finditer(line.partition("#")[0]):
            found.setdefault(match[1].lower().replace("_", "-"), limits_of(match[2]))
    return found


def _either(names: Collection[str]) -> str:
    return "|".join(sorted(re.escape(name).replace(r"\-", "[-_]") for name in names))
