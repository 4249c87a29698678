"""Everything that the tables say of a name, for ``npumigrate api``."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import Any, Optional, TypeVar

from migrator.api_support import env_vars, npu_names, support, tables, torch_names, verdicts
from migrator.api_support.env_vars import EnvVar, NpuVariable
from migrator.api_support.versions import TorchVersion, known
from migrator.language import N_, _
from migrator.light import Frozen

# What programs import under short names.
_SHORT = {"F.": "torch.nn.functional.", "dist.": "torch.distributed.", "th.": "torch."}
_OPERATORS = ("aten::", "torch.ops.aten.")

Value = TypeVar("Value")


class Range(Frozen):
    """What holds from one torch version to another; an end that is '' is open."""

    first: str
    last: str


class Judged(Range):
    """The verdict: what documents and registered kernels say together."""

    verdict: str


class Documented(Range):
    """What the documents say."""

    status: str
    hardware: tuple[str, ...]
    dtypes: tuple[str, ...]
    limits: tuple[str, ...]
    npu_name: str
    source: str


class Form(Range):
    """What a CUDA name becomes on an NPU."""

    npu_name: str
    unchanged: str
    advice: str
    source: str


class Registered(Range):
    """What torch_npu registers for an operator, and by which overloads."""

    kind: str
    overloads: tuple[str, ...]
    source: str


class Own(Range):
    """An API that only torch_npu has."""

    replaces: str
    replaces_source: str
    use_instead: str
    evidence: str


class Answer(Frozen):
    """What is known of one name. ``kind`` is api, cuda, own, npu, operator or environment."""

    name: str
    kind: str
    alias_of: str = ""
    member_of: str = ""  # the module whose entry holds for it, where it has none of its own
    nearest: tuple[str, ...] = ()  # then: names that look like it
    verdicts: tuple[Judged, ...] = ()
    in_torch: tuple[Range, ...] = ()  # the versions that have it; none where that is not known
    forms: tuple[Form, ...] = ()
    documents: tuple[Documented, ...] = ()
    operator: str = ""
    registered: tuple[Registered, ...] = ()
    own: tuple[Own, ...] = ()
    affine: tuple[str, ...] = ()  # torch_npu's own APIs that documents name as its replacement
    perhaps: tuple[str, ...] = ()  # those of which only the names suggest it
    stands_for: tuple[str, ...] = ()  # CUDA names, or variables, of which this is the NPU equivalent
    environment: Optional[EnvVar] = None
    variable: Optional[NpuVariable] = None  # what HCCL, CANN or torch_npu read under that name


def look_up(asked: str) -> Optional[Answer]:
    """The answer on a name as a person writes it, or None where nothing is known of it.

    Takes qualified names, their beginnings left out (``Tensor.mode``, ``nn.Linear``, ``F.relu``), names of
    torch_npu, operators (``aten::add``, ``torch.ops.aten.add.Tensor``) and environment variables.
    """
    asked = asked.strip().removesuffix("()")
    if not asked:
        return None
    for operator in _OPERATORS:
        if asked.startswith(operator):
            base = asked[len(operator) :].partition(".")[0]
            registered = _registered(base)
            return Answer(asked, "operator", operator=base, registered=registered) if registered else None
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
        # Who looks up torch.cuda.nvtx.* wants what programs use.
        found = found if private else [name for name in found if not re.search(r"\._(?!_)", name)] or found
        if found:
            return found
    return []


def nearest(asked: str, most: int = 5) -> list[str]:
    """Known names that are similar to one that is not known, the likeliest first."""
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


def _readings(asked: str) -> list[str]:
    """The qualified names that a person may mean, the likeliest first."""
    found = [asked]
    found += [full + asked[len(short) :] for short, full in _SHORT.items() if asked.startswith(short)]
    if asked.startswith("torch_npu.npu."):
        found.append("torch.npu." + asked.removeprefix("torch_npu.npu."))
    if asked.startswith("torch.ops.npu."):
        found.append("torch_npu." + asked[len("torch.ops.npu.") :].partition(".")[0])
    if not asked.startswith(("torch.", "torch_npu.")):
        found += [f"torch.{asked}", f"torch_npu.{asked}"]
    return found


def _torch(name: str) -> Optional[Answer]:
    """A name of torch, or of torch_npu where the tables list it under that name."""
    custom = tables.grouped("custom_ops").get(re.sub(r"^torch\.npu\.", "torch_npu.npu.", name), ())
    forms, own = _forms(name), tuple(Own(*row[1:3], *row[4:]) for row in custom)
    alias = support.spelled(name)
    rows = _rows(name, alias)
    affine, perhaps = _affine(name, ("docs", "docs-affinity")), _affine(name, ("name",))
    in_torch = tuple(Range(first, last) for first, last in torch_names.spans(name))
    if not (forms or rows or own or affine or perhaps or in_torch):
        return None
    operator = next((row.aten for row in rows if row.aten), "")
    module = "" if rows else _module_of(name)
    start = f"{module}."
    members = [each.removeprefix(start) for each in _names() if each.startswith(start)] if module else []
    similar = difflib.get_close_matches(name.removeprefix(start), members, cutoff=0.75)
    judged = known() if forms or rows or in_torch else ()
    words = {version.text: verdicts.word(name, version) for version in judged}
    documented = [version.text for version in known() if "docs" in version.evidence]
    return Answer(
        name=name,
        kind="cuda" if forms else "own" if own and not rows else "api",
        alias_of=alias,
        member_of=module,
        nearest=tuple(start + each for each in similar),
        verdicts=tuple(Judged(*row) for row in _folded(words)),
        in_torch=in_torch,
        forms=forms,
        documents=tuple(
            # An open end means the oldest or the newest documents.
            Documented(
                row.first or documented[0],
                row.last or documented[-1],
                *(row.status, row.hardware, row.dtypes, row.limits, row.npu, row.source),
            )
            for row in rows
        ),
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


def _rows(name: str, alias: str) -> list[support.Support]:
    """The rows on a name, and on its other spelling those of the versions before and behind them."""
    rows, others = list(support.rows(name)), support.rows(alias)
    if not rows:
        return list(others)
    start, end = rows[0].first, rows[-1].last
    for row in others:
        if end and row.first and tables.as_tuple(row.first) > tables.as_tuple(end):
            rows.append(row)
        elif start and row.last and tables.as_tuple(row.last) < tables.as_tuple(start):
            rows.insert(0, row)
    return rows


def _npu(name: str) -> Optional[Answer]:
    """A name of torch.npu that the tables know as the NPU equivalent of CUDA names, or from wheels, only."""
    cuda_names = _cuda_names(name)
    module, _, last = re.sub(r"^torch\.npu\b", "torch_npu.npu", name).rpartition(".")
    # An open beginning means the oldest wheel.
    oldest = next(version.text for version in known() if "wheel" in version.evidence)
    own = tuple(
        Own(row[3] or oldest, row[4], "", "", "", "torch_npu wheels")
        for row in tables.rows("wheel_names")
        if row[:2] == [module, last]
    )
    return Answer(name, "npu", own=own, stands_for=cuda_names) if cuda_names or own else None


def _environment(name: str) -> Optional[Answer]:
    found, own = env_vars.look_up(name), env_vars.of_npu(name)
    stands_for = tuple(sorted(o.name for o in env_vars.known().values() if o.npu == name != o.name))
    if not (found or own or stands_for):
        return None
    return Answer(name, "environment", environment=found, variable=own, stands_for=stands_for)


def _forms(name: str) -> tuple[Form, ...]:
    found = ((version.text, npu_names.look_up(name, version)) for version in known())
    values = {text: (form.npu, form.unchanged, form.advice, form.source) for text, form in found if form}
    return tuple(Form(first, last, *value) for first, last, value in _folded(values))


def _registered(operator: str) -> tuple[Registered, ...]:
    values = {}
    for version in known():
        kind = support.registered(operator, version)
        if kind:
            every = tables.at(support.kernels(operator), version.tuple)
            covering = [row for row in every if row.kind == kind]
            ops = sorted(row.op for row in covering if not row.op.endswith(".*"))
            values[version.text] = kind, tuple(ops), "; ".join(sorted({row.source for row in covering}))
    return tuple(Registered(first, last, *value) for first, last, value in _folded(values))


def _folded(values: dict[str, Value]) -> Iterable[tuple[str, str, Value]]:
    return tables.ranges(values, [version.text for version in known()])


def _affine(name: str, sources: tuple[str, ...]) -> tuple[str, ...]:
    """torch_npu's own APIs, the deprecated left out, that stand for a name as such sources say."""
    return tuple(dict.fromkeys(own for own, source in _replacing().get(name, ()) if source in sources))


