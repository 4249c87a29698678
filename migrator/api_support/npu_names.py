"""The NPU name of a CUDA name."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, Optional

from migrator.api_support import tables
from migrator.api_support.versions import TorchVersion
from migrator.language import N_, _, language

# The advice that is derived; all other is written by hand.
NO_EQUIVALENT = N_("torch_npu has no equivalent of this name.")
NOT_LOOKED_UP = N_("No data for this torch_npu; the one for torch {version} has {name}.")
LATER = N_("torch_npu has {name} from torch {version} on, not in this version.")
EARLIER = N_("torch_npu had {name} up to torch {version}.")
IN_SIGHT = N_("It can stay, or be imported from its original module.")


class NpuName(NamedTuple):
    """What stands for a CUDA name on an NPU at one torch version.

    ``npu`` is empty where nothing does; ``advice`` says then what to do. Beside an NPU name, advice says how
    that name behaves differently. ``unchanged`` says what the CUDA name itself does on a machine with an NPU:
    works | no_effect | raises, empty when not tried.
    """

    npu: str
    advice: str
    source: str
    kind: str  # module | class | function | value | import
    unchanged: str


def look_up(cuda_name: str, version: TorchVersion) -> Optional[NpuName]:
    """The NPU equivalent of a qualified name, or None where the name is not known.

    A member of a class (torch.cuda.Event.record) follows its class unless it
    has a row of its own; a name in a module without an NPU equivalent follows the module.
    """
    name = entry(cuda_name)
    if not name:
        return None
    # The rows of a name cover every known version, oldest first; in other folders of tables they may not.
    rows = (row for row in tables.grouped("npu_names")[name] if tables.covers(row[1], row[2], version.tuple))
    if (row := next(rows, None)) is None:
        return None
    _name, _first, _last, kind, npu, unchanged, advice, source = row
    found = NpuName(npu, _said(advice), source, kind, unchanged)
    members = cuda_name[len(name) :]
    if not members:
        return found
    if found.kind in ("function", "import") or (found.kind == "module" and found.npu):
        # A function has no members to follow it; and a module that an NPU has would
        # have the name in the table if the name were known.
        return None
    return found._replace(npu=found.npu and found.npu + members)


def entry(cuda_name: str) -> str:
    """The name with rows that decides of a CUDA name: itself, or the class or module that it is in; or ''."""
    table, name = tables.grouped("npu_names"), cuda_name
    while name and name not in table:
        name = name.rpartition(".")[0]
    return name


@cache
def names() -> frozenset[str]:
    """Every CUDA name with a row of its own."""
    return frozenset(tables.grouped("npu_names"))


def _said(advice: str) -> str:
    """Advice in the language of the run."""
    if language() == "en":
        return advice
    for derived in (NOT_LOOKED_UP, LATER, EARLIER):
        pattern = re.escape(derived).replace(r"\{version\}", r"(?P<version>\S+)")
        found = re.fullmatch(pattern.replace(r"\{name\}", r"(?P<name>\S+)"), advice)
        if found:
            return _(derived, **found.groupdict())
    return _(advice)
