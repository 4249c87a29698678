"""Memory: the allocator's tables of a profile, and snapshots, as ``_dump_snapshot`` writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from migrator.profile.model import Memory, Operator, Profile, of_program
from migrator.profile.streams import ProfileError, number, rows, unpickled, unreadable

_KB, _MB = 1024, 1024 * 1024
_RECORD = ("Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Device Type")
_MODULE = "Total Reserved(MB)"
_TENSOR = ("Name", "Size(KB)", "Allocation Time(us)", "Device Type")
_MOST = 200  # tensors of a peak whose line is asked for
_SETTINGS = ("PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_EXPANDABLE = "expandable_segments:True"


def read_tables(output: Path, profile: Profile) -> None:
    """Add the memory of each device from ``memory_record.csv`` and its like."""
    found: dict[str, Memory] = {}
    for row in rows(output / "memory_record.csv", _RECORD, profile.notes):
        amounts = (number(row, name) * _MB for name in (*_RECORD[2:4], "Total Active(MB)"))
        note_record(found, row["Component"], row["Device Type"], number(row, "Timestamp(us)"), *amounts)
    for row in rows(output / "npu_module_mem.csv", ("Component", _MODULE), profile.notes):
        besides, amount = found.setdefault(row.get("Device", ""), Memory("")).besides, number(row, _MODULE)
        besides[row["Component"]] = max(besides.get(row["Component"], 0.0), amount * _MB)
    for row in rows(output / "operator_memory.csv", _TENSOR, profile.notes):
        held, start = found.get(row["Device Type"]), number(row, "Allocation Time(us)")
        end = number(row, "Release Time(us)") or float("inf")
        if held and start <= held.when < end and not row["Name"].startswith("cann::"):
            one = held.holders.setdefault(row["Name"], Operator(row["Name"]))
            one.add(1, number(row, "Size(KB)") * _KB, place=f"{start!r}")
    profile.memory += [memory for memory in found.values() if memory.reserved]


def note_record(found: dict[str, Memory], component: str, device: str, time: float, *amounts: float) -> None:
    """Note what a component has at a time: allocated, reserved and active bytes."""
    memory, (allocated, reserved, active) = found.setdefault(device, Memory(device)), amounts
    if component in ("APP", "WORKSPACE"):
        memory.besides[component] = max(memory.besides.get(component, 0.0), reserved)
    elif component == "PTA":
        if allocated > memory.allocated:
            memory.allocated, memory.when = allocated, time
        if reserved > memory.reserved:  # it had to grow: what it had did not fit
            memory.reserved, memory.unused = reserved, reserved - max(allocated, active)


def moments(profile: Profile) -> list[float]:
    """When the largest tensors of the peaks were made."""
    holders = [one for memory in profile.memory for one in memory.holders.values()]
    sizes = ((size, float(when)) for one in holders for when, size in one.places.items())
    return [when for _size, when in sorted(sizes, reverse=True)[:_MOST]]


def seen_at_peak(profile: Profile, at: dict[float, dict[str, str]]) -> None:
    """Give tensors of a peak the line and the module that made them, as far as a trace tells."""
    for memory in profile.memory:
        for one in memory.holders.values():
            times, one.places = one.places, {}
            for when, amount in times.items():
                seen = at.get(float(when), {})
                one.add(0, 0.0, amount, seen.get("line", ""))
                if module := seen.get("module"):
                    memory.modules[module] = memory.modules.get(module, 0.0) + amount


def read_snapshot(file: Path) -> Profile:
    """The memory in a snapshot, by the line that asked for it. Raises ProfileError."""
    read, found = unpickled(file), dict[int, Memory]()
    try:
        for segment in read["segments"]:
            device = segment.get("device", 0)
            memory = found.setdefault(device, Memory(f"device {device}"))
            memory.reserved += segment["total_size"]
            free = [block["size"] for block in segment["blocks"] if block["state"] == "inactive"]
            if sum(free) < segment["total_size"]:  # else it can be given back
                memory.unused += sum(free)
            for block in segment["blocks"]:
                if block["state"] != "inactive":
                    memory.allocated += block["size"]
                    place = _line(block.get("frames") or ())
                    memory.holders.setdefault(place, Operator("")).add(1, block["size"], place=place)
        for device, entries in enumerate(read.get("device_traces") or ()):
            for entry in entries:
                if entry.get("action") == "oom":
                    found.setdefault(device, Memory(f"device {device}")).refused = entry["size"]
    except (AttributeError, KeyError, TypeError) as error:
        raise ProfileError("{line}", line=unreadable(file, error)) from None
    return Profile(str(file), memory=list(found.values()))


def _line(frames: Any) -> str:
    """The innermost frame of the program."""
    own = (f for f in frames if str(f["filename"]).endswith(".py") and of_program(str(f["filename"])))
    return next((f"{frame['filename']}:{frame['line']} {frame['name']}" for frame in own), "")


def note_memory(profile: Profile) -> None:
    """What the memory of each device is a sign of."""
    settings = "".join(profile.settings.get(name, "") for name in _SETTINGS)
    for memory in profile.memory:
        held = memory.holders.values()
        profile.found("refused", memory.refused, held, memory)
        fragmented = "still-fragmented" if _EXPANDABLE in settings else "fragmented"
        profile.found(fragmented, memory.unused, held, memory)
        for component, sign in {"WORKSPACE": "workspace", "HCCL": "hccl"}.items():
            profile.found(sign, memory.besides.get(component, 0.0), (), memory)
