"""Verdicts on APIs, by what documents say, what torch_npu registers, and sources; and each in a sentence.

docs/analysis.md has the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from migrator.api_support import npu_names, support, tables, versions
from migrator.api_support.env_vars import EnvVar
from migrator.api_support.torch_names import of_version, short
from migrator.api_support.verdict_type import HARDWARE, IN_EVERY_CALL, Evidence, Verdict
from migrator.api_support.versions import TorchVersion
from migrator.language import N_, _

# What holds for every use of an API, whatever its arguments.
_ON_THE_CPU = frozenset({"cpu_only", "cpu_fallback_always"})
_ANY_USE = frozenset(
    "infer_only create_only compile_only high_risk use_npu_class returns_fp32 no_fused_optim".split()
)
# What a kernel says where no document does.
_BY_KERNEL = {"kernel": "supported", "composite": "supported", "none": "fallback", "python": "supported"}
_FLAT = ("torch.Tensor.", "torch.nn.functional.", "torch.")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # MaxPool2d is max_pool2d
_PREFIXED = ("torch.linalg.", "torch.fft.", "torch.special.")


# The product lines for which the documents tick what works. A1 is ticked beside a single API: elsewhere its
# absence says nothing, and only dtypes are listed for it.
_TICKED = frozenset(HARDWARE) - {"A1"}


@cache
def judge(api: str, version: TorchVersion, hardware: str = "") -> Verdict:
    """The verdict on a qualified name, for a product line where one is named.

    A name in no table has the status unknown.
    """
    if of_version(version.text).absent(api):
        return Verdict(api, "absent")
    found = support.look_up(api, version)
    if found is None:
        # No document lists it: executed, then its operators, then its source.
        composed, kernel = compose(api, version), _kernel("", api, version)
        if composed is not None and (not kernel or composed.kind in ("area", "executed")):
            return Verdict(api, composed.status, kernel=composed.kernel, evidence=composed)
        raises = any(support.registered(operator, version) == "none" for operator in _operators(api))
        status = "unsupported" if kernel == "none" and raises else _BY_KERNEL.get(kernel, "unknown")
        return Verdict(api, status, kernel=kernel)
    kernel = _kernel(found.kernel, found.api, version)
    main = [group for group in found.dtypes if ":" not in group]
    status = _status(found, kernel, version)
    undecided = status == "unknown" or (status == "unsupported" and not kernel)
    evidence = compose(api, version) if undecided else None
    if evidence is not None and status == "unknown":
        status, kernel = evidence.status, kernel or evidence.kernel
    left_out = differing = False
    if status in ("supported", "partial"):
        # A document ticks it for other product lines and not for this one; a limit is about this one.
        left_out = bool(found.hardware) and hardware in _TICKED and hardware not in found.hardware
        own = (limit.split("_")[1:] for limit in found.limits if limit.startswith("hw_"))  # hw_A1_A2
        differing = any(hardware in lines for lines in own)
    return Verdict(
        api=found.api,
        status="unsupported" if left_out else "partial" if differing else status,
        documents=found.status,
        asof=found.neighbour,
        kernel=kernel,
        limits=found.limits,
        dtypes=frozenset(main[0].split("+")) if "dtype" in found.limits and main else frozenset(),
        parameters=frozenset(limit[6:] for limit in found.limits if limit.startswith("param:"))
        - IN_EVERY_CALL,
        by_hardware=left_out or (differing and status == "supported"),
        ticked=found.hardware if left_out else (),
        left_out=_left_out_dtypes(hardware, found.dtypes) if hardware else frozenset(),
        evidence=evidence,
    )


def word(name: str, version: TorchVersion) -> str:
    """One word on a torch API or a CUDA name: a Verdict's status, or absent where there is no NPU equivalent.

    No call is seen here, so a limit that nearly every user meets makes it partial.
    """
    form = npu_names.look_up(name, version)
    if form is not None and not form.npu:
        return "absent"
    verdict = judge(name, version)
    if verdict.status == "supported" and verdict.limited:
        return "partial"
    return "supported" if form is not None and verdict.status == "unknown" else verdict.status


def basis(name: str, version: TorchVersion) -> str:
    """What an answer is known from: names, documents, operators, or its evidence's kind; '' of nothing."""
    if npu_names.look_up(name, version) is not None:
        return "names"
    verdict = judge(name, version)
    if verdict.evidence is not None:
        return verdict.evidence.kind
    return "documents" if verdict.documents else "operators" if verdict.kernel else ""


