"""``npumigrate doctor``: is this machine ready for programs on NPUs?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from migrator.cli.ending import PROBLEMS, check_folder, print_json, stop, wrapped
from migrator.cli.next_commands import own_command, say_next
from migrator.cli.options import Given, refuse_together
from migrator.language import _, ngettext

if TYPE_CHECKING:
    from migrator.doctor.machine import Machine
    from migrator.launch.fault_texts import Fault

_SET_ENV = "/usr/local/Ascend/ascend-toolkit/set_env.sh"


def doctor(given: Given) -> None:
    """Check whether this machine can run programs on NPUs, and say how to fix it.

    Checks files and variables: CANN's environment, the driver, device files, versions that do not fit
    together, HCCL's variables, ports, the rank table, limits. Needs no NPU, and runs and imports nothing,
    except with --self-test. --plan writes a script that installs matching versions.

    Exit status: 0 no error (there may be warnings); 1 errors, or requests that cannot be met; 2 usage error.
    """
    from migrator.doctor.machine import this_machine

    if not hasattr(os, "getuid"):
        stop("doctor supports Linux machines only")
    given.as_json = given.as_json or given.output_format == "json"
    chosen = {f"--{name.replace('_', '-')}": value for name, value in vars(given).items()}
    chosen["--json"] = given.as_json
    refuse_together(chosen, *((one, "--brief") for one in ("--json", "--plan", "--self-test")))
    refuse_together(
        chosen, *((one, "--self-test") for one in ("--plan", "--root")), ("--emulate", "--python")
    )
    if given.emulate and not given.self_test:
        stop("--emulate works only with --self-test")
    check_folder(given.root, "--root: ")
    machine = this_machine(given.root or Path("/"))
    work = _plan if given.plan is not None else _self_test if given.self_test else _check
    if not work(given, machine):
        raise typer.Exit(PROBLEMS)


def _check(given: Given, machine: Machine) -> bool:
    """Show what is there and what is wrong; whether there is no error."""
    from migrator import __version__
    from migrator.doctor.checks import examine
    from migrator.doctor.machine import python_at, running_python

    try:
        python = python_at(given.python) if given.python else None if given.root else running_python()
    except ValueError as error:
        stop(f"--python: {error}")
    faults, count = examine(machine, python), len(machine.npus())
    errors = [fault for fault in faults if fault.severity == "error"]
    packages = {name: package.version for name, package in python.packages.items()} if python else {}
    installed = {name: getattr(machine, name)().version for name in ("cann", "driver", "firmware")}
    if given.as_json:
        content = {"schema": 1, "npumigrate": __version__, "packages": packages, **installed}
        content["python"] = python and {"path": python.name, "version": python.version}
        content |= {"npus": machine.npus(), "emulated": machine.emulated is not None}
        print_json({**content, "faults": [fault._asdict() for fault in faults]})
    elif given.brief:
        typer.echo("".join(f"{fault.line()}\n" for fault in errors[:1]), nl=False)
    else:
        names = {"cann": "CANN", "driver": _("driver"), "firmware": _("firmware")}
        lines = [{"Python": python.version, **packages} if python else {}]
        lines += [{names[name]: version for name, version in installed.items() if version}]
        seen = [", ".join(f"{name} {version}" for name, version in line.items()) for line in lines if line]
        npus = ngettext("{n} NPU", "{n} NPUs", count)
        if machine.emulated is not None:
            npus = ngettext("{n} emulated NPU", "{n} emulated NPUs", count)
        typer.echo("\n".join(map(wrapped, [*seen, npus])))
        _show(faults)
        # Emulated NPUs are a way to go on where there is none.
        emulated = [] if count else [f"npumigrate emulate -- {own_command()} doctor"]
        say_next(*([] if errors else ["npumigrate lint"]), *emulated)
    return not errors


def _show(faults: Sequence[Fault]) -> None:
    from migrator.report.colors import paint, wanted

    colors, tints = wanted(), {"error": "red", "warning": "yellow"}
    for fault in faults:
        severity = _(fault.severity)
        line = wrapped(f"{severity}: {fault.what}").removeprefix(severity)
        typer.echo(paint(severity, tints[fault.severity], colors) + line, color=colors)
        typer.echo(wrapped(fault.do, "  "))
    errors = sum(fault.severity == "error" for fault in faults)
    warnings = len(faults) - errors
    counts = [ngettext("{n} error", "{n} errors", errors)] if errors else []
    counts += [ngettext("{n} warning", "{n} warnings", warnings)] if warnings else []
    typer.echo(", ".join(counts) or _("no problems found"))


def _self_test(given: Given, machine: Machine) -> bool:
    """Show which steps two ranks have passed; whether it was all."""
    from migrator.doctor.self_test import RANKS, run_self_test
    from migrator.launch.fault_texts import fault

    python = given.python or Path(sys.executable)
    command = [str(python / "bin/python" if python.is_dir() else python)]
    if given.emulate:
        command += [*f"-m migrator emulate --devices {RANKS} --".split(" "), sys.executable]
    visible = machine.variables.get("ASCEND_RT_VISIBLE_DEVICES")
    count = len(visible.split(",")) if visible else len(machine.npus())
    steps, faults = list[str](), [fault("self-test-npus", needed=RANKS, count=count)]
    try:
        if given.emulate or count >= RANKS:
            steps, faults = run_self_test(command)
    except OSError as error:
        stop("cannot start {command}: {strerror}", command=command[0], strerror=error)
    if given.as_json:
        print_json({"schema": 1, "steps": steps, "faults": [one._asdict() for one in faults]})
    else:
        for step in steps:
            typer.echo(_("{step}: passed", step=step))
        _show(faults)
    return not faults


def _plan(given: Given, machine: Machine) -> bool:
    """Show a plan as a script for bash, commands and comments; whether it meets all wishes."""
    from migrator.doctor.plan import make_plan
    from migrator.wrapping import padded, wrap

    try:
        plan = make_plan(given.plan, machine.arch or os.uname().machine, machine.set_env() or _SET_ENV)
    except ValueError as error:
        stop(f"--plan: {error}")
    if given.as_json:
        print_json({"schema": 1, **plan})
        return not plan["unmet"]
    parts = plan["parts"]
    script = [f"# {_('Install plan for {wishes} on {arch}', wishes=given.plan, arch=plan['arch'])}"]
    script += [f"# {_('Not all requests can be met:')}"] if plan["unmet"] else []
    script += [line for each in plan["unmet"] for line in wrap(each, 80, "#   - ", "#     ")]
    widths = [max(len(part[key]) for part in parts) for key in ("name", "version")]
    for part in parts:
        first = f"# {padded(part['name'], widths[0])}  {padded(part['version'], widths[1])}  "
        script += wrap(part["why"], 80, first, "#".ljust(len(first)))
    for number, step in enumerate(plan["steps"], start=1):
        script += ["", f"# {number}. {step['title']}"]
        script += [line for note in step["notes"] for line in wrap(note, 80, "# ", "# ")] + step["lines"]
    for image in plan["images"]:
        title = _("A container image for Atlas A2, to start from after step 1:")
        script += ["", f"# {title}", f"# docker pull {image}"]
    typer.echo("\n".join(script))
    return not plan["unmet"]
