"""Run by a Python that has torch_npu, on emulated NPUs: compares what it finds with what it gets.

Reads JSON from its input (``live.py`` makes it) and writes a JSON list of
lines, one on each difference, as the last line of its output.
"""

import importlib
import json
import sys
import warnings


def main() -> None:
    """Compare, and print the differences."""
    warnings.simplefilter("ignore")
    expected = json.load(sys.stdin)
    import torch
    import torch_npu

    lines = []
    if torch_npu.__version__.split("+")[0] != expected["torch_npu"]:
        lines.append(
            f"torch_npu {torch_npu.__version__} is installed, the tables are about {expected['torch_npu']}"
        )
    for table, there, names in (
        ("npu_names.csv", True, expected["there"]),
        ("npu_names.csv", False, expected["absent"]),
        ("torch_names.csv", False, expected["torch"]),
        ("custom_ops.csv", True, expected["own"]),
    ):
        for name in names:
            if exists(name) != there:
                package = "torch" if table == "torch_names.csv" else "torch_npu"
                lines.append(f"{table}: {name} {'is not' if there else 'is'} in {package}")
    known = set(torch._C._dispatch_get_all_op_names())
    for op, kind in expected["operators"]:
        if f"aten::{op}" not in known:
            lines.append(f"kernels.csv: torch has no operator {op}")
        elif has_kernel(torch, op, dense=kind != "kernel") != (kind == "kernel"):
            registers = "no kernel" if kind == "kernel" else "a kernel"
            lines.append(f"kernels.csv: {op} is {kind}, but torch_npu registers {registers}")
    print()
    print(json.dumps(lines))


def exists(name: str) -> bool:
    """Whether a qualified name can be written in a program, as attributes or behind an import."""
    parts = name.split(".")
    if parts[:2] == ["torch", "npu"]:
        parts[:2] = ["torch_npu", "npu"]  # the same module, which can also be imported from
    for length in range(1, len(parts)):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            return False
        for part in parts[length:]:
            if not hasattr(thing, part):
                break
            thing = getattr(thing, part)
        else:
            return True
    try:
        return bool(importlib.import_module(".".join(parts)))
    except ImportError:
        return False


def has_kernel(torch: object, op: str, dense: bool) -> bool:
    """Whether torch_npu itself has a kernel for an operator: for dense tensors only, or for some.

    The dispatcher knows by which source file: the emulator registers kernels, too.
    """
    for line in torch._C._dispatch_dump(f"aten::{op}").splitlines():  # type: ignore[attr-defined]
        key, _, place = line.replace(" (inactive)", "").partition(": registered at ")
        if (key == "PrivateUse1" if dense else "PrivateUse1" in key) and "torch_npu" in place:
            return True
    return False


if __name__ == "__main__":
    main()
