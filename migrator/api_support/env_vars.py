"""The NPU equivalent of an environment variable for CUDA or NCCL."""

from __future__ import annotations

import re
from functools import cache

from migrator.api_support import tables
from migrator.api_support.tables import Version
from migrator.api_support.versions import newest
from migrator.language import _
from migrator.light import NamedTuple

ALLOCATOR_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


class EnvVar(NamedTuple):
    """One variable.

    ``npu`` is empty where no variable means the same. ``same_values`` says whether its values can stay; where
    they cannot, ``advice`` says why. ``values`` are the numbers that the NPU's variable takes, empty where it
    takes all that the other one does.
    """

    name: str
    npu: str
    same_values: bool
    values: tuple[int, ...]
    advice: str
    source: str

    @property
    def keeps_values(self) -> bool:
        """Whether it can be renamed where its value is not known; the allocator's is looked at by options."""
        return self.same_values or self.name in ALLOCATOR_VARIABLES

    def on_npus(self, differ: str = "") -> str:
        """What it is on NPUs, as the message of a finding."""
        if not self.npu:
            return _("{name} has no effect on NPUs", name=self.name)
        return _("{name} is {npu} on NPUs{differ}", name=self.name, npu=self.npu, differ=differ)

    def refuses(self, value: str | None) -> str:
        """That the NPU's variable does not take a value, as the message of a finding."""
        return _("{name}: {npu} does not take {value!r}", name=self.name, npu=self.npu, value=value)


class NpuVariable(NamedTuple):
    """A variable of HCCL, CANN or torch_npu, in words. ``hardware`` are product lines, where known."""

    name: str
    default: str
    values: str
    meaning: str
    hardware: tuple[str, ...]
    note: str
    source: str


@cache
def of_npu(name: str) -> NpuVariable | None:
    """The variable of that name that an NPU's software reads, or None where it is not known."""
    for _name, default, values, meaning, hardware, note, source in tables.grouped("npu_variables").get(
        name, ()
    ):
        return NpuVariable(name, default, values, _(meaning), tuple(hardware.split()), _(note), source)
    return None


def look_up(name: str) -> EnvVar | None:
    """The variable of that name, or None where it is not known."""
    return known().get(name)


def carries_over(variable: EnvVar, value: str, version: Version = ()) -> bool:
    """Whether a variable can be renamed with the ``value`` that it has."""
    return variable.keeps_values and not refused(variable, value, version)


def refused(variable: EnvVar, value: str, version: Version = ()) -> str:
    """What the NPU's variable does not take of a value; empty where it takes all of it, or nobody knows.

    ``version`` is that of torch, the newest one without it: torch_npu comes to know more of the allocator's
    options, of which some exclude each other, and it raises for what it does not know.
    """
    if value.startswith("$"):
        return ""
    if variable.name in ALLOCATOR_VARIABLES:
        return _refused_option(value.replace(" ", ""), version or newest().tuple)
    if variable.name == "CUDA_VISIBLE_DEVICES":  # a UUID or -1 means nothing on an NPU
        return "" if re.fullmatch(r"[\d, ]*", value) else value
    takes = not variable.values or (value.isdecimal() and int(value) in variable.values)
    return "" if takes else value


def _refused_option(value: str, version: Version) -> str:
    known = {option: rest for option, _first, _last, *rest in tables.rows_at("allocator_options", version)}
    given: list[str] = []
    for item in value.split(","):  # roundup_power2_divisions:[256:1,512:2] is one option
        if given and given[-1].count("[") > given[-1].count("]"):
            given[-1] += f",{item}"
        elif item:
            given.append(item)
    for item in given:
        name, _colon, what = item.partition(":")
        values, excludes, _source = known.get(name, ("", "", ""))
        if name not in known or not re.fullmatch(values, what):
            return item
        if excludes in given:
            return f"{item},{excludes}"
    return ""


@cache
def known() -> dict[str, EnvVar]:
    """Every CUDA-side variable that is known, by its name."""
    return {
        name: EnvVar(name, npu, same_values == "yes", numbers(values), _(advice), source)
        for name, npu, same_values, values, advice, source in tables.rows("env_vars")
    }


def numbers(cell: str) -> tuple[int, ...]:
    """What a cell such as ``5-24`` or ``0-252/4`` (every fourth) means; ValueError where it is neither."""
    if not cell:
        return ()
    span, _, step = cell.partition("/")
    first, _, last = span.partition("-")
    return tuple(range(int(first), int(last) + 1, int(step or 1)))
