"""What the doctor and the launchers say of a machine that is not ready: ``reports/doctor.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from migrator.data_folders import reports_yaml


@dataclass(frozen=True)
class FaultText:
    """One fault: its severity (error or warning), what is wrong and what to do; ``{…}`` stands for values."""

    severity: str
    what: str
    do: str
    source: str

    def line(self, **values: str) -> str:
        """Both in one line."""
        return f"{self.what}; {self.do}".format(**values)


@cache
def fault_texts() -> dict[str, FaultText]:
    """Every fault by its name, in the order of the file."""
    content = reports_yaml("doctor.yaml")
    return {name: FaultText(**entry) for name, entry in content.items()}
