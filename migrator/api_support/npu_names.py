"""The NPU name of a CUDA name, and which names torch_npu itself has: ``torch.npu.NPUGraph``.

npu_names.csv has the NPU names. custom_ops.csv has torch_npu's operators and public classes with their
versions, wheel_names.csv what the modules of each wheel bind; of releases without a wheel npu_names.csv says
it, and mentioned_names.csv what these may have besides. Names are in the form ``torch_npu.npu.…``.
"""

from __future__ import annotations

import re
from functools import cache

from migrator.api_support import tables
from migrator.api_support.versions import TorchVersion, known
from migrator.language import N_, _, language
from migrator.light import NamedTuple

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


def look_up(cuda_name: str, version: TorchVersion) -> NpuName | None:
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


class Absence(NamedTuple):
    """A version does not have a name; ``first`` and ``last`` are the ends of the versions that have it.

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
    for module, name, _kind, first, last in tables.rows("wheel_names"):
        if module.startswith("torch_npu"):
            found.setdefault((module, name), []).append((first, last))
    return found
