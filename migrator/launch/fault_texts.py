"""What the doctor and the launchers say of a machine that is not ready: ``reports/doctor.yaml``."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from migrator.data_folders import reports_yaml
from migrator.language import _


class Fault(NamedTuple):
    """One fault: its name, its severity (error or warning), what is wrong and what to do.

    In a text of the file ``{…}`` stands for values.
    """

    name: str
    severity: str
    what: str
    do: str

    def line(self, **values: str) -> str:
        """What is wrong and what to do in one line, with the values of a text of the file."""
        line = f"{self.what}; {self.do}"
        return line.format(**values) if values else line


@cache
def fault_texts() -> dict[str, Fault]:
    """Every fault by its name, in the order of the file."""
    content = reports_yaml("doctor.yaml")
    return {name: Fault(name, each["severity"], each["what"], each["do"]) for name, each in content.items()}


def fault(name: str, /, **values: object) -> Fault:
    """The fault of that name that was found, with values in its texts, in the language of the run."""
    text = fault_texts()[name]
    return Fault(name, text.severity, _(text.what).format(**values), _(text.do).format(**values))
