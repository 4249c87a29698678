"""The scripts that start a program on NPUs, from their templates in ``reports/launcher``.

``run_distributed_npu.sh`` is the launcher of a migrated project, ``run_mindspore_npu.sh`` starts a program of
MindSpore by msrun or by HCCL's rank table. What msrun and MindSpore read: ``parallel/cluster`` and
``communication/management.py`` of MindSpore 2.10.
"""

from __future__ import annotations

import shlex

from migrator.launch.fault_texts import fault_texts
from migrator.launch.target import Launch, Start, filled

NAME = "run_distributed_npu.sh"
_OF_MINDSPORE = "run_mindspore_npu.sh"
_FAULTS = ("set-env-missing", "hccl-missing", "no-device", "device-permission")
_DEVICE = {"file": "/dev/davinci_manager", "group": "HwHiAiUser"}


def run_script(start: Start) -> Launch:
    """The script that starts it, for the project's folder."""
    faults = {f"@{name.upper().replace('-', '_')}@": fault_texts()[name] for name in _FAULTS}
    values = {
        "@ENTRY@": shlex.quote(start.entry),
        "@MODULE@": shlex.quote(start.module),
        "@MODULE_ROOT@": shlex.quote(start.module_root),
        "@WAYS@": _ways(start),
        "@VARIABLES@": _variables(start),
        **{mark: shlex.quote(fault.line(**_DEVICE)) for mark, fault in faults.items()},
    }
    return Launch({NAME: filled(NAME, values)})


def _ways(start: Start) -> str:
    """A case for each script."""
    lines = []
    for script, way in start.ways.items():
        words = f"ranks_by={way.ranks}"
        if way.options:
            words += f" program_options=({shlex.join(way.options)})"
        if way.variables:
            words += f" rank_names={way.variables}"
        lines.append(f"  {shlex.quote(script)}) {words} ;;\n")
    return "".join(lines)


def _variables(start: Start) -> str:
    lines = []
    for one in start.variables:
        lines += [f"# {one['why']}", f"set_default {one['name']} {shlex.quote(one['value'])}"]
    return "\n".join(lines) + "\n"


def rank_options(ranks: object, hosts: int, host: object, address: str, port: object) -> list[str]:
    """The script's options for one of some hosts: ``--nproc 8 --nnodes 2 …``."""
    options = ["--nproc", str(ranks)]
    if hosts > 1:
        options += ["--nnodes", str(hosts), "--node-rank", str(host)]
        options += ["--master-addr", address, "--master-port", str(port)]
    return options


def mindspore_script(entry: str) -> Launch:
    """The script for the project's folder that starts the ranks of ``entry``, a program of MindSpore."""
    shown = "".join(char if char.isprintable() else "?" for char in entry)
    values = {"@NAME@": shown, "@ENTRY@": shlex.quote(entry)}
    return Launch({_OF_MINDSPORE: filled(_OF_MINDSPORE, values)})
