"""Everything that the tables say of a name, for ``npumigrate api``."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Optional

from migrator.api_support import env_vars, npu_names, support, tables, verdicts
from migrator.api_support.env_vars import EnvVar
from migrator.api_support.versions import TorchVersion, known

# What programs import under short names.
_SHORT = {"F.": "torch.nn.functional.", "dist.": "torch.distributed.", "th.": "torch."}
_OPERATORS = ("aten::", "torch.ops.aten.")


@dataclass(frozen=True)
class Judged:
    """The verdict from one torch version to another: what documents and registered kernels say together."""

    first: str
    last: str
    verdict: str


@dataclass(frozen=True)
class Documented:
    """What the documents say from one torch version to another."""

    first: str
    last: str
    status: str
    hardware: tuple[str, ...]
    dtypes: tuple[str, ...]
    limits: tuple[str, ...]
    npu_name: str
    source: str


@dataclass(frozen=True)
class Form:
    """What a CUDA name becomes on an NPU from one torch version to another."""

    first: str
    last: str
    npu_name: str
    unchanged: str
    advice: str
    source: str


@dataclass(frozen=True)
class Registered:
    """What torch_npu registers for an operator from one torch version to another, and by which overloads."""

    first: str
    last: str
    kind: str
    overloads: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Own:
    """An API that only torch_npu has, from one torch version to another."""

    first: str
    last: str
    replaces: str
    replaces_source: str
    use_instead: str
    evidence: str


@dataclass(frozen=True)
class Answer:
    """What is known of one name. ``kind`` is api, cuda, own, npu, operator or environment."""

    name: str
    kind: str
    alias_of: str = ""
    member_of: str = ""  # the module whose entry holds for it, where it has none of its own
    nearest: tuple[str, ...] = ()  # then: names that look like it
    verdicts: tuple[Judged, ...] = ()
    forms: tuple[Form, ...] = ()
    documents: tuple[Documented, ...] = ()
    operator: str = ""
    registered: tuple[Registered, ...] = ()
    own: tuple[Own, ...] = ()
    affine: tuple[str, ...] = ()  # torch_npu's own APIs that documents name as its replacement
    perhaps: tuple[str, ...] = ()  # those of which only the names suggest it
    stands_for: tuple[str, ...] = ()  # CUDA names, or variables, of which this is the NPU form
    environment: Optional[EnvVar] = None


def look_up(asked: str) -> Optional[Answer]:
    """The answer on a name as a person writes it, or None where nothing is known of it.

    Takes qualified names, their beginnings left out (``Tensor.mode``,
    ``nn.Linear``, ``F.relu``), names of torch_npu, operators (``aten::add``,
    ``torch.ops.aten.add.Tensor``) and environment variables.
    """
    asked = asked.strip().removesuffix("()")
    if not asked:
        return None
    for operator in _OPERATORS:
        if asked.startswith(operator):
            return _operator(asked, asked[len(operator) :].partition(".")[0])
    for name in _readings(asked):
        found = _environment(name) or _torch(name) or _npu(name)
        if found:
            return found
    return None


def matching(pattern: str) -> list[str]:
    """Every known name that a pattern with ``*``, ``?`` or ``[…]`` fits, sorted."""
    private = re.search(r"(^|\.)_", pattern)
    for reading in _readings(pattern):
        found = [name for name in _names() if fnmatch.fnmatchcase(name, reading)]
        # torch.cuda.nvtx.* is asked for what programs use.
        found = found if private else [name for name in found if not re.search(r"\._(?!_)", name)] or found
        if found:
            return found
    return []


def nearest(asked: str, most: int = 5) -> list[str]:
    """Known names that look like what was asked, the likeliest first."""
    scored: dict[str, float] = {}
    for wanted in _readings(asked):
        last = wanted.rpartition(".")[2].lower()
        for name in _names():
            same = name.rpartition(".")[2].lower() == last
            if not same and abs(len(name) - len(wanted)) > 3:
                continue
            matcher = difflib.SequenceMatcher(None, name, wanted)
            if same or (matcher.real_quick_ratio() > 0.8 and matcher.quick_ratio() > 0.8):
                likeness = matcher.ratio() + (0.3 if same else 0)
                if likeness > 0.85:
                    scored[name] = max(likeness, scored.get(name, 0))
    return sorted(scored, key=lambda name: (-scored[name], name))[:most]


def _in_module(module: str, asked: str) -> tuple[str, ...]:
    """The names of a module that look like one that it has not."""
    start = f"{module}."
    members = [name[len(start) :] for name in _names() if name.startswith(start)]
    found = difflib.get_close_matches(asked[len(start) :], members, cutoff=0.75)
    return tuple(start + name for name in found)


def _readings(asked: str) -> list[str]:
    """The qualified names that a person may mean, the likeliest first."""
    found = [asked]
    found += [full + asked[len(short) :] for short, full in _SHORT.items() if asked.startswith(short)]
    if asked.startswith("torch_npu.npu."):
        found.append("torch.npu." + asked[len("torch_npu.npu.") :])
    if asked.startswith("torch.ops.npu."):
        found.append("torch_npu." + asked[len("torch.ops.npu.") :].partition(".")[0])
    if not asked.startswith(("torch.", "torch_npu.")):
        found += [f"torch.{asked}", f"torch_npu.{asked}"]
    return found


def _torch(name: str) -> Optional[Answer]:
    """A name of torch, or of torch_npu where the tables list it under that name."""
    forms, own = _forms(name), _own(name)
    alias = support.spelled(name)
    rows = _rows(name, alias)
    affine, perhaps = _affine(name, ("docs", "docs-affinity")), _affine(name, ("name",))
    if not (forms or rows or own or affine or perhaps):
        return None
    operator = next((row.aten for row in rows if row.aten), "")
    module = "" if rows else _module_of(name)
    return Answer(
        name=name,
        kind="cuda" if forms else "own" if own and not rows else "api",
        alias_of=alias,
        member_of=module,
        nearest=_in_module(module, name) if module else (),
        verdicts=_verdicts(name) if forms or rows else (),
        forms=forms,
        documents=tuple(_documented(row) for row in rows),
        operator=operator,
        registered=_registered(operator),
        own=own,
        affine=affine,
        perhaps=perhaps,
        stands_for=_cuda_names(name),
    )


def _module_of(name: str) -> str:
    """The module whose entry holds for a CUDA name without one of its own; '' for a member of a class.

    A class may have more members than the tables; of a module they have all.
    """
    owner = npu_names.entry(name)
    found = npu_names.look_up(owner, known()[-1]) if owner and owner != name else None
    return owner if found and found.kind == "module" else ""


def _verdicts(name: str) -> tuple[Judged, ...]:
    words: dict[str, tuple[str, ...]] = {v.text: (verdicts.word(name, v),) for v in known()}
    return tuple(Judged(first, last, word) for first, last, (word,) in _folded(words))


def _rows(name: str, alias: str) -> list[support.Row]:
    """The rows on a name, and on its other spelling those of the versions before and behind them."""
    rows = list(support.rows(name))
    if not rows:
        return list(support.rows(alias)) if alias else []
    start, end = rows[0].first, rows[-1].last
    for row in support.rows(alias) if alias else ():
        if end and row.first and tables.as_tuple(row.first) > tables.as_tuple(end):
            rows.append(row)
        elif start and row.last and tables.as_tuple(row.last) < tables.as_tuple(start):
            rows.insert(0, row)
    return rows


def _npu(name: str) -> Optional[Answer]:
    """A name of torch.npu that the tables know as the NPU form of CUDA names, or from wheels, only."""
    cuda_names = _cuda_names(name)
    module, _, last = re.sub(r"^torch\.npu\b", "torch_npu.npu", name).rpartition(".")
    # An open beginning means the oldest wheel.
    oldest = next(version.text for version in known() if "wheel" in version.evidence)
    own = tuple(
        Own(row[3] or oldest, row[4], "", "", "", "torch_npu wheels")
        for row in tables.rows("wheel_names")
        if row[0] == module and row[1] == last
    )
    return Answer(name, "npu", own=own, stands_for=cuda_names) if cuda_names or own else None


def _operator(asked: str, base: str) -> Optional[Answer]:
    registered = _registered(base)
    return Answer(asked, "operator", operator=base, registered=registered) if registered else None


def _environment(name: str) -> Optional[Answer]:
    found = env_vars.look_up(name)
    if found:
        return Answer(name, "environment", environment=found)
    stands_for = tuple(other for other in sorted(env_vars.names()) if _variable(other).npu == name)
    return Answer(name, "environment", stands_for=stands_for) if stands_for else None


def _variable(name: str) -> EnvVar:
    found = env_vars.look_up(name)
    assert found
    return found


def _documented(row: support.Row) -> Documented:
    # An open end means the oldest or the newest documents.
    documented = [version.text for version in known() if "docs" in version.evidence]
    return Documented(
        row.first or documented[0],
        row.last or documented[-1],
        row.status,
        tuple(row.hardware.split()),
        tuple(row.dtypes.split()),
        tuple(row.limits.split()),
        row.npu,
        row.source,
    )


def _forms(name: str) -> tuple[Form, ...]:
    values: dict[str, tuple[str, ...]] = {}
    for version in known():
        found = npu_names.look_up(name, version)
        if found:
            values[version.text] = (found.npu, found.unchanged, found.advice, found.source)
    return tuple(Form(first, last, *value) for first, last, value in _folded(values))


def _registered(operator: str) -> tuple[Registered, ...]:
    if not operator:
        return ()
    rows = [line.split(",") for line in support.kernel_lines(operator)]

    def value(version: TorchVersion) -> tuple[str, ...]:
        kind = support.registered(operator, version)
        here = [row for row in rows if tables.covers(row[1], row[2], version.tuple) and row[3] == kind]
        ops = sorted(row[0] for row in here if not row[0].endswith(".*"))
        return (kind, " ".join(ops), "; ".join(sorted({row[4] for row in here}))) if kind else ()

    values = {version.text: value(version) for version in known()}
    folded = _folded({version: value for version, value in values.items() if value})
    return tuple(
        Registered(first, last, kind, tuple(ops.split()), source)
        for first, last, (kind, ops, source) in folded
    )


def _folded(values: dict[str, tuple[str, ...]]) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    return tables.ranges(values, [version.text for version in known()])


def _own(name: str) -> tuple[Own, ...]:
    spelling = "torch_npu.npu." + name[len("torch.npu.") :] if name.startswith("torch.npu.") else name
    return tuple(
        Own(first, last, replaces, source, instead, evidence)
        for api, first, last, _, replaces, source, instead, evidence in _custom()
        if api == spelling
    )


def _affine(name: str, sources: tuple[str, ...]) -> tuple[str, ...]:
    """torch_npu's own APIs, the deprecated left out, that stand for a name as such sources say."""
    found = (row[0] for row in _custom() if name in row[4].split() and row[5] in sources and not row[6])
    return tuple(dict.fromkeys(found))