def _status(known: support.Support, kernel: str, version: TorchVersion) -> str:
    # A document that no longer lists an API takes nothing back and confirms nothing.
    last = tables.as_tuple(known.last) if known.neighbour and known.last else ()
    newer = (each for each in versions.known() if "docs" in each.evidence and last < each.tuple)
    outdated = bool(last) and any(each.tuple <= version.tuple for each in newer)
    runs = kernel == "python"  # seen to run, and needs nothing of an NPU
    if known.status == "unsupported" and not (outdated or runs):
        return "unsupported"
    if known.status in ("unsupported", "unknown"):
        return _BY_KERNEL.get(kernel, "unknown")
    if kernel == "none" or (not kernel and _ON_THE_CPU.intersection(known.limits)):
        return "fallback"
    return "partial" if _ANY_USE.intersection(known.limits) else "supported"


def _kernel(listed: str, api: str, version: TorchVersion) -> str:
    """What is registered for the operator behind an API; empty where it is none, or not known."""
    # The operator behind an API whose name does not show it; "yes" where it decides of a composite.
    _, by_hand, decides, _ = tables.grouped("by_hand/operators").get(api, [[""] * 4])[0]
    if listed == "composite" and decides:
        return support.kernel(by_hand, version)
    seen = executed(api, version)
    composed = "" if seen is None else "none" if seen.lacking else seen.kernel
    if listed:
        return composed if listed == "composite" and composed else listed
    for operator in [by_hand] if by_hand and not decides else _operators(api):
        found = support.kernel(operator, version)
        if found == "composite" and composed:
            return composed  # what torch builds it from was seen
        if found:
            return found
    return composed


def _operators(api: str) -> list[str]:
    """The names that an aten operator behind an API may have."""
    if api.startswith("torch.nn.") and api.count(".") == 2 and api[9:10].isupper():
        return [_HUMP.sub("_", api[9:]).lower()]
    for prefix in _PREFIXED:
        if api.startswith(prefix):
            # torch.special has other names for torch.i0, torch.digamma and the like.
            plain = [api[len(prefix) :]] if prefix == "torch.special." else []
            return [api[len("torch.") :].replace(".", "_"), *plain]
    for prefix in _FLAT:
        if api.startswith(prefix):
            name = api[len(prefix) :]
            return [name, name[:-1]] if name.endswith("_") else [name]
    return []


@cache
def is_module(name: str) -> bool:
    """Whether a dotted name is a module, because other APIs lie in it."""
    if any(part[:1].isupper() for part in name.split(".")):
        return False  # a class, or inside of one
    return any(tables.has_line(table, f"{name}.") for table in ("api_support", "aliases"))


@cache
def resolve(name: str, version: TorchVersion, hardware: str = "") -> Verdict | None:
    """The verdict on the API that a dotted name means; None for a module.

    A name may go on behind the API: ``torch.nn.Parameter.data`` is judged as the class, where the member
    has no entry of its own.
    """
    if is_module(name):
        return None
    verdict = judge(name, version, hardware)
    if verdict.documents or verdict.kernel or verdict.status == "absent":
        return verdict
    parent = name.rpartition(".")[0]
    while parent and not is_module(parent):
        other = judge(parent, version, hardware)
        if other.documents:
            return other
        parent = parent.rpartition(".")[0]
    return verdict


