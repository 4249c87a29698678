"""A row of the insight tables, and what rows of all kinds are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from migrator.api_support.versions import TorchVersion
from migrator.data_folders import reports_yaml
from migrator.insight.recorded import Place, Record, Recorded, Sum
from migrator.language import _

NOWHERE = Place("", 0, "")  # a row that no line of the project leads to


@dataclass(frozen=True)
class Run:
    """What was recorded, and for what it is judged: a torch version and a product line (``A2``).

    ``ran_with`` is the torch version that ran.
    """

    processes: tuple[Recorded, ...]
    version: TorchVersion
    hardware: str
    ran_with: TorchVersion


@dataclass(frozen=True)
class Row:
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

    def row(
        self,
        kind: str,
        severity: str,
        subject: str,
        message: str,
        advice: str,
        effect: Optional[float] = None,
        **more: Any,
    ) -> Row:
        """The row on this; the bytes are its effect, if it has no other."""
        calls, amount = self.amount.calls, self.amount.bytes
        return Row(
            *(kind, severity, self.place, subject, calls, self.per_step, amount, message, advice),
            ranks=tuple(self.ranks),
            effect=amount if effect is None else effect,
            more=more,
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
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1024
    raise AssertionError


def often(tally_calls: int, per_step: Optional[float]) -> str:
    """How often something came: in each step, or in all of a run without steps."""
    if per_step == 1:
        return _("once a step")
    if per_step:
        return _("{per_step:.3g} times a step", per_step=per_step)
    return "once" if tally_calls == 1 else _("{tally_calls} times", tally_calls=tally_calls)
