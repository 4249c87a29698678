"""Which names torch_npu itself has at a version: ``torch.npu.NPUGraph``, ``torch_npu.npu_silu``.

custom_ops.csv has its operators and public classes with their versions, wheel_names.csv what the modules of
each wheel bind, npu_names.csv what stands for CUDA names in releases without a wheel, mentioned_names.csv
what these may have besides. Names are in the form ``torch_npu.npu.…``.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from migrator.api_support import tables
from migrator.api_support.versions import TorchVersion, known


class Absence(NamedTuple):
    """A version lacks a name; ``first`` and ``last`` are the ends of the versions that have it.

    Both are empty where none has it.
    """

    first: str = ""
    last: str = ""

    def later(self, version: TorchVersion) -> bool:
        """Whether it came after a version."""
        return bool(self.first) and tables.as_tuple(self.first) > version.tuple


def spelled(name: str) -> str:
    """The form in which the tables have a name of torch.npu."""
    return f"torch_npu.npu{name[len('torch.npu') :]}" if f"{name}.".startswith("torch.npu.") else name


def absence(name: str, version: TorchVersion) -> Absence | None:
    """The absence of a name from a version; None where the version has it, or that is not known."""
    there, has_wheel = releases_with(name), "wheel" in version.evidence
    if there:
        # Of a release without a wheel the tables have what its sources show, which may be less than there is.
        mentioned = tables.grouped("mentioned_names").get(name, ())
        is_read = "._" not in name and not any(version.text in versions.split() for _, versions in mentioned)
        if version.text in there or not (has_wheel or is_read):
            return None
        later = [each for each in there if tables.as_tuple(each) > version.tuple]
        # The first version behind this one; else the last before it.
        return Absence(later[0]) if later else Absence(last=there[-1])
    module, _, last = name.rpartition(".")
    if last.startswith("_") or not has_wheel:
        return None
    # No release has it, of which all would be known to have it: operators, and members of some modules.
    modules = {each for each, _ in _bound()}
    is_module = any(f"{each}.".startswith(f"{name}.") for each in modules)
    is_member = not is_module and module in modules and module in _COMPLETE
    is_operator = name.startswith("torch_npu.npu_")
    return Absence() if (module == "torch_npu" if is_operator else is_member) else None


def instead(name: str) -> str:
    """What the lists of torch_npu's operators say to use for a deprecated name: none where there is nothing.

    Empty for a name that is not deprecated.
    """
    return next((row[6] for row in tables.grouped("custom_ops").get(name, ()) if row[6]), "")


@cache
def releases_with(name: str) -> tuple[str, ...]:
    """The versions that have a name, oldest first."""
    module, _, last = name.rpartition(".")
    cuda = f"torch.npu{name[len('torch_npu.npu') :]}" if name.startswith("torch_npu.npu.") else ""
    rows = [*tables.grouped("custom_ops").get(name, ())]
    rows += tables.grouped("npu_names", 4).get(cuda, ()) if cuda else ()
    found = []
    for version in known():
        spans = [(row[1], row[2]) for row in rows]
        spans += _bound().get((module, last), ()) if "wheel" in version.evidence else ()
        if any(tables.covers(*span, version.tuple) for span in spans):
            found.append(version.text)
    return tuple(found)


# Modules whose names are all in wheel_names.csv, of those of which people take names.
_COMPLETE = frozenset({"torch_npu.npu", "torch_npu.npu.amp", "torch_npu.npu.memory", "torch_npu.npu.random"})


@cache
def _bound() -> dict[tuple[str, str], list[tuple[str, str]]]:
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for module, name, _, first, last in tables.rows("wheel_names"):
        if module.startswith("torch_npu"):
            found.setdefault((module, name), []).append((first, last))
    return found