@cache
def tensor_methods() -> frozenset[str]:
    """The methods and attributes of tensors that the documents list at some version."""
    prefix = "torch.Tensor."
    lines = [line for table in ("api_support", "aliases") for line in tables.starting(table, prefix)]
    return frozenset(line[len(prefix) : line.index(",")] for line in lines)


def _left_out_dtypes(hardware: str, groups: Iterable[str]) -> frozenset[str]:
    """The dtypes that a document takes from one product line: excluded there, or listed for others only.

    ``groups`` is as in api_support.csv: ``@950DT!:fp64`` excludes, ``@A1:fp16+fp32`` lists.
    """
    excluded, here, elsewhere = set[str](), set[str](), set[str]()
    for group in groups:
        where, colon, dtypes = group.partition(":")
        if not colon or not where.startswith("@") or where.endswith("+"):
            continue
        is_named = hardware in where.strip("@!").split("+")
        if not where.endswith("!"):
            (here if is_named else elsewhere).update(dtypes.split("+"))
        elif is_named:
            excluded.update(dtypes.split("+"))
    return frozenset(excluded | (elsewhere - here if here else set()))


_DEEPEST = 6  # names that stand for one another


@cache
def of_area(api: str) -> Evidence | None:
    """What a person wrote of an API, or of the module that it lies in (by_hand/areas.csv)."""
    areas = tables.grouped("by_hand/areas")
    name, pattern = api, api
    while pattern not in areas and name:
        name = name.rpartition(".")[0]
        pattern = f"{name}.*"
    if pattern not in areas:
        pattern = next((each for each in areas if each.endswith("_*") and api.startswith(each[:-1])), "")
    if not pattern:
        return None
    return Evidence(areas[pattern][0][1], "area", True, note=areas[pattern][0][2])


@cache
def executed(api: str, version: TorchVersion) -> Evidence | None:
    """What the operators of an API say that was run with torch's samples (composed.csv)."""
    line = next(iter(tables.starting("composed", f"{api},")), "")
    if not line:
        return None
    always, sometimes, backward = (tuple(cell.split()) for cell in line.split(",")[1:4])
    lacking = support.lacking(always, version)
    perhaps, back = (tuple(support.lacking(each, version)) for each in (sometimes, backward))
    return Evidence(_by_operators(lacking), "executed", True, always, tuple(lacking), perhaps, back)


def _by_operators(lacking: Mapping[str, str]) -> str:
    """The status of an API by its operators without a kernel, each with fallback or none."""
    return "unsupported" if "none" in lacking.values() else "fallback" if lacking else "supported"


@cache
def read(api: str, version: TorchVersion) -> Evidence | None:
    """What the Python source of an API says (reached.csv), of the nearest version that was read."""
    rows = [line.split(",") for line in tables.starting("reached", f"{api},")]
    here = [row for row in rows if tables.covers(row[1], row[2], version.tuple)][:1]
    older = [row for row in rows if row[2] and tables.as_tuple(row[2]) < version.tuple][-1:]
    if not rows:
        return None
    how, always, sometimes = (here or older or rows)[0][3:]
    if how == "compiled":
        return Evidence("supported", "core", False)
    reached = always.split()
    operators = tuple(name for name in reached if "." not in name and ":" not in name)
    lacking = _without_kernel(operators, version)
    status, note = _by_operators(lacking), ""
    for name in reached:
        stops = _stops(name, version)
        if stops:
            status, note = stops
            lacking = {name: "none"}
            break
    perhaps = _without_kernel([name for name in sometimes.split() if ":" not in name], version)
    return Evidence(status, "source", False, operators, tuple(lacking), tuple(perhaps), note=note)


def _without_kernel(operators: Iterable[str], version: TorchVersion) -> dict[str, str]:
    """The operators, by the names of the functions that call them, that come to one without a kernel."""
    found = {}
    for name in operators:
        traced = next(filter(None, (executed(f"{home}{name}", version) for home in _HOMES)), None)
        kind = support.registered(name, version)
        if kind == "composite" and traced is not None:
            kind = {"fallback": "fallback", "unsupported": "none"}.get(traced.status, kind)
        if kind in ("fallback", "none"):
            found[name] = kind
    return found


