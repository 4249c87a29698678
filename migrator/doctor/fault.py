"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.language import _
from migrator.launch.fault_texts import fault_texts


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong; ``name`` is the one in ``reports/doctor.yaml``."""

    name: str
    severity: str
    what: str
    do: str

    def line(self) -> str:
        """What is wrong and what to do, in one line."""
        return f"{self.what}; {self.do}"


def fault(name: str, /, **values: object) -> Fault:
    """The fault of that name, with values in its texts."""
    text = fault_texts()[name]
    return Fault(name, text.severity, _(text.what).format(**values), _(text.do).format(**values))
