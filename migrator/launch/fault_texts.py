"""What the doctor and the launchers say of a machine that is not ready: ``reports/doctor.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import yaml

from migrator.data_folders import data_folder


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
    content = yaml.safe_load((data_folder("reports") / "doctor.yaml").read_text(encoding="utf-8"))
    return {name: FaultText(**entry) for name, entry in content.items()}