_HOMES = ("torch.", "torch.nn.functional.", "torch.Tensor.")


def _stops(name: str, version: TorchVersion) -> tuple[str, str] | None:
    """Status and reason where a name in a source is of CUDA, or an operator of a library without NPUs."""
    if "::" in name:
        library = name.partition("::")[0]
        rows = tables.grouped("by_hand/areas").get(f"{library}::*")
        status, note = rows[0][1:3] if rows else ("supported", "")
        return (status, note.replace("{}", name)) if status != "supported" else None
    if "." not in name:
        return None
    form = npu_names.look_up(name, version)
    if form is None or form.npu or form.unchanged in ("works", "no_effect"):
        return None
    return "unsupported", f"it calls {name}, which has no NPU equivalent"


@cache
def compose(api: str, version: TorchVersion, depth: int = 0) -> Evidence | None:
    """The strongest evidence on a name of torch, torchvision or torchaudio at a version; None without any."""
    found = of_area(api) or executed(api, version) or read(api, version)
    if found is not None or depth > _DEEPEST:
        return found
    names = of_version(version.text)
    other = names.stands_for(api)
    if other:
        return compose(other, version, depth + 1)
    kind = names.kind(api)
    if kind in ("value", "module"):
        return Evidence("supported", "value", False, note=kind)
    owner = api.rpartition(".")[0]
    # A member of a class of torch's compiled part, such as those of TorchScript.
    above = read(owner, version) if kind and owner else None
    if above is not None and above.kind == "core":
        return Evidence("supported", "core", False)
    return None


_UNCHANGED = {
    "works": N_("Works unchanged."),
    "no_effect": N_("Has no effect on NPUs, and does no harm."),
    "raises": N_("Raises: it has no NPU equivalent."),
}
_RUNS = {
    "kernel": N_("though torch_npu has a kernel"),
    "composite": N_("though the operators that it uses have kernels"),
    "python": N_("though it needs no operator"),
    "source": N_("though its source uses only what NPUs support"),
}


def sentence(name: str, version: TorchVersion) -> str:
    """The verdict on a name of torch or CUDA at a version: ``Works. float64 and complex do not.``"""
    names = of_version(version.text)
    absence = names.absence(name)
    if absence:
        return _("Not in torch {text}: {absence}.", text=short(version.text), absence=absence)
    form = npu_names.look_up(name, version)
    if form is not None:
        unchanged = _(_UNCHANGED.get(form.unchanged, N_("Has no NPU equivalent.")))
        return _("Use {others}.", others=form.npu) if form.npu else unchanged
    verdict = judge(name, version)
    if word(name, version) != "partial":
        return of_verdict(verdict, version)
    if verdict.evidence is not None and verdict.evidence.note:
        return verdict.evidence.note
    words = support.limit_words(verdict.limits, ("no limit", "only the listed"))
    lacking = _left_out(verdict)
    dtypes = [_("not with {lacking}", lacking=_listed(lacking))] if lacking else []
    if verdict.untried:
        dtypes.append(_("{untried} not listed", untried=_listed(verdict.untried)))
    what = _("; ").join([*dtypes, *words[:2]]) or _("only the listed dtypes")
    return _("Partly supported: {what}.", what=what)


