"""How well an API works on an NPU: the one type that look-ups give, and that findings carry.

A hook loads this module: the tables are elsewhere.
"""

from __future__ import annotations

from functools import cache
from typing import Optional

from migrator.light import NamedTuple

HARDWARE = ("A1", "A2", "A3", "950DT")
# What a user meets at once; other limits are remarks.
_MET = frozenset(
    "infer_only create_only compile_only no_backward no_dtype no_npu_dtype use_npu_class returns_fp32"
    " returns_int32 range shape"
    " ndim subset input_kind attr_subset kwargs_only device_str env needs_sparse no_varlen world_size"
    " cpu_fallback".split()
)
# Parameters that nearly every call names, whatever their limit is (torch.norm).
IN_EVERY_CALL = {"dim"}
# The documents' words for dtypes, and torch's. NPUs usually have no 64 bit floats and complex
# numbers; a product line may have fewer.
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


class Evidence(NamedTuple):
    """What follows for an API from other things than a document.

    ``kind`` is area (what a part of torch is about, by hand), executed (on an emulated NPU), source (its
    Python code was read), core (torch's compiled part, which is the same for all devices) or value.
    ``operators`` are what it comes to, ``lacking`` those of them that no NPU kernel is registered for, and
    ``sometimes`` and ``backward`` such as some arguments or the backward pass come to.
    """

    status: str
    kind: str
    certain: bool
    operators: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    sometimes: tuple[str, ...] = ()
    backward: tuple[str, ...] = ()
    note: str = ""

    @property
    def kernel(self) -> str:
        """The word that ``Verdict.kernel`` has for it."""
        if self.kind in ("area", "value") or self.status == "unsupported":
            return ""
        if self.status == "fallback":
            return "none"
        return "composite" if self.operators else "python"


class Verdict(NamedTuple):
    """What is to say of an API at one torch version.

    ``status`` is supported, unsupported, fallback (runs on the CPU), partial (some limit holds for every
    use), absent (not in this torch) or unknown. ``documents`` is the document's word, empty where it lists no
    such API, ``asof`` the version whose document that is where it is another one. ``kernel`` is kernel,
    composite, none, python (it needs no operator) or empty (not known). ``dtypes`` are those of the main
    input, empty where all are allowed; ``parameters`` those that the document limits.

    A rule that knows an API by its name gives a verdict of its own, with a status only.

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
    def documented(self) -> str:
        """The document's word, with the torch version whose document that is where it is another one."""
        return f"{self.documents} (torch {self.asof})" if self.asof else self.documents

    @property
    def limited(self) -> bool:
        """Whether a user meets one of the document's limits at once: an argument, a usual dtype."""
        codes = (limit.partition(":") for limit in self.limits)
        if any(code in _MET or (code == "param" and word not in IN_EVERY_CALL) for code, _, word in codes):
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
def of_rule(api: str, status: str) -> Optional[Verdict]:
    """The verdict of a rule that knows an API by its name; None without a status. Findings share it."""
    return Verdict(api, status) if status else None
