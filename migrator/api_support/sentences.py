"""The verdict on a name in one sentence: what a program meets that uses it on an NPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from migrator.api_support import npu_names
from migrator.api_support.env_vars import EnvVar
from migrator.api_support.hardware import HARDWARE
from migrator.api_support.support import limit_words
from migrator.api_support.torch_names import of_version, short
from migrator.api_support.verdicts import Verdict, judge, word
from migrator.api_support.versions import TorchVersion

_UNCHANGED = {
    "works": "Works as it is.",
    "no_effect": "Does nothing on an NPU, and no harm.",
    "raises": "Raises: it has no NPU equivalent.",
}
# Of what a document leaves out, what programs use; the documents' words for it, and torch's.
_USED = {"fp64": "float64", "int64": "int64", "bool": "bool"}
_UNTRIED = {"fp16": "float16", "bf16": "bfloat16"}  # NPUs have them: a list without them says what was tried
_COMPLEX = {"complex64", "complex128"}
_RUNS = {
    "kernel": "though torch_npu has a kernel",
    "composite": "though the operators that it comes to have kernels",
    "python": "though it needs no operator",
    "source": "though its source comes to nothing that NPUs lack",
}


def sentence(name: str, version: TorchVersion) -> str:
    """The verdict on a name of torch or CUDA at a version: ``Works. float64 and complex do not.``"""
    names = of_version(version.text)
    absence = names.absence(name)
    if absence:
        return f"Not in torch {short(version.text)}: {absence}."
    form = npu_names.look_up(name, version)
    if form is not None and not form.npu:
        return _UNCHANGED.get(form.unchanged, "Has no NPU form.")
    if form is not None:
        return f"Use {form.npu}."
    verdict = judge(name, version)
    if word(name, version) == "partial":
        return _in_part(verdict)
    return of_verdict(verdict, version)


def of_verdict(verdict: Verdict, version: TorchVersion) -> str:
    """The sentence on a verdict that is not partial."""
    found = verdict.evidence
    if found is not None and found.kind == "area":
        return found.note
    if verdict.status == "supported":
        lacking = _left_out(verdict)
        if not lacking:
            return _works(verdict)
        verb = "does" if len(lacking) == 1 and lacking != ["complex"] else "do"
        return f"Works. {_listed(lacking)} {verb} not."
    if verdict.status == "fallback":
        of = f" for {found.lacking[0]}" if found is not None and found.lacking else ""
        release = ".".join(version.torch_npu.split(".")[:2])
        if verdict.kernel != "none":
            return "Runs on the CPU, as the documents say (slow)."
        if found is not None and found.note:
            return f"Runs on the CPU: {found.note}"
        return f"Runs on the CPU: no kernel{of} in torch_npu {release} (slow)."
    if verdict.status == "unsupported":
        return _unsupported(verdict, version)
    if verdict.status == "partial":
        return _in_part(verdict)
    return "Unknown: no document lists it, and neither its operators nor its source are known."


def of_operator(kind: str, version: TorchVersion) -> str:
    """The sentence on an operator, by what torch_npu registers for it."""
    release = ".".join(version.torch_npu.split(".")[:2])
    return {
        "kernel": f"Works: torch_npu {release} has a kernel.",
        "composite": "Works: torch builds it from other operators.",
        "fallback": f"Runs on the CPU: no kernel in torch_npu {release} (slow).",
        "none": f"Raises: no kernel in torch_npu {release}, and none on the CPU.",
    }.get(kind, "Unknown: it is in no list of operators.")


def of_variable(variable: Optional[EnvVar]) -> str:
    """The sentence on an environment variable; None is one that only an NPU's software has."""
    if variable is None or variable.npu == variable.name:
        return "Works: it is read on NPUs."
    if variable.npu:
        values = "can stay" if variable.same_values else "need a look"
        return f"Use {variable.npu}; its values {values}."
    return "No variable of an NPU means the same."


def _works(verdict: Verdict) -> str:
    found = verdict.evidence
    if found is None or found.kind == "executed":
        return "Works."
    if found.kind == "value":
        return "A module." if found.note == "module" else "A value: the same on every device."
    if found.kind == "core":
        return "Should work: a part of torch itself, without operators."
    return "Should work: its source comes to nothing that NPUs lack."


def _unsupported(verdict: Verdict, version: TorchVersion) -> str:
    found = verdict.evidence
    if verdict.documents == "unsupported" and found is not None and verdict.runs:
        return f"The documents call it unsupported, {_RUNS['source']}: try it."
    if found is not None and found.status == "unsupported":
        return f"Raises: {found.note or 'no kernel for ' + ', '.join(found.lacking)}."
    if verdict.kernel in _RUNS:
        return f"The documents call it unsupported, {_RUNS[verdict.kernel]}: try it."
    if verdict.kernel == "none" and not verdict.documents:
        return "Raises: there is no kernel for it, neither in torch_npu nor on the CPU."
    if verdict.kernel == "none":
        release = ".".join(version.torch_npu.split(".")[:2])
        return f"Runs on the CPU (slow), or raises: unsupported, and no kernel in torch_npu {release}."
    return "Unsupported, the documents say."


def _in_part(verdict: Verdict) -> str:
    if verdict.evidence is not None and verdict.evidence.note:
        return verdict.evidence.note
    words = [
        text for text in limit_words(verdict.limits) if not text.startswith(("no limit", "only the listed"))
    ]
    lacking = _left_out(verdict)
    dtypes = [f"not with {_listed(lacking)}"] if lacking else []
    untried = [
        name for key, name in _UNTRIED.items() if "fp32" in verdict.dtypes and key not in verdict.dtypes
    ]
    dtypes += [f"{_listed(untried)} {'is' if len(untried) == 1 else 'are'} not listed"] if untried else []
    return f"Works in part: {'; '.join([*dtypes, *words[:2]]) or 'only the listed dtypes'}."


def _left_out(verdict: Verdict) -> list[str]:
    """The dtypes that programs use and the document does not list for the main input."""
    listed = verdict.dtypes
    if "fp32" not in listed:
        return []
    integers = "int32" in listed
    words = [
        name
        for key, name in _USED.items()
        if key not in listed and (integers or key not in ("int64", "bool"))
    ]
    if not listed & _COMPLEX:
        words.insert(words.index("float64") + 1 if "float64" in words else 0, "complex")
    return words


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def by_product_line(name: str, version: TorchVersion) -> Iterator[tuple[str, str]]:
    """The product lines for which the documents say something else than for the others, and what."""
    plain = judge(name, version)
    for hardware in HARDWARE:
        there = judge(name, version, hardware)
        if there.status != plain.status:
            yield hardware, "not supported" if there.status == "unsupported" else "in part"
        elif there.left_out:
            yield hardware, f"not with {_listed(sorted(there.left_out))}"