def of_verdict(verdict: Verdict, version: TorchVersion) -> str:
    """The sentence on a verdict that is not partial."""
    found = verdict.evidence
    if found is not None and found.kind == "area":
        return found.note
    if verdict.status == "supported":
        lacking = _left_out(verdict)
        if len(lacking) == 1 and lacking != ["complex"]:
            return _("Works. {lacking} does not.", lacking=_listed(lacking))
        if lacking:
            return _("Works. {lacking} do not.", lacking=_listed(lacking))
        if found is None or found.kind == "executed":
            return _("Works.")
        if found.kind == "value":
            return _("A module.") if found.note == "module" else _("A value: the same on every device.")
        if found.kind == "core":
            return _("Should work: part of torch itself, without operators.")
        return _("Should work: its source uses only what NPUs support.")
    if verdict.status == "fallback":
        of = _(" for {name}", name=found.lacking[0]) if found is not None and found.lacking else ""
        if verdict.kernel != "none":
            return _("Falls back to the CPU according to the documents (slow).")
        if found is not None and found.note:
            return _("Falls back to the CPU: {note}", note=found.note)
        said = N_("Falls back to the CPU: no kernel{of} in torch_npu {release} (slow).")
        return _(said, of=of, release=_line(version))
    if verdict.status == "unsupported":
        return _unsupported(verdict, version)
    return _("Unknown: not documented, and neither its operators nor its source are known.")


def of_operator(kind: str, version: TorchVersion) -> str:
    """The sentence on an operator, by what torch_npu registers for it."""
    release = _line(version)
    return {
        "kernel": _("Works: torch_npu {release} has a kernel.", release=release),
        "composite": _("Works: torch composes it from other operators."),
        "fallback": _("Falls back to the CPU: no kernel in torch_npu {release} (slow).", release=release),
        "none": _("Raises: no kernel in torch_npu {release} or on the CPU.", release=release),
    }.get(kind, _("Unknown: in no operator list."))


def of_variable(variable: EnvVar | None) -> str:
    """The sentence on an environment variable; None is one that only an NPU's software has."""
    if variable is None or variable.npu == variable.name:
        return _("Works: read on NPUs.")
    if not variable.npu:
        return _("No NPU variable has this meaning.")
    stay, look = N_("Use {npu}; the values stay the same."), N_("Use {npu}; check the values.")
    return _(stay if variable.same_values else look, npu=variable.npu)


def _line(version: TorchVersion) -> str:
    return ".".join(version.torch_npu.split(".")[:2])


def _unsupported(verdict: Verdict, version: TorchVersion) -> str:
    found = verdict.evidence
    if verdict.documents == "unsupported" and found is not None and verdict.runs:
        return _("Documented as unsupported, {runs}: test it.", runs=_(_RUNS["source"]))
    if found is not None and found.status == "unsupported":
        why = found.note or _("no kernel for {names}", names=", ".join(found.lacking))
        return _("Raises: {why}.", why=why)
    if verdict.kernel in _RUNS:
        return _("Documented as unsupported, {runs}: test it.", runs=_(_RUNS[verdict.kernel]))
    if verdict.kernel == "none" and not verdict.documents:
        return _("Raises: no kernel exists, in torch_npu or on the CPU.")
    if verdict.kernel == "none":
        said = N_(
            "Falls back to the CPU (slow), or raises: unsupported, and no kernel in torch_npu {release}."
        )
        return _(said, release=_line(version))
    return _("Documented as unsupported.")


def _left_out(verdict: Verdict) -> list[str]:
    """Those of the dtypes that programs use which the document does not list for the main input."""
    listed = verdict.dtypes
    if "fp32" not in listed:
        return []
    words = [] if "fp64" in listed else ["float64"]
    words += [] if listed & {"complex64", "complex128"} else ["complex"]
    return words + [name for name in ("int64", "bool") if "int32" in listed and name not in listed]


def _listed(words: list[str]) -> str:
    return _(" and ").join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def by_product_line(name: str, version: TorchVersion) -> Iterator[tuple[str, str]]:
    """The product lines for which the documents say something else than for the others, and what."""
    plain = judge(name, version)
    for hardware in HARDWARE:
        there = judge(name, version, hardware)
        if there.status != plain.status:
            yield hardware, _("not supported") if there.status == "unsupported" else _("in part")
        elif there.left_out:
            yield hardware, _("not with {left_out}", left_out=_listed(sorted(there.left_out)))
