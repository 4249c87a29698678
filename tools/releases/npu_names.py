"""api_db/npu_names.csv: the NPU name of every CUDA name, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Optional

from migrator.api_support import tables
from migrator.api_support.npu_names import EARLIER, IN_SIGHT, LATER, NO_EQUIVALENT, NOT_LOOKED_UP
from tools.releases import writing
from tools.releases.registered import names_by_version

# Private modules of torch.cuda that programs use; the others are torch's own business.
_PRIVATE_MODULES = ("torch.cuda._memory_viz", "torch.cuda._sanitizer", "torch.cuda._utils")
_PARENTS = ("torch.cuda", "torch.profiler", "torch.backends.cuda", "torch.backends.cudnn")

# Modules whose names torch.cuda offers as its own. torch.cuda.gds.is_available is another
# function than torch.cuda.is_available.
_SPREAD = ("torch.cuda.graphs", "torch.cuda.memory", "torch.cuda.random", "torch.cuda.streams")

_NO_EVIDENCE = "no evidence"

_Held = dict[str, dict[tuple[str, str], str]]


class ByHandError(ValueError):
    """A row that a person wrote cannot be read; the message has its file, its line and what to do."""


class _ByHand(NamedTuple):
    """A row of by_hand/npu_names.csv behind its name."""

    first: str  # the torch versions of the row, '' where an end is open
    last: str
    npu_name: str
    unchanged: str
    caveat: str  # yes: the advice is for those who use the NPU name, too
    advice: str
    source: str

    @property
    def is_stated(self) -> bool:
        """Whether it gives the NPU name for versions of its own: a person's word, which needs no wheel."""
        return bool(self.npu_name and (self.first or self.last))


# torch.cuda.os, torch.profiler.Any: no part of the module, and no use of a device.
_IN_SIGHT = _ByHand("", "", "-", "works", "", IN_SIGHT, "torch wheels")


class _Evidence(NamedTuple):
    """What names the NPU side has: by wheels, and by the sources where there is no wheel."""

    wheels: _Held
    before_wheels: dict[str, set[str]]  # torch version -> CUDA names with an NPU equivalent
    in_git: set[str]  # CUDA names that were looked up in the sources
    order: list[str]

    def sides(self, version: str) -> list[str]:
        """The versions before and behind one, if the wheels of both were read."""
        place = self.order.index(version)
        around = [*self.order[:place][-1:], *self.order[place + 1 :][:1]]
        return around if len(around) == 2 and all(side in self.wheels for side in around) else []


def derive(api_db: Path) -> None:
    """Write npu_names.csv from source_names.csv, the wheels' names and what was written by hand.

    Raises ValueError where a row by hand has a range of versions that is none.
    """
    writing.write_in(api_db, "npu_names", lines(api_db))


def lines(api_db: Path) -> list[tuple[str, ...]]:
    """The rows of npu_names.csv, as ``derive`` writes them."""
    evidence = _evidence(api_db)
    by_hand = _read_by_hand(api_db, evidence.order)
    cuda_names = _cuda_names(api_db)
    for name in by_hand:
        if not name.endswith(".*") and name not in cuda_names:
            inside = any(other.startswith(name + ".") for other in cuda_names)
            cuda_names[name] = "module" if inside else "value"
    return [line for name in sorted(cuda_names) for line in _lines(name, cuda_names[name], by_hand, evidence)]


def _lines(
    name: str, kind: str, by_hand: dict[str, list[_ByHand]], evidence: _Evidence
) -> Iterable[tuple[str, ...]]:
    # What was written by hand of the name, or else of all names of its module.
    module = name.rpartition(".")[0]
    written = by_hand.get(name, []) + by_hand.get(f"{module}.*", [])
    if kind == "import" and name not in by_hand:
        written = [_IN_SIGHT]
    hands = {
        version: next((row for row in written if tables.covers(row.first, row.last, number)), None)
        for version, number in zip(evidence.order, map(tables.as_tuple, evidence.order))
    }
    npu = {version: _npu_name(name, version, hand, evidence) for version, hand in hands.items()}
    sources = {version: _source(name, version, hand, evidence) for version, hand in hands.items()}
    values = {}
    for version, hand in hands.items():
        advice = _advice(hand, npu, version, sources[version])
        values[version] = npu[version], hand.unchanged if hand else "", advice
    for first, last, value in tables.ranges(values, evidence.order):
        inside = {sources[version] for version in writing.inside(first, last, evidence.order)}
        yield name, first, last, kind, *value, "; ".join(sorted(inside))


def _npu_name(name: str, version: str, hand: Optional[_ByHand], evidence: _Evidence) -> str:
    """The NPU name at a version, or '' where it has none."""
    if hand and hand.npu_name == "-":
        return ""
    if hand and hand.is_stated:
        return hand.npu_name
    # NPU names to try, each with the CUDA name under which the facts list it.
    tried: list[tuple[str, str]] = []
    if hand and hand.npu_name:
        tried.append((name, hand.npu_name))
    elif name.startswith("torch.cuda."):
        tried.append((name, name.replace("torch.cuda", "torch.npu", 1)))
        module, _, last = name.rpartition(".")
        if module in _SPREAD:
            # torch.cuda.memory.mem_get_info: torch_npu has the name one level up only.
            tried.append((f"torch.cuda.{last}", f"torch.npu.{last}"))
    return next((npu for cuda, npu in tried if _exists(cuda, npu, version, evidence)), "")


