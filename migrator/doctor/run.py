"""All checks of a machine."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.doctor.cann import Installed, cann, driver
from migrator.doctor.devices import choice_faults, device_faults
from migrator.doctor.environment import driver_faults, environment_faults, limit_faults
from migrator.doctor.fault import Fault
from migrator.doctor.machine import Machine
from migrator.doctor.network import hccn_faults, variable_faults
from migrator.doctor.packages import Python
from migrator.doctor.rank_tables import rank_table_faults
from migrator.doctor.versions import cann_faults, package_faults


@dataclass(frozen=True)
class Findings:
    """What was seen of a machine, and what is wrong with it: errors first."""

    python: Python | None
    cann: Installed
    driver: Installed
    npus: tuple[int, ...]
    emulated: bool
    faults: tuple[Fault, ...]

    @property
    def errors(self) -> tuple[Fault, ...]:
        """Those that keep a program from running."""
        return tuple(one for one in self.faults if one.severity == "error")


def examine(machine: Machine, python: Python | None) -> Findings:
    """Look at everything; without a ``python`` its packages are left out."""
    installed = cann(machine)
    # A driver belongs to the machine, not to the emulator on it.
    at_hand = driver(machine) if machine.emulated is None else Installed()
    found = [*environment_faults(machine), *device_faults(machine), *driver_faults(machine)]
    if python is not None:
        found += package_faults(python, installed)
        found += cann_faults(python, installed, at_hand)
    for look in (choice_faults, variable_faults, hccn_faults, rank_table_faults, limit_faults):
        found += look(machine)
    found.sort(key=lambda one: one.severity)  # error before warning; the order of the checks stays
    npus = tuple(machine.npus())
    return Findings(python, installed, at_hand, npus, machine.emulated is not None, tuple(found))
