"""Whether ``releases.csv`` holds together: its words, its order, what the rows of one torch or CANN share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# What the cells look like; all but the first two may be empty.
_CELLS = {
    "torch_npu": r"\d+\.\d+\.\d+(rc\d+|\.post\d+)?",
    "torch": r"\d+\.\d+\.\d+",
    "python": r"(3\.\d+( 3\.\d+)*)?",
    "torchvision": r"(\d+\.\d+\.\d+)?",
    "torchaudio": r"(\d+\.\d+\.\d+)?",
    "cann": r"(\d+\.\d+\.(RC)?\d+(\.\d+)?)?",
    "driver": r"(V\d+R\d+C\d+(-V\d+R\d+C\d+)?( (?=V)|\Z))*",
    "apex": r"(\d+\.\d+\+ascend)?",
}


def order_of(release: str) -> list[int]:
    """What sorts releases: 2.1.0rc1, 2.1.0, 2.1.0.post4."""
    numbers = [int(number) for number in re.findall(r"\d+", release)]
    return [*numbers[:3], -1 if "rc" in release else 0, *numbers[3:]]


def is_release(text: str) -> bool:
    """Whether a text is such a release, and no build of one's own."""
    return re.fullmatch(_CELLS["torch_npu"], text) is not None


def release_problems(records: Sequence[dict[str, str]]) -> Iterator[str]:
    """A line on each thing that is wrong with the rows of ``releases.csv``."""
    before: list[int] = []
    of_torch: dict[str, tuple[str, ...]] = {}
    of_cann: dict[str, str] = {}
    for record in records:
        name, torch, cann = record["torch_npu"], record["torch"], record["cann"]
        wrong = [column for column, words in _CELLS.items() if not re.fullmatch(words, record[column])]
        for column in wrong:
            yield f"releases.csv: {name}: {column} is {record[column]!r}"
        if wrong:
            continue
        order = order_of(name)
        if order[:3] != [int(number) for number in torch.split(".")]:
            yield f"releases.csv: {name} is not for torch {torch}"
        if order <= before:
            yield f"releases.csv: {name} is not in the order of versions"
        before = order
        same = tuple(record[column] for column in ("python", "torchvision", "torchaudio"))
        if of_torch.setdefault(torch, same) != same:
            words = "Python, torchvision or torchaudio differ from those of torch"
            yield f"releases.csv: {name}: {words} {torch}"
        if of_cann.setdefault(cann, record["driver"]) != record["driver"]:
            yield f"releases.csv: {name}: the driver differs from that of CANN {cann}"
