"""``npumigrate doctor``: is this machine ready for programs on NPUs?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from migrator.cli.ending import PROBLEMS, print_json, stop, wrapped
from migrator.cli.next_commands import own_command, say_next
from migrator.cli.options import Given, refuse_together
from migrator.language import _, ngettext

if TYPE_CHECKING:
    from migrator.doctor.checks import Findings
    from migrator.doctor.machine import Machine
    from migrator.launch.fault_texts import Fault

_SET_ENV = "/usr/local/Ascend/ascend-toolkit/set_env.sh"


def doctor(given: Given) -> None:
    """Check whether this machine can run programs on NPUs, and say how to fix it.

    Reads files and variables: CANN's environment, the driver, device files, releases that do not belong
    together, HCCL's variables, ports, the rank table, limits. Needs no NPU, and runs and imports nothing,
    but for --self-test. --plan writes a script that installs releases which go together.

    Exit status: 0 no error (there may be warnings); 1 errors, or wishes that cannot be met; 2 usage error.
    """
    from migrator.doctor.machine import this_machine

    if not hasattr(os, "getuid"):
        stop("doctor supports Linux machines only")
    given.as_json = given.as_json or given.output_format == "json"
    chosen = {"--json": given.as_json, "--brief": given.brief, "--plan": given.plan, "--root": given.root}
    chosen |= {"--self-test": given.self_test, "--emulate": given.emulate, "--python": given.python}
    refuse_together(chosen, *((one, "--brief") for one in ("--json", "--plan", "--self-test")))
    refuse_together(
        chosen, *((one, "--self-test") for one in ("--plan", "--root")), ("--emulate", "--python")
    )
    if given.emulate and not given.self_test:
        stop("--emulate belongs to --self-test")
    root = given.root
    if root is not None and not root.is_dir():
        stop("--root: no such folder: {root}", root=root)
    machine = this_machine(root or Path("/"))
    if given.plan is not None:
        _plan(given, machine)
    elif given.self_test:
        _self_test(given, machine)
    else:
        _check(given, machine)


def _check(given: Given, machine: Machine) -> None:
    from migrator.doctor.checks import examine
    from migrator.doctor.machine import python_at, running_python

    packages = None if given.root else running_python()
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
        typer.echo("\n".join(map(wrapped, _seen(findings))))
        _show(findings.faults)
        # Emulated NPUs are a way to go on where there is none.
        say_next(
            *(["npumigrate lint"] if not findings.errors else []),
            *([f"npumigrate emulate -- {own_command()} doctor"] if not findings.npus else []),
        )
    if findings.errors:
        raise typer.Exit(PROBLEMS)


def _show(faults: Sequence[Fault]) -> None:
    from migrator.report.colors import paint, wanted

    colors = wanted()
    for fault in faults:
        severity = _(fault.severity)
        line = wrapped(f"{severity}: {fault.what}").removeprefix(severity)
        typer.echo(
            paint(severity, "red" if fault.severity == "error" else "yellow", colors) + line,
            color=colors,
        )
        typer.echo(wrapped(fault.do, "  "))
    errors = sum(fault.severity == "error" for fault in faults)
    warnings = len(faults) - errors
    counts = [ngettext("{n} error", "{n} errors", errors)] if errors else []
    counts += [ngettext("{n} warning", "{n} warnings", warnings)] if warnings else []
    typer.echo(", ".join(counts) if counts else _("no problems found"))


def _seen(findings: Findings) -> list[str]:
    """Lines on what is there: packages, what is installed below them, NPUs."""
    python, count = findings.python, len(findings.npus)
    packages = {"Python": python.version, **_versions(findings)} if python else {}
    installed = {"CANN": findings.cann, _("driver"): findings.driver, _("firmware"): findings.firmware}
    lines = [packages, {name: one.version for name, one in installed.items() if one.version}]
    npus = ngettext("{n} NPU", "{n} NPUs", count)
    npus = ngettext("{n} emulated NPU", "{n} emulated NPUs", count) if findings.emulated else npus
    return [", ".join(f"{name} {version}" for name, version in line.items()) for line in lines if line] + [
        npus
    ]


def _versions(findings: Findings) -> dict[str, str]:
    packages = findings.python.packages if findings.python else {}
    return {name: package.version for name, package in packages.items()}


def _content(findings: Findings) -> dict[str, Any]:
    from migrator import __version__

    python = findings.python
    return {
        "schema": 1,
        "npumigrate": __version__,
        "python": python and {"path": python.name, "version": python.version},
        "packages": _versions(findings),
        "cann": findings.cann.version,
        "driver": findings.driver.version,
        "firmware": findings.firmware.version,
        "npus": list(findings.npus),
        "emulated": findings.emulated,
        "faults": [fault._asdict() for fault in findings.faults],
    }


def _self_test(given: Given, machine: Machine) -> None:
    from migrator.doctor.self_test import RANKS, run_self_test
    from migrator.launch.fault_texts import fault

    python = given.python or Path(sys.executable)
    command = [str(python / "bin/python" if python.is_dir() else python)]
    if given.emulate:
        emulator = f"-m migrator emulate --devices {RANKS} -- {sys.executable}"
        command = [sys.executable, *emulator.split(" ")]
    visible = machine.variables.get("ASCEND_RT_VISIBLE_DEVICES")
    count = len(visible.split(",")) if visible else len(machine.npus())
    steps, faults = list[str](), [fault("self-test-npus", needed=RANKS, count=count)]
    try:
        if given.emulate or count >= RANKS:
            steps, faults = run_self_test(command)
    except OSError as error:
        stop("cannot start {command}: {strerror}", command=command[0], strerror=error.strerror)
    if given.as_json:
        print_json({"schema": 1, "steps": steps, "faults": [one._asdict() for one in faults]})
    else:
        for step in steps:
            typer.echo(_("{step}: passed", step=step))
        _show(faults)
    if faults:
        raise typer.Exit(PROBLEMS)


def _plan(given: Given, machine: Machine) -> None:
    """Show a plan as a script for bash, in which all but the commands are comments."""
    from migrator.doctor.plan import make_plan
    from migrator.wrapping import padded, wrap

    try:
        plan = make_plan(given.plan, machine.arch or os.uname().machine, machine.set_env() or _SET_ENV)
    except ValueError as error:
        stop(f"--plan: {error}")
    parts, unmet = plan["parts"], plan["unmet"]
    script = [f"# {_('Install plan for {wishes} on {arch}', wishes=given.plan, arch=plan['arch'])}"]
    script += [f"# {_('Not all wishes can be met:')}"] if unmet else []
    script += [line for each in unmet for line in wrap(each, 80, "#   - ", "#     ")]
    widths = [max(len(part[key]) for part in parts) for key in ("name", "version")]
    for part in parts:
        first = f"# {padded(part['name'], widths[0])}  {padded(part['version'], widths[1])}  "
        script += wrap(part["why"], 80, first, "#".ljust(len(first)))
    for number, step in enumerate(plan["steps"], start=1):
        script += ["", f"# {number}. {step['title']}"]
        script += [line for note in step["notes"] for line in wrap(note, 80, "# ", "# ")] + step["lines"]
    for image in plan["images"]:
        title = _("A container image for Atlas A2, to begin with after step 1:")
        script += ["", f"# {title}", f"# docker pull {image}"]
    if given.as_json:
        print_json({"schema": 1, **plan})
    else:
        typer.echo("\n".join(script))
    if plan["unmet"]:
        raise typer.Exit(PROBLEMS)
