"""Does every name of MindSpore in rules/mindspore.yaml exist? For a Python that has MindSpore and PyYAML.

Prints the names missing in the installed MindSpore, and the operators that it documents for GPUs and not for
Ascend of which NPU1213 does not speak. Exit status: 0 where all are there, 1 where not. Only names count:
MindSpore for CPUs has those of the other devices, and its documents name the platforms of each operator.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

RULES = Path(__file__).parents[1] / "rules" / "mindspore.yaml"
_NAME = re.compile(r"\bmindspore(?:\.\w+)+")
_PLATFORMS = re.compile(r"Supported Platforms:\s*\n\s*([^\n]*)")
_OPERATORS = ("mindspore.nn", "mindspore.ops", "mindspore.scipy.linalg")
# What their documents speak of is another thing: modules, and operators with a form for Ascend.
_OTHERS = frozenset({"Assert", "cond", "inverse", "isreal", "kernel", "matrix_norm", "range"})
# What older releases have: it is looked for, and never written.
_GONE = frozenset(
    {
        "mindspore.communication.NCCL_WORLD_COMM_GROUP",
        "mindspore.communication.management.NCCL_WORLD_COMM_GROUP",
    }
)


def found(name: str) -> Any:
    """What a dotted name stands for; None where it stands for nothing."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            value = getattr(value, part, None)
        return value
    return None


def for_gpus_alone() -> set[str]:
    """The operators whose documents name GPUs and not Ascend."""
    names = set()
    for module in _OPERATORS:
        for name in dir(import_module(module)):
            documents = inspect.getdoc(getattr(import_module(module), name, None)) or ""
            platforms = _PLATFORMS.search(documents)
            if platforms and "GPU" in platforms[1] and "Ascend" not in platforms[1] and name not in _OTHERS:
                names.add(f"{module}.{name}")
    return names


def main() -> int:
    """Compare the rules with what is installed."""
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    named = set()
    for rule in rules:
        given = [*rule.get("match", ()), *rule.get("options", {}).get("arguments", {})]
        texts = [*given, rule.get("advice", ""), *(each.get("after", "") for each in rule["examples"])]
        named |= {name for text in texts for name in _NAME.findall(text)}
    missing = sorted(name for name in named - _GONE if found(name) is None)
    told = {name for rule in rules if rule["code"] == "NPU1213" for name in rule["match"]}
    untold = sorted(for_gpus_alone() - told)
    print(f"{len(named)} names looked up, {len(missing)} missing: {' '.join(missing)}")
    print(f"{len(untold)} operators for GPUs alone without a word: {' '.join(untold)}")
    return 1 if missing or untold else 0


if __name__ == "__main__":
    sys.exit(main())
