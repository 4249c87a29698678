"""What ``reports/distributed/horovod.yaml`` and ``horovod_helpers.py`` say."""

from __future__ import annotations

import ast
from typing import Any

from migrator.convert.draft import DIST
from migrator.convert.texts import functions, read
from migrator.names.tree import parse, walk

PACKAGE = "horovod.torch"
# A text that new code holds, and the import that it needs.
_IMPORTS = (
    ("gc.", "import gc"),
    ("io.", "import io"),
    ("os.", "import os"),
    ("torch.", "import torch"),
    ("dist.", DIST),
    ("default_hooks.", "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks"),
    ("DistributedDataParallel(", "from torch.nn.parallel import DistributedDataParallel"),
)


def table(name: str) -> Any:
    """One of the tables."""
    return read("horovod.yaml")[name]


def advice(name: str) -> str:
    """What a person does about a name of Horovod's that has no counterpart."""
    by_hand: dict[str, str] = table("by_hand")
    first = name.split(".")[0]
    return " ".join(by_hand.get(first, "Write it with torch.distributed.").split())


def _helpers() -> dict[str, str]:
    """The helpers' texts by their names, in the order of the file."""
    return functions("horovod_helpers.py")


def is_helper(name: str) -> bool:
    """Whether there is a helper of this name."""
    return name in _helpers()


def helpers(names: set[str]) -> str:
    """The text of these helpers, with those that they use."""
    every = _helpers()
    wanted: set[str] = set()
    waiting = [name for name in names if name in every]
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting += [word for word in names_in(every[name]) if word in every]
    return "\n\n".join(text for name, text in every.items() if name in wanted)


def names_in(code: str) -> set[str]:
    """The bare names that stand in code. Raises what parsing does."""
    return {node.id for node in walk(parse(code)) if isinstance(node, ast.Name)}


def imports(code: str) -> list[str]:
    """The imports that new code needs."""
    text = ast.unparse(parse(code))
    words = names_in(code)
    return [line for start, line in _IMPORTS if start[:-1] in words and start in text]


def import_order(line: str) -> int:
    """The place of an import among those that new code needs."""
    return [known for _, known in _IMPORTS].index(line)