@cache
def _replacing() -> dict[str, list[tuple[str, str]]]:
    """By what they stand for: torch_npu's own APIs with the sources that say so, the deprecated left out."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in chain.from_iterable(tables.grouped("custom_ops").values()):
        for name in row[4].split() if not row[6] else ():
            found.setdefault(name, []).append((row[0], row[5]))
    return found


def _cuda_names(name: str) -> tuple[str, ...]:
    """The CUDA names whose NPU equivalent a name is, at any version."""
    if not name.startswith(("torch.npu", "torch_npu.")):
        return ()
    return tuple(dict.fromkeys(row[0] for row in tables.grouped("npu_names", 4).get(name, ())))


@cache
def _names() -> list[str]:
    found = {line.partition(",")[0] for table in ("api_support", "aliases") for line in tables.lines(table)}
    found |= set(torch_names.listed())
    found |= npu_names.names() | env_vars.known().keys() | tables.grouped("custom_ops").keys()
    found |= tables.grouped("npu_variables").keys() | tables.grouped("npu_names", 4).keys()
    found |= {other.npu for other in env_vars.known().values()}
    return sorted(found - {""})


def at_version(answer: Answer, version: TorchVersion) -> dict[str, Any]:
    """What holds of a name at one torch version, as the JSON has it; empty where nothing is known.

    ``sentence`` is the verdict in words, ``basis`` is as ``verdicts.basis`` has it. ``certain`` is seen,
    documented or registered, and not merely read in sources. Operators without an NPU kernel that it comes
    to are ``lacking``, those for some arguments ``sometimes``. ``product_lines`` are those of which the
    documents say something else, and what. ``absence``: of a name missing here, the torch that has it,
    ``neighbour`` which versions' documents were used in place of its own. ``exists`` is about torch_npu's.
    """
    name = answer.name
    form = npu_names.look_up(name, version)
    evidence = verdicts.judge(name, version).evidence
    listed = support.look_up(name, version) if answer.documents else None
    row = tables.first_at(answer.registered, version.tuple)
    own = tables.first_at(answer.own, version.tuple)
    kind, exists = row.kind if row else "", own is not None or bool(answer.stands_for and not answer.own)
    sentence, release = "", f"torch_npu {version.torch_npu}"
    if answer.verdicts:
        sentence = verdicts.sentence(name, version)
    elif answer.kind == "environment":
        sentence = verdicts.of_variable(answer.environment)
    elif answer.kind == "operator":
        sentence = verdicts.of_operator(kind, version)
    elif answer.kind in ("own", "npu"):
        said = N_("Works: {release} has it.") if exists else N_("Not in {release}.")
        sentence = _(said, release=release)
    return {
        "verdict": verdicts.word(name, version) if answer.verdicts else "",
        "sentence": sentence,
        "basis": verdicts.basis(name, version),
        "certain": evidence is None or evidence.certain,
        **{key: getattr(evidence, key, ()) for key in ("lacking", "sometimes", "backward")},
        "product_lines": tuple(verdicts.by_product_line(name, version)) if listed else (),
        "absence": torch_names.of_version(version.text).absence(name),
        "is_cuda": bool(answer.forms),
        "npu_name": form.npu if form else listed.npu if listed else "",
        **{key: getattr(form, key, "") for key in ("unchanged", "advice")},
        **{key: getattr(listed, key, "") for key in ("status", "neighbour")},
        **{key: getattr(listed, key, ()) for key in ("hardware", "dtypes", "limits")},
        "registered": kind,
        "overloads": row.overloads if row else (),
        "exists": exists,
        "own": own or next(iter(answer.own), None),
    }
