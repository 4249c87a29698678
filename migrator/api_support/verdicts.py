"""One verdict on an API from what the documents say and what torch_npu registers.

docs/analysis.md has the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from migrator.api_support import npu_names, support, tables
from migrator.api_support.evidence import compose, executed
from migrator.api_support.torch_names import of_version
from migrator.api_support.verdict_type import HARDWARE, IN_EVERY_CALL, Verdict
from migrator.api_support.versions import TorchVersion

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
    outdated = bool(known.neighbour) and "docs" in version.evidence
    runs = kernel == "python"  # seen to run, with nothing that an NPU could lack
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
