"""A row of the insight tables, and what rows of all kinds are made of: tallies, texts, names of operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Optional

from migrator.api_support import support, tables, verdicts
from migrator.api_support.verdict_type import Verdict
from migrator.api_support.versions import TorchVersion
from migrator.data_folders import reports_yaml
from migrator.insight.recorded import Place, Record, Recorded, Sum
from migrator.language import _
from migrator.light import Frozen

_MODULES = ("torch.", "torch.nn.functional.", "torch.Tensor.", "torch.special.")
_OWN = re.compile(r"^(?:_native_|native_|_)|(?:_forward|_with_indices|_default|_impl|_)$")
_FIRST_LISTS = (2, 1)  # from here on a wheel lists every kernel that it registers
# Bytes of an element, for the types that matrix units compute with.
HALVES = ("Half", "BFloat16")
NOWHERE = Place("", 0, "")  # a row that no line of the project leads to


class Run(Frozen):
    """What was recorded, and for what it is judged: a torch version and a product line (``A2``).

    ``ran_with`` is the torch version that ran.
    """

    processes: tuple[Recorded, ...]
    version: TorchVersion
    hardware: str
    ran_with: TorchVersion


class Row(Frozen):
    """One thing at one place. ``effect`` sorts the rows of a kind, the largest first."""

    kind: str
    severity: str
    place: Place
    subject: str
    calls: int
    per_step: Optional[float]
    bytes: int
    message: str
    advice: str
    ranks: tuple[str, ...] = ()
    share: Optional[float] = None
    effect: float = 0.0
    more: dict[str, Any] = field(default_factory=dict)


@dataclass
class Tally:
    """What the ranks together have of one thing at one place: of each number the largest of a rank."""

    place: Place
    amount: Sum = field(default_factory=Sum)
    per_step: Optional[float] = None
    ranks: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)

    @property
    def often(self) -> str:
        """How often it came: in each step, or in all of a run without steps."""
        if self.per_step == 1:
            return _("once a step")
        if self.per_step:
            return _("{per_step:.3g} times a step", per_step=self.per_step)
        calls = self.amount.calls
        return "once" if calls == 1 else _("{tally_calls} times", tally_calls=calls)

    def row(
        self,
        kind: str,
        severity: str,
        subject: str,
        name: str,
        words: Mapping[str, Any],
        advice: str = "",
        effect: Optional[float] = None,
        more: Optional[dict[str, Any]] = None,
    ) -> Row:
        """The row on this, with the text of a name and its advice (or another one).

        The bytes are its effect, if it has no other.
        """
        message, advice = text(kind, name, **words), text(kind, advice or f"{name}_advice", **words)
        return Row(
            *(kind, severity, self.place, subject, self.amount.calls, self.per_step, self.amount.bytes),
            *(message, advice, tuple(self.ranks)),
            effect=self.amount.bytes if effect is None else effect,
            more=more or {},
        )


Key = Callable[[Record], Optional[Sequence[str]]]


def tallies(run: Run, key: Key) -> Iterator[tuple[tuple[str, ...], Tally]]:
    """Records by place and by what ``key`` makes of them; None leaves one out. The largest first."""
    found: dict[tuple[Any, ...], Tally] = {}
    for process in run.processes:
        own: dict[tuple[Any, ...], Tally] = {}
        for record in process.records:
            subject = key(record)
            if subject is None:
                continue
            place = record.place or NOWHERE
            tally = own.setdefault((place.file, place.line, place.function, *subject), Tally(place))
            tally.amount += record.all
            tally.records.append(record)
            steps = process.per_step(record)
            if steps is not None:
                tally.per_step = (tally.per_step or 0.0) + steps
        for where, tally in own.items():
            whole = found.setdefault(where, Tally(tally.place))
            if tally.amount.calls > whole.amount.calls:
                whole.amount, whole.per_step = tally.amount, tally.per_step
            whole.ranks.append(process.who)
            whole.records += tally.records
    for where in sorted(found, key=lambda where: (-found[where].amount.bytes, where)):
        yield where[3:], found[where]


def text(kind: str, name: str, **values: Any) -> str:
    """A text of ``reports/insight.yaml``, with values in it."""
    return _(str(reports_yaml("insight.yaml")[kind][name]).strip()).format(**values)


def size(number: float) -> str:
    """Bytes for a person."""
    units = ["GiB", "MiB", "KiB", "B"]
    while number >= 1024 and len(units) > 1:
        number /= 1024
        units.pop()
    return f"{number:.{0 if units[-1] == 'B' or number >= 100 else 1}f} {units[-1]}"


# -- operators ------------------------------------------------------------------------


def names_of(what: str) -> Any:
    """What ``reports/insight_names.yaml`` has of some kind of names."""
    return reports_yaml("insight_names.yaml")[what]


@cache
def api_of(operator: str, version: TorchVersion) -> str:
    """The documented API that an operator such as ``aten::nonzero`` is, or ''."""
    name = operator.partition("::")[2].partition(".")[0]
    plain = names_of("operators").get(name) or name
    for spelled in dict.fromkeys((plain, _OWN.sub("", _OWN.sub("", plain)))):
        for module in _MODULES:
            if support.look_up(module + spelled, version) is not None:
                return module + spelled
    return ""


def shown(operator: str, version: TorchVersion) -> str:
    """An operator as a person knows it: its API, or else its own name."""
    if operator == "aten::index.Tensor":
        return "an index of truth values"
    return api_of(operator, version) or operator


@cache
def verdict_of(operator: str, version: TorchVersion, hardware: str) -> Optional[Verdict]:
    """What is known of the API behind an operator."""
    api = api_of(operator, version)
    return verdicts.judge(api, version, hardware) if api else None


def lacks_kernel(operator: str, process: Recorded, version: TorchVersion, installed: TorchVersion) -> bool:
    """Whether torch_npu at a version leaves an operator to the CPU.

    For the installed one its dispatcher says it. For another one the table of kernels does, which lists all
    from torch_npu 2.1 on, where it agrees with the dispatcher about the installed one.
    """
    if not operator.startswith("aten::"):
        return False
    lacking = operator in process.without_npu_kernel
    if version == installed:
        return lacking
    if version.tuple < _FIRST_LISTS:
        base = operator.partition("::")[2].partition(".")[0]
        return support.registered(base, version) in ("fallback", "none")
    if lacking:
        return operator not in _kernels(operator, version)
    # Without a kernel of its own an overload may come to the one that writes to a given tensor.
    own = operator in _kernels(operator, installed)
    return own and operator not in process.composite and not _kernels(operator, version)


@cache
def _kernels(operator: str, version: TorchVersion) -> frozenset[str]:
    """The overloads of an operator that torch_npu has kernels for."""
    base = operator.partition("::")[2].partition(".")[0]
    rows = tables.at(support.kernels(base), version.tuple)
    return frozenset(f"aten::{row.op}" for row in rows if row.kind == "kernel")
