"""One verdict on an API from what the documents say and what torch_npu registers.

docs/analysis.md has the table.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, Optional

from migrator.api_support import npu_names, support, tables
from migrator.api_support.evidence import Evidence, compose, executed
from migrator.api_support.hardware import differs, is_left_out, left_out_dtypes
from migrator.api_support.torch_names import of_version
from migrator.api_support.versions import TorchVersion

# What holds for every use of an API, whatever its arguments.
_ON_THE_CPU = frozenset({"cpu_only", "cpu_fallback_always"})
_ANY_USE = frozenset(
    "infer_only create_only compile_only high_risk use_npu_class returns_fp32 no_fused_optim".split()
)
# What a kernel says where no document does.
_BY_KERNEL = {"kernel": "supported", "composite": "supported", "none": "fallback", "python": "supported"}
_FLAT = ("torch.Tensor.", "torch.nn.functional.", "torch.")
# What a user meets at once; other limits are remarks.
_MET = frozenset(
    "infer_only create_only compile_only no_backward no_dtype no_npu_dtype use_npu_class returns_fp32"
    " returns_int32 range shape"
    " ndim subset input_kind attr_subset kwargs_only device_str env needs_sparse no_varlen world_size"
    " cpu_fallback".split()
)
# Parameters that nearly every call names, whatever their limit is (torch.norm).
_IN_EVERY_CALL = {"dim"}
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # MaxPool2d is max_pool2d
_PREFIXED = ("torch.linalg.", "torch.fft.", "torch.special.")
# The documents' words for dtypes, and torch's. What NPUs lack as a rule are 64 bit floats and complex
# numbers; a product line may lack others.
_WIDE = {"fp64": "float64 double", "complex64": "complex64 cfloat", "complex128": "complex128 cdouble"}
_OTHER = {
    "fp32": "float32 float",
    "fp16": "float16 half",
    "bf16": "bfloat16",
    "uint8": "uint8",
    "int8": "int8",
    "int16": "int16 short",
    "int32": "int32 int",
    "int64": "int64 long",
    "bool": "bool",
}
_UNTRIED = {"fp16": "float16", "bf16": "bfloat16"}
_LISTED_AS = {name: word for word, names in {**_WIDE, **_OTHER}.items() for name in names.split()}
WIDE_DTYPES = frozenset(" ".join(_WIDE.values()).split())
DTYPES = frozenset(_LISTED_AS)


class Verdict(NamedTuple):
    """What is to say of an API at one torch version.

    ``status`` is supported, unsupported, fallback (runs on the CPU), partial (some limit holds for every
    use), absent (not in this torch) or unknown. ``documents`` is the document's word, empty where it lists no
    such API, ``asof`` the version whose document that is where it is another one. ``kernel`` is kernel,
    composite, none, python (it needs no operator) or empty (not known). ``dtypes`` are those of the main
    input, empty where all are allowed; ``parameters`` those that the document limits.

    Where the verdict is for a product line, ``by_hardware`` says that the status is its own; ``ticked`` are
    the others if the document leaves it out, ``left_out`` the dtypes that it takes from it.
    """

    api: str
    status: str
    documents: str = ""
    asof: str = ""
    kernel: str = ""
    limits: tuple[str, ...] = ()
    dtypes: frozenset[str] = frozenset()
    parameters: frozenset[str] = frozenset()
    by_hardware: bool = False
    ticked: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    evidence: Optional[Evidence] = None  # where neither the documents nor the operators of that name decide

    @property
    def limited(self) -> bool:
        """Whether a user meets one of the document's limits at once: an argument, a usual dtype."""
        codes = (limit.partition(":") for limit in self.limits)
        if any(code in _MET or (code == "param" and word not in _IN_EVERY_CALL) for code, _, word in codes):
            return True
        return bool(self.untried)

    @property
    def untried(self) -> list[str]:
        """The usual dtypes that a list of them is without: NPUs have them, so it says what was tried."""
        return [name for key, name in _UNTRIED.items() if "fp32" in self.dtypes and key not in self.dtypes]

    @property
    def runs(self) -> bool:
        """Whether it runs on an NPU by other evidence than the document, which calls it unsupported."""
        if "sparse" in self.api and self.kernel != "kernel":
            return False  # what torch builds sparse tensors from is there for other devices
        if self.kernel in ("kernel", "composite", "python") or "docs_untested" in self.limits:
            return True
        found = self.evidence
        return found is not None and found.status == "supported" and found.kind in ("executed", "source")

    @property
    def silent(self) -> bool:
        """Whether there is nothing to say, whatever the call looks like."""
        return self.status == "supported" and not (self.dtypes or self.parameters or self.left_out)

    def refuses(self, dtype: str) -> bool:
        """Whether the document leaves out a dtype, spelled as in ``torch.float64``, of the main input."""
        # Lists leave out what was not tried, and a list without float32 is about something else than the
        # result, such as indices.
        wide = dtype in WIDE_DTYPES and "fp32" in self.dtypes
        return self.lacks(dtype) or (wide and _LISTED_AS[dtype] not in self.dtypes)

    def lacks(self, dtype: str) -> bool:
        """Whether the document takes a dtype, spelled as in ``torch.float64``, from the product line."""
        return _LISTED_AS.get(dtype) in self.left_out


@cache
def judge(api: str, version: TorchVersion, hardware: str = "") -> Verdict:
    """The verdict on a qualified name, for a product line where one is named.

    A name in no table has the status unknown.
    """
    if of_version(version.text).absent(api):
        return Verdict(api, "absent")
    found = support.look_up(api, version)
    if found is None:
        return _undocumented(api, version)
    kernel = _kernel(found.kernel, found.api, version)
    main = [group for group in found.dtypes if ":" not in group]
    status = _status(found, kernel, version)
    undecided = status == "unknown" or (status == "unsupported" and not kernel)
    evidence = compose(api, version) if undecided else None
    if evidence is not None and status == "unknown":
        status, kernel = evidence.status, kernel or evidence.kernel
    left_out = differing = False
    if status in ("supported", "partial"):
        left_out = is_left_out(hardware, found.hardware)
        differing = differs(hardware, found.limits)
    return Verdict(
        api=found.api,
        status="unsupported" if left_out else "partial" if differing else status,
        documents=found.status,
        asof=found.neighbour,
        kernel=kernel,
        limits=found.limits,
        dtypes=frozenset(main[0].split("+")) if "dtype" in found.limits and main else frozenset(),
        parameters=frozenset(limit[6:] for limit in found.limits if limit.startswith("param:"))
        - _IN_EVERY_CALL,
        by_hardware=left_out or (differing and status == "supported"),
        ticked=found.hardware if left_out else (),
        left_out=left_out_dtypes(hardware, found.dtypes) if hardware else frozenset(),
        evidence=evidence,
    )


def _undocumented(api: str, version: TorchVersion) -> Verdict:
    """The verdict on a name that no document lists: executed, then its operators, then its source."""
    found, kernel = compose(api, version), _kernel("", api, version)
    if found is None or (kernel and found.kind not in ("area", "executed")):
        raises = any(support.registered(operator, version) == "none" for operator in _operators(api))
        status = "unsupported" if kernel == "none" and raises else _BY_KERNEL.get(kernel, "unknown")
        return Verdict(api, status, kernel=kernel)
    return Verdict(api, found.status, kernel=found.kernel, evidence=found)


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