@cache
def _custom() -> list[list[str]]:
    return list(tables.rows("custom_ops"))


@cache
def _cuda_names(name: str) -> tuple[str, ...]:
    """The CUDA names whose NPU form a name is, at any version."""
    if not name.startswith(("torch.npu", "torch_npu.")):
        return ()
    return tuple(dict.fromkeys(row[0] for row in tables.rows("npu_names") if row[4] == name))


@cache
def _names() -> list[str]:
    found = {line.partition(",")[0] for line in tables.lines("api_support")}
    found |= {line.partition(",")[0] for line in tables.lines("aliases")}
    found |= npu_names.names() | env_vars.names() | {row[0] for row in _custom()}
    found |= {row[4] for row in tables.rows("npu_names") if row[4]}
    found |= {_variable(name).npu for name in env_vars.names()} - {""}
    return sorted(found)


@dataclass(frozen=True)
class AtVersion:
    """What holds of a name at one torch version; fields are empty where nothing is known.

    ``neighbour`` names the versions whose documents were used in place of the
    version's own. ``exists`` is about torch_npu's own APIs.
    """

    verdict: str
    is_cuda: bool
    npu_name: str
    unchanged: str
    advice: str
    status: str
    neighbour: str
    hardware: tuple[str, ...]
    dtypes: tuple[str, ...]
    limits: tuple[str, ...]
    registered: str
    overloads: tuple[str, ...]
    exists: bool
    own: Optional[Own]


def at_version(answer: Answer, version: TorchVersion) -> AtVersion:
    """Narrow an answer to one version."""
    form = npu_names.look_up(answer.name, version)
    known_support = support.look_up(answer.name, version) if answer.documents else None
    row = next((row for row in answer.registered if tables.covers(row.first, row.last, version.tuple)), None)
    held = next((own for own in answer.own if tables.covers(own.first, own.last, version.tuple)), None)
    return AtVersion(
        verdict=verdicts.word(answer.name, version) if answer.verdicts else "",
        is_cuda=bool(answer.forms),
        npu_name=form.npu if form else known_support.npu if known_support else "",
        unchanged=form.unchanged if form else "",
        advice=form.advice if form else "",
        status=known_support.status if known_support else "",
        neighbour=known_support.neighbour if known_support else "",
        hardware=known_support.hardware if known_support else (),
        dtypes=known_support.dtypes if known_support else (),
        limits=known_support.limits if known_support else (),
        registered=row.kind if row else "",
        overloads=row.overloads if row else (),
        exists=held is not None or bool(answer.stands_for and not answer.own),
        own=held or (answer.own[0] if answer.own else None),
    )