def _exists(name: str, npu_name: str, version: str, evidence: _Evidence) -> bool:
    if version in evidence.wheels:
        return _in_wheel(npu_name, evidence.wheels[version])
    known = evidence.before_wheels[version]
    if name in evidence.in_git:
        return name in known
    # The facts list functions and classes; a module is there when one of its names is.
    if any(other.startswith(name + ".") for other in known):
        return True
    # Neither a wheel nor a look into the sources: believe it where the wheels on both sides agree.
    sides = evidence.sides(version)
    return bool(sides) and all(_in_wheel(npu_name, evidence.wheels[side]) for side in sides)


def _in_wheel(npu_name: str, names: dict[tuple[str, str], str]) -> bool:
    if npu_name in ("torch.npu", "torch_npu.profiler"):
        return True
    module, _, last = re.sub(r"^torch\.npu\b", "torch_npu.npu", npu_name).rpartition(".")
    if (module, last) in names:
        return True
    # A member of an enumeration or class: its class is what the sources show.
    parent, _, class_name = module.rpartition(".")
    return names.get((parent, class_name), "module") != "module"


def _source(name: str, version: str, hand: Optional[_ByHand], evidence: _Evidence) -> str:
    if version in evidence.wheels or (hand and hand.is_stated):
        return hand.source if hand else "torch_npu wheels"
    if name in evidence.in_git:
        return "torch_npu sources"
    return "interpolated" if evidence.sides(version) else _NO_EVIDENCE


def _advice(hand: Optional[_ByHand], npu: dict[str, str], version: str, source: str) -> str:
    caveat = hand is not None and hand.caveat == "yes"
    if npu[version]:
        return hand.advice if hand and caveat else ""
    if hand and hand.advice and not caveat:
        return hand.advice
    held = [other for other in npu if npu[other]]
    if not held:
        return NO_EQUIVALENT
    if source == _NO_EVIDENCE:
        return NOT_LOOKED_UP.format(version=held[0], name=npu[held[0]])
    later = [other for other in held if tables.as_tuple(other) > tables.as_tuple(version)]
    if later:
        return LATER.format(name=npu[later[0]], version=later[0])
    return EARLIER.format(name=npu[held[-1]], version=held[-1])


def _evidence(api_db: Path) -> _Evidence:
    order = writing.order(api_db)
    wheels = {version: names for version, names in names_by_version(api_db, "torch_npu").items() if names}
    before: dict[str, set[str]] = {version: set() for version in order if version not in wheels}
    in_git = set()
    for name, _, looked_up, found_at in tables.rows("source_names", api_db):
        if looked_up == "yes":
            in_git.add(name)
        for version in found_at.split():
            if version in before:
                before[version].add(name)
    return _Evidence(wheels, before, in_git, order)


def _cuda_names(api_db: Path) -> dict[str, str]:
    """Every CUDA name that gets rows, with its kind: module, class, function or value."""
    found: dict[str, str] = {}
    imported = set()
    for names in names_by_version(api_db, "torch").values():
        for (module, name), kind in names.items():
            if kind == "import":
                imported.add(f"{module}.{name}")
            elif _of_interest(module, name):
                found[f"{module}.{name}"] = kind
    looked_at = list(tables.rows("source_names", api_db))
    for name, kind, _, _ in looked_at:
        if kind:
            found.setdefault(name, "import" if name in imported else kind)
    for name, kind, _, _ in looked_at:
        parent = name.rpartition(".")[0]
        # Methods follow their class; torch.nn.Module.xpu and torch.autocast have no CUDA in them.
        if not kind and name.startswith(_PARENTS) and found.get(parent, "module") == "module":
            found.setdefault(name, "value")
    return found


def _of_interest(module: str, name: str) -> bool:
    """Public names, and the private ones of torch.cuda; private modules only where programs use them."""
    if name.startswith("_") and (name.startswith("__") or not module.startswith("torch.cuda")):
        return False
    return module in _PRIVATE_MODULES or not any(part.startswith("_") for part in module.split("."))


def _read_by_hand(api_db: Path, order: Sequence[str]) -> dict[str, list[_ByHand]]:
    found: dict[str, list[_ByHand]] = {}
    for number, (name, *cells) in enumerate(tables.rows("by_hand/npu_names", api_db), 2):
        place = f"by_hand/npu_names.csv:{number}"
        if len(cells) != len(_ByHand._fields):
            raise ByHandError(f"{place}: {1 + len(cells)} cells, not {1 + len(_ByHand._fields)}")
        hand = _ByHand(*cells)
        for version in sorted({hand.first, hand.last} - {"", *order}):
            near = [each for each in order if each.startswith(f"{version}.")]
            advice = f"write {' or '.join(near)}" if near else "write one of them, or add a row"
            raise ByHandError(f"{place}: {name}: torch {version} is not in versions.csv: {advice}")
        found.setdefault(name, []).append(hand)
    return found
