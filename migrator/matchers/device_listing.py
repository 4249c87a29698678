"""What ``nvidia-smi`` prints of each device, and Python source that gives the same lines on an NPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Optional

from migrator.api_support import npu_names
from migrator.matchers.context import FileContext

_COUNTED = re.compile(r"wc -l|grep -c (?:GPU|UUID|\.|\^)")
_FIRST = re.compile(r"head -(?:n ?)?1")
_KEPT = re.compile(r"grep (?:GPU|UUID)|cat")
_CALL = re.compile(r"\btorch\.npu\.(\w+)")
# What became of the output; "repr" is the text that str() makes of bytes.
Kind = Literal["bytes", "text", "repr", "lines", "byte lines", "count"]


@dataclass(frozen=True)
class Printed:
    """What a command prints, a line for each device.

    ``lists`` gives the line by what stands behind the command, ``fields`` the value of what ``--query-gpu``
    asks for, ``units`` its unit; ``{i}`` in a line, and ``i`` in a value, is the device.
    """

    lists: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """Lines, one for each device: ``line`` is the inside of an f-string.

    ``header`` stands above them; ``device`` is the only one that is listed. ``counted``: the lines are only
    counted; ``file`` is where they go, where that is no pipe.
    """

    line: str
    header: str = ""
    device: str = ""
    counted: bool = False
    file: str = ""

    @property
    def every(self) -> str:
        """The devices, as source."""
        return f"[{self.device}]" if self.device else "range(torch.npu.device_count())"


@dataclass(frozen=True)
class Form:
    """What became of the output: ``more`` empty lines or headers beside those of the devices.

    ``ends``: the last line has a line break; ``breaks``: each line of a list has its own.
    """

    kind: Kind
    ends: bool = True
    more: int = 0
    breaks: bool = False


def read(printed: Printed, words: Sequence[str]) -> Optional[Listing]:
    """The lines that a command prints, given by its words; None where that is not known."""
    if not all(words):
        return None
    writes = len(words) > 2 and words[-2] == ">"
    words, file = (words[:-2], words[-1]) if writes else (words, "")
    stages = [stage.strip() for stage in " ".join(words[1:]).split("|")]
    listing, used = None, len(stages)
    while used and listing is None:
        line = printed.lists.get(" | ".join(stages[:used]))
        listing = Listing(line) if line else _query(printed, stages[0].split()) if used == 1 else None
        used -= listing is None
    for stage in stages[used:] if listing else ():
        listing = listing and _piped(listing, stage)
    return listing and replace(listing, file=file)


def functions(listing: Listing) -> set[str]:
    """The functions of torch.npu that give the lines."""
    return {"device_count"} if listing.counted else {"device_count", *named_in(listing.line)}


def named_in(text: str) -> set[str]:
    """The functions of torch.npu that stand in source."""
    return set(_CALL.findall(text))


def all_known(context: FileContext, names: Iterable[str]) -> bool:
    """Whether torch_npu has such functions, in the version that is asked for."""
    known = (npu_names.look_up(f"torch.cuda.{name}", context.version) for name in names)
    return all(each is not None and each.npu for each in known)


def knows_visible_devices(text: str) -> bool:
    """Whether a file says or reads which devices are visible.

    torch.npu numbers only those, and once it was asked for memory no others become visible.
    """
    return "VISIBLE_DEVICES" in text


def _piped(listing: Listing, stage: str) -> Optional[Listing]:
    if listing.counted:
        return None
    if _COUNTED.fullmatch(stage):
        return replace(listing, counted=True)
    if _FIRST.fullmatch(stage) and not listing.header:
        return replace(listing, device=listing.device or "0")
    if stage == "tail -n +2" and listing.header:
        return replace(listing, header="")
    return listing if _KEPT.fullmatch(stage) and not listing.header else None


def _query(printed: Printed, words: Sequence[str]) -> Optional[Listing]:
    given: dict[str, str] = {}
    waiting = ""
    for word in words:
        name, equals, value = (waiting, "=", word) if waiting else word.partition("=")
        waiting = "" if equals else name
        if equals:
            given[name] = value
    asked = [each.strip() for each in given.pop("--query-gpu", "").split(",")]
    how = given.pop("--format", "").replace(" ", "").split(",")
    device = given.pop("--id", given.pop("-i", ""))
    if given or waiting or "csv" not in how or not set(asked) <= printed.fields.keys():
        return None
    if device and not device.isdecimal():
        return None
    units = [printed.units.get(each, "") for each in asked]
    heads = [f"{each} [{unit}]" if unit else each for each, unit in zip(asked, units)]
    behind = ["" if "nounits" in how or not unit else f" {unit}" for unit in units]
    line = ", ".join(f"{{{printed.fields[each]}}}{unit}" for each, unit in zip(asked, behind))
    return Listing(line, "" if "noheader" in how else ", ".join(heads), device)


def source(listing: Listing, form: Form) -> str:
    """Python source that gives the lines in some form; empty where there is none for it."""
    if form.kind == "count":
        count = "1" if listing.device else "torch.npu.device_count()"
        return f"{count} {'+' if form.more > 0 else '-'} {abs(form.more)}" if form.more else count
    if listing.counted:
        text = 'f"{torch.npu.device_count()}\\n"' if form.ends else "str(torch.npu.device_count())"
        return {"text": text, "bytes": f"{text}.encode()"}.get(form.kind, "")
    if form.kind == "lines":
        end = "\\n" if form.breaks else ""
        return "" if form.more else f'[f"{listing.line}{end}" for i in {listing.every}]'
    if form.kind in ("repr", "byte lines"):
        return ""
    end, joint = ("\\n", '""') if form.ends else ("", '"\\n"')
    each = f'f"{listing.line}{end}" for i in {listing.every}'
    text = f"{joint}.join({each})"
    if listing.header:
        text = f'{joint}.join(["{listing.header}{end}", *({each})])'
    elif listing.device:
        line = re.sub(r"\bi\b", listing.device, listing.line)
        text = f'f"{line}{end}"'
    return text if form.kind == "text" else f"{text}.encode()"


def program(listing: Listing) -> str:
    """A Python program, without single quotes, that prints the lines."""
    if listing.counted:
        return "import torch, torch_npu; print(torch.npu.device_count())"
    header = f'print("{listing.header}"); ' if listing.header else ""
    return f'import torch, torch_npu; {header}[print(f"{listing.line}") for i in {listing.every}]'
