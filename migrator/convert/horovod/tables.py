"""What ``reports/distributed/horovod.yaml`` and ``horovod_helpers.py`` say."""

from __future__ import annotations

import ast
from typing import Any

from migrator.convert.texts import names_in, sources
from migrator.data_folders import reports_yaml
from migrator.language import N_, _
from migrator.names.tree import parse

PACKAGE = "horovod.torch"
_HELPERS = "horovod_helpers.py"


def table(name: str) -> Any:
    """One of the tables."""
    return reports_yaml("distributed/horovod.yaml")[name]


def advice(name: str) -> str:
    """What a person does about a name of Horovod's that has no equivalent."""
    by_hand: dict[str, str] = table("by_hand")
    first = name.split(".")[0]
    return " ".join(_(by_hand.get(first, "").strip() or N_("Write it with torch.distributed.")).split())


def helpers(names: set[str]) -> str:
    """The text of those helpers that have one of the names, with those that they use."""
    return sources(_HELPERS, names)


def imports(code: str) -> list[str]:
    """The imports that new code needs."""
    text = ast.unparse(parse(code))
    words = names_in(code)
    return [line for start, line in table("imports").items() if start[:-1] in words and start in text]


def import_order(line: str) -> int:
    """The place of an import among those that new code needs."""
    return list(table("imports").values()).index(line)
