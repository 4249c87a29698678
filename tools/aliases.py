"""api_db/aliases.csv: other spellings of an API that the support table lists.

Run by itself, with a Python that has torch and torch_npu: ``python tools/aliases.py``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from migrator.api_support import tables
from migrator.data_folders import data_folder
from tools.releases import writing


def main() -> None:
    """Write aliases.csv for classes and functions that the installed torch has."""
    importlib.import_module("torch")
    listed: dict[str, bool] = {}
    for api, _, last, *_ in tables.rows("api_support"):
        listed[api] = listed.get(api, False) or not last
    lines: dict[str, str] = {}
    # APIs of the newest document come first: an alias leads to one spelling, the one in use.
    for api in sorted(listed, key=lambda name: (not listed[name], name)):
        found = _find(api)
        if isinstance(found, type) or callable(found):
            for alias in _spellings(found):
                if alias != api and _find(alias) is found:
                    lines.setdefault(alias, api)
    rows: list[Sequence[str]] = list(lines.items())
    writing.write_in(data_folder("api_db"), "aliases", rows)


def _spellings(thing: object) -> Iterator[str]:
    """Where it is defined, and every package above that which offers it."""
    module = getattr(thing, "__module__", None)
    name = getattr(thing, "__qualname__", "")
    if not isinstance(module, str) or not module.startswith("torch") or "." in name or not name:
        return
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        place = ".".join(parts[:length])
        if not any(part.startswith("_") for part in parts[:length]) and place in sys.modules:
            yield f"{place}.{name}"


def _find(api: str) -> object:
    """What a qualified name means, or None. Members of classes are left out."""
    module, _, name = api.rpartition(".")
    holder: ModuleType | None = sys.modules.get(module)
    return getattr(holder, name, None) if holder else None


if __name__ == "__main__":
    main()
