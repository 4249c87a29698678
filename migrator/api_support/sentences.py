"""The verdict on a name in one sentence: what a program meets that uses it on an NPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from migrator.api_support import npu_names
from migrator.api_support.env_vars import EnvVar
from migrator.api_support.support import limit_words
from migrator.api_support.torch_names import of_version, short
from migrator.api_support.verdict_type import HARDWARE, Verdict
from migrator.api_support.verdicts import judge, word
from migrator.api_support.versions import TorchVersion
from migrator.language import N_, _

_UNCHANGED = {
    "works": N_("Works unchanged."),
    "no_effect": N_("Has no effect on NPUs and does no harm."),
    "raises": N_("Raises: it has no NPU equivalent."),
}
_RUNS = {
    "kernel": N_("though torch_npu has a kernel"),
    "composite": N_("though the operators that it uses have kernels"),
    "python": N_("though it needs no operator"),
    "source": N_("though its source uses nothing that NPUs lack"),
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
        return f"Use {form.npu}." if form.npu else unchanged
    verdict = judge(name, version)
    if word(name, version) != "partial":
        return of_verdict(verdict, version)
    if verdict.evidence is not None and verdict.evidence.note:
        return verdict.evidence.note
    words = limit_words(verdict.limits, ("no limit", "only the listed"))
    lacking = _left_out(verdict)
    dtypes = [_("not with {lacking}", lacking=_listed(lacking))] if lacking else []
    if verdict.untried:
        dtypes.append(_("{untried} not listed", untried=_listed(verdict.untried)))
    what = _("; ").join([*dtypes, *words[:2]]) or _("only the listed dtypes")
    return _("Works in part: {what}.", what=what)


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
            return "Works."
        if found.kind == "value":
            return _("A module.") if found.note == "module" else _("A value: the same on every device.")
        if found.kind == "core":
            return _("Should work: a part of torch itself, without operators.")
        return _("Should work: its source uses nothing that NPUs lack.")
    if verdict.status == "fallback":
        of = f" for {found.lacking[0]}" if found is not None and found.lacking else ""
        if verdict.kernel != "none":
            return _("Runs on the CPU according to the documents (slow).")
        if found is not None and found.note:
            return _("Runs on the CPU: {note}", note=found.note)
        said = N_("Runs on the CPU: no kernel{of} in torch_npu {release} (slow).")
        return _(said, of=of, release=_line(version))
    if verdict.status == "unsupported":
        return _unsupported(verdict, version)
    return _("Unknown: no document lists it, and neither its operators nor its source are known.")


def of_operator(kind: str, version: TorchVersion) -> str:
    """The sentence on an operator, by what torch_npu registers for it."""
    release = _line(version)
    return {
        "kernel": _("Works: torch_npu {release} has a kernel.", release=release),
        "composite": _("Works: torch builds it from other operators."),
        "fallback": _("Runs on the CPU: no kernel in torch_npu {release} (slow).", release=release),
        "none": _("Raises: no kernel in torch_npu {release}, and none on the CPU.", release=release),
    }.get(kind, _("Unknown: it is in no list of operators."))


def of_variable(variable: Optional[EnvVar]) -> str:
    """The sentence on an environment variable; None is one that only an NPU's software has."""
    if variable is None or variable.npu == variable.name:
        return _("Works: it is read on NPUs.")
    if not variable.npu:
        return _("No NPU variable means the same.")
    stay, look = N_("Use {npu}; its values can stay."), N_("Use {npu}; its values need a look.")
    return _(stay if variable.same_values else look, npu=variable.npu)


def _line(version: TorchVersion) -> str:
    return ".".join(version.torch_npu.split(".")[:2])


def _unsupported(verdict: Verdict, version: TorchVersion) -> str:
    found = verdict.evidence
    if verdict.documents == "unsupported" and found is not None and verdict.runs:
        return _("Unsupported according to the documents, {runs}: try it.", runs=_(_RUNS["source"]))
    if found is not None and found.status == "unsupported":
        why = found.note or _("no kernel for {names}", names=", ".join(found.lacking))
        return _("Raises: {why}.", why=why)
    if verdict.kernel in _RUNS:
        return _("Unsupported according to the documents, {runs}: try it.", runs=_(_RUNS[verdict.kernel]))
    if verdict.kernel == "none" and not verdict.documents:
        return _("Raises: there is no kernel for it, neither in torch_npu nor on the CPU.")
    if verdict.kernel == "none":
        said = N_("Runs on the CPU (slow), or raises: unsupported, and no kernel in torch_npu {release}.")
        return _(said, release=_line(version))
    return _("Unsupported according to the documents.")


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
