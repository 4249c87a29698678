"""Memory: the allocator's tables of a profile, and snapshots of ``_dump_snapshot`` and of out-of-memory errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrator.language import N_
from migrator.profile.model import Memory, Operator, Profile, of_program
from migrator.profile.streams import ProfileError, number, rows, unpickled

_KB, _MB = 1024, 1024 * 1024
_RECORD = ("Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Device Type")
_TENSOR = ("Name", "Size(KB)", "Allocation Time(us)", "Device Type")
_MOST = 200  # tensors of a peak whose line is asked for


def read_tables(output: Path, profile: Profile) -> None:
    """Add the memory of each device from ``memory_record.csv`` and its like."""
    found: dict[str, Memory] = {}
    for row in rows(output / "memory_record.csv", _RECORD, profile.tell):
        component, device = row["Component"], row["Device Type"]
        memory = found.setdefault(device, Memory(device))
        allocated, reserved = (number(row, name) * _MB for name in _RECORD[2:4])
        if component in ("APP", "WORKSPACE"):
            memory.besides[component] = max(memory.besides.get(component, 0.0), reserved)
        elif component == "PTA":
            if allocated > memory.allocated:
                memory.allocated, memory.when = allocated, number(row, "Timestamp(us)")
            if reserved > memory.reserved:  # it had to grow: what it had did not fit
                active = max(allocated, number(row, "Total Active(MB)") * _MB)
                memory.reserved, memory.unused = reserved, reserved - active
    for row in rows(output / "npu_module_mem.csv", ("Component", "Total Reserved(MB)"), profile.tell):
        memory = found.get(row.get("Device", "")) or next(iter(found.values()), Memory(""))
        name, reserved = row["Component"], number(row, "Total Reserved(MB)") * _MB
        memory.besides[name] = max(memory.besides.get(name, 0.0), reserved)
    profile.memory += [memory for memory in found.values() if memory.reserved]
    _holders(output, profile, found)


def _holders(output: Path, profile: Profile, found: Mapping[str, Memory]) -> None:
    """What lives at each peak, by the operator that asked for it."""
    held: dict[tuple[str, str], Operator] = {}
    for row in rows(output / "operator_memory.csv", _TENSOR, profile.tell):
        memory, start = found.get(row["Device Type"]), number(row, "Allocation Time(us)")
        end = number(row, "Release Time(us)")
        if memory and start <= memory.when and (not end or end > memory.when) and row["Name"][:6] != "cann::":
            one = held.setdefault((memory.device, row["Name"]), Operator(row["Name"]))
            one.add(1, number(row, "Size(KB)") * _KB, place=f"{start!r}")
    for device, memory in found.items():
        mine = [one for (of, _name), one in held.items() if of == device]
        memory.holders = sorted(mine, key=lambda one: -one.device)


def moments(profile: Profile) -> list[float]:
    """When the largest tensors of the peaks were made."""
    sizes = [
        (size, float(when))
        for memory in profile.memory
        for one in memory.holders
        for when, size in one.places.items()
    ]
    return [when for _size, when in sorted(sizes, reverse=True)[:_MOST]]


def seen_at_peak(profile: Profile, at: Mapping[float, tuple[str, str]]) -> None:
    """Give tensors of a peak the line and the module that made them, as far as a trace tells."""
    for memory in profile.memory:
        for one in memory.holders:
            times, one.places = one.places, {}
            for when, size in times.items():
                line, module = at.get(float(when), ("", ""))
                if line:
                    one.places[line] = one.places.get(line, 0.0) + size
                if module:
                    memory.modules[module] = memory.modules.get(module, 0.0) + size


def read_snapshot(file: Path) -> Profile:
    """The memory in a snapshot, by the line that asked for it. Raises ProfileError."""
    read = unpickled(file)
    segments = read.get("segments") if isinstance(read, dict) else None
    if not isinstance(segments, list):
        raise ProfileError(N_("{name} is not a memory snapshot: {what}"), name=file.name, what="segments")
    found: dict[int, Memory] = {}
    held: dict[tuple[int, str], Operator] = {}
    try:
        for segment in segments:
            device = segment.get("device", 0)
            memory = found.setdefault(device, Memory(f"device {device}"))
            memory.reserved += segment["total_size"]
            blocks = segment["blocks"]
            active = [block for block in blocks if block["state"] != "inactive"]
            for block in active:
                memory.allocated += block["size"]
                place = _line(block.get("frames") or ())
                held.setdefault((device, place), Operator("", place)).add(1, block["size"], place=place)
            free = [block["size"] for block in blocks if block["state"] == "inactive"]
            memory.unused += sum(free) if active else 0  # a segment without tensors can be given back
            memory.largest_free = max([memory.largest_free, *free])
        for device, entries in enumerate(read.get("device_traces") or ()):
            for entry in entries:
                if entry.get("action") == "oom":
                    found.setdefault(device, Memory(f"device {device}")).refused = entry["size"]
    except (AttributeError, KeyError, TypeError) as error:
        said = N_("{name} is not a memory snapshot: {what}")
        raise ProfileError(said, name=file.name, what=str(error)) from None
    for device, memory in found.items():
        mine = [one for (of, _place), one in held.items() if of == device]
        memory.holders = sorted(mine, key=lambda one: -one.device)
    return Profile(str(file), memory=list(found.values()))


def _line(frames: Any) -> str:
    """The innermost frame of the program."""
    for frame in frames:
        if str(frame["filename"]).endswith(".py") and of_program(str(frame["filename"])):
            return f"{frame['filename']}:{frame['line']} {frame['name']}"
    return ""
