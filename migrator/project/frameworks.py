"""Which framework files and projects are of, and which names show that a program trains with several ranks.

The framework decides which rules speak of them, and what starts them.

A file is of the frameworks that it imports. One that imports none, such as a configuration, is of those of
its project; without any that are known, it is taken for one of PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from typing import Literal

from migrator.data_folders import reports_yaml
from migrator.language import N_, _, ngettext

Framework = Literal["torch", "mindspore", "tensorflow", "mxnet", "paddle", "jax"]
TORCH: Framework = "torch"

NAMES: Mapping[str, str] = {
    "torch": "PyTorch",
    "mindspore": "MindSpore",
    "tensorflow": "TensorFlow/Keras",
    "mxnet": "MXNet",
    "paddle": "PaddlePaddle",
    "jax": "JAX",
}
# The framework of each package that shows one, beside torch's; of horovod.keras the second part.
_OTHERS: Mapping[str, Framework] = {
    "mindspore": "mindspore",
    "mindcv": "mindspore",
    "mindformers": "mindspore",
    "mindyolo": "mindspore",
    "tensorflow": "tensorflow",
    "keras": "tensorflow",
    "tf_keras": "tensorflow",
    "mxnet": "mxnet",
    "paddle": "paddle",
    "jax": "jax",
    "flax": "jax",
}
# Words of which a text holds one where a file is of another framework than PyTorch.
SHOWING = tuple(_OTHERS)
# The package that an import names first, of horovod.keras the second part: in lines with the word alone.
_IMPORT = re.compile(r"[ \t]*(?:import|from)[ \t]+(?:horovod\.)?(\w+)")
# PyTorch behind another name, and in quotes.
_TORCH = (r"\n[ \t]*import[ \t]+[^#\n]*\btorch\b", r"import(?:_module|__|orskip)\(\s*[\"']torch\b")
# TensorFlow's names of what only writes, or reads, TensorBoard's logs, and its imports of them.
_LOG = r"(?:compat\.v[12]\.)?(?:summary|Summary|HistogramProto|Event)\b|.*(?:summary|tensorboard|event)"
_TENSORFLOW = (
    r"^[ \t]*import[ \t]+(tensorflow)(?:\.compat\.v[12])?(?:[ \t]+as[ \t]+(\w+))?",
    r"^[ \t]*from[ \t]+tensorflow((?:\.\w+)*[ \t]+import[^\n]+)",
)
_SETTING = (
    r"(?<!\w)(\w+)[\"']?\]?[ \t]*(?::[ \t]*[\w.\[\]]+[ \t]*)?[=:][ \t]*[\"'](?:cuda|nccl|gpu|CUDA|NCCL|GPU)\b"
)


@lru_cache(maxsize=2)  # several ask of a file in turn
def _imported(text: str) -> frozenset[str]:
    lines = {text.rfind("\n", 0, each.start()) + 1 for each in re.finditer("import", text)}
    return frozenset(each[1] for line in lines if (each := _IMPORT.match(text, line)))


def frameworks_in(text: str) -> frozenset[Framework]:
    """The frameworks that a Python file imports; empty for one that shows none but, perhaps, PyTorch.

    PyTorch is noted only beside another one: most files need no look at it.
    """
    words = _imported(text).intersection(SHOWING)
    others = frozenset(_OTHERS[word] for word in words if word != "tensorflow" or not _only_logs(text))
    return others | {TORCH} if others and imports_torch(text) else others


def _only_logs(text: str) -> bool:
    """Whether all that a file takes from TensorFlow is for TensorBoard's logs: another framework computes."""
    whole, parts = (re.findall(pattern, text, re.M) for pattern in _TENSORFLOW)
    names = "|".join(alias or name for name, alias in whole)
    taken = [*parts, *(re.findall(rf"\b(?:{names})\.([\w.]+)", text) if whole else ())]
    return bool(taken) and all(re.match(_LOG, each) for each in taken)


def imports_torch(text: str) -> bool:
    """Whether a Python file imports PyTorch: many a comment of another framework's program speaks of it."""
    if "torch" in _imported(text):
        return True
    return "torch" in text and any(re.search(pattern, f"\n{text}") for pattern in _TORCH)


def other_framework(text: str) -> str:
    """The framework that a Python file imports and that is not PyTorch; empty with torch in it."""
    found = frameworks_in(text)
    return "" if TORCH in found else min(found, default="")


def shown_framework(data: bytes, name: str = "") -> str:
    """The framework that the bytes of a Python file or notebook show: PyTorch among several; or empty."""
    text = data.decode("latin-1")  # imports are of plain letters
    if name.endswith(".ipynb"):  # each line of a cell stands in quotes
        text = text.replace('"', "\n")
    return other_framework(text) or (TORCH if imports_torch(text) else "")


def holds_settings(text: str, keys: Collection[str]) -> bool:
    """Whether a text gives one of some names, in lower case, a string of CUDA's as its value."""
    return any(name.lower() in keys for name in re.findall(_SETTING, text))


def of_project(frameworks: Collection[str]) -> frozenset[str]:
    """The frameworks that a file of a project is of which shows none itself."""
    return frozenset({TORCH}) if TORCH in frameworks or not frameworks else frozenset(frameworks)


def described(counts: Mapping[str, int]) -> str:
    """How many files of which framework there are, for a summary: ``MindSpore (12 files)``."""
    return _(", ").join(
        ngettext("{name} ({n} file)", "{name} ({n} files)", count, name=NAMES[name])
        for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )


def names_of(frameworks: Iterable[str]) -> str:
    """Frameworks as a text: ``MindSpore and JAX``."""
    return _(" and ").join(sorted(NAMES[each] for each in frameworks))


def why_not_started(file: str, framework: str) -> str:
    """Why there is no launcher for a script of another framework."""
    said = N_("{file} is a {framework} program, which torchrun does not start")
    return _(said, file=file, framework=NAMES[framework])


# -- names that show several ranks: reports/distributed/names.yaml -------------

_LIBRARIES, _CALLS = "distributed_libraries", "distributed_calls"


@cache
def distributed_words(calls_only: bool = False) -> frozenset[str]:
    """What the names begin with, and of torch's own what they end with: a file without it is not parsed.

    ``calls_only``: the words of the calls, which an import does not show.
    """
    return frozenset(
        entry.rpartition(".")[2] if calls_only or entry.startswith("torch.") else entry.partition(".")[0]
        for table in ((_CALLS,) if calls_only else (_LIBRARIES, _CALLS))
        for entry in entries(table)
    )


def entries(table: str) -> list[str]:
    """What a table of ``names.yaml`` holds."""
    found: list[str] = reports_yaml("distributed/names.yaml")[table]
    return found


def listed(table: str, name: str) -> bool:
    """Whether a table holds a full name, the package of it, or its last part behind a dot."""
    parts = name.split(".")
    packages = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    known = entries(table)
    return any(package in known for package in packages) or f".{parts[-1]}" in known
