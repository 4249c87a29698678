"""``npumigrate doctor``: is this machine ready for programs on NPUs?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from migrator.cli.ending import PROBLEMS, print_json, stop, wrapped
from migrator.cli.next_commands import own_command, say_next
from migrator.cli.options import Given, refuse_together
from migrator.language import _

if TYPE_CHECKING:
    from migrator.doctor.checks import Findings


def doctor(given: Given) -> None:
    """Check whether this machine can run programs on NPUs, and say how to fix it.

    Checks files and variables: CANN's environment, the driver, device files, versions that do not fit
    together, HCCL's variables, the rank table, limits. Needs no NPU, and runs and imports nothing.

    Exit status: 0 no error (there may be warnings); 1 errors; 2 usage error.
    """
    from migrator.doctor.checks import examine
    from migrator.doctor.machine import python_at, running_python, this_machine

    if not hasattr(os, "getuid"):
        stop("doctor supports Linux machines only")
    refuse_together({"--json": given.as_json, "--brief": given.brief}, ("--json", "--brief"))
    root = given.root
    if root is not None and not root.is_dir():
        stop("--root: no such folder: {root}", root=root)
    machine = this_machine(root or Path("/"))
    packages = None if root else running_python()
    if given.python is not None:
        try:
            packages = python_at(given.python)
        except ValueError as error:
            stop(f"--python: {error}")
    findings = examine(machine, packages)
    if given.as_json:
        print_json(_content(findings))
    elif given.brief:
        for fault in findings.errors[:1]:
            typer.echo(fault.line())
    else:
        _show(findings)
        # Emulated NPUs are a way to go on where there is none.
        say_next(
            *(["npumigrate lint"] if not findings.errors else []),
            *([f"npumigrate emulate -- {own_command()} doctor"] if not findings.npus else []),
        )
    if findings.errors:
        raise typer.Exit(PROBLEMS)


def _show(findings: Findings) -> None:
    from migrator.report.colors import paint, wanted

    colors = wanted()
    typer.echo(wrapped(_seen(findings)))
    for fault in findings.faults:
        severity = _(fault.severity)
        line = wrapped(f"{severity}: {fault.what}").removeprefix(severity)
        typer.echo(
            paint(severity, "red" if fault.severity == "error" else "yellow", colors) + line,
            color=colors,
        )
        typer.echo(wrapped(fault.do, "  "))
    errors = len(findings.errors)
    warnings = len(findings.faults) - errors
    counts = [f"{n} {word}{'s' * (n > 1)}" for n, word in ((errors, "error"), (warnings, "warning")) if n]
    typer.echo(", ".join(counts) if counts else _("no problems found"))


def _seen(findings: Findings) -> str:
    parts = []
    if findings.python is not None:
        versions = [("Python", findings.python.version)]
        versions += [(name, package.version) for name, package in findings.python.packages.items()]
        parts.append(", ".join(f"{name} {version}" for name, version in versions))
    for name, installed in (("CANN", findings.cann), ("driver", findings.driver)):
        if installed.version:
            parts.append(f"{name} {installed.version}")
    count = len(findings.npus)
    parts.append(f"{count} {'emulated ' * findings.emulated}NPU{'s' * (count != 1)}")
    return "; ".join(parts)


def _content(findings: Findings) -> dict[str, Any]:
    from migrator import __version__

    python = findings.python
    return {
        "schema": 1,
        "npumigrate": __version__,
        "python": python and {"path": python.name, "version": python.version},
        "packages": {name: package.version for name, package in python.packages.items()} if python else {},
        "cann": findings.cann.version,
        "driver": findings.driver.version,
        "npus": list(findings.npus),
        "emulated": findings.emulated,
        "faults": [fault._asdict() for fault in findings.faults],
    }
