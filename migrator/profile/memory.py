"""Memory: the allocator's tables of a profile, and snapshots, as ``_dump_snapshot`` writes them."""

from __future__ import annotations

from pathlib import Path

from migrator.profile.model import Memory, Operator, Profile, place_of
from migrator.profile.streams import ProfileError, number, rows, unpickled, unreadable

_KB, _MB = 1024, 1024 * 1024
_RECORD = ("Component", "Timestamp(us)", "Total Allocated(MB)", "Total Reserved(MB)", "Device Type")
_TENSOR = ("Name", "Size(KB)", "Allocation Time(us)", "Device Type")
_SETTINGS = ("PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
Tensors = list[tuple[Memory, str, float, float]]


def read_tables(output: Path, profile: Profile) -> Tensors:
    """Add the memory of each device from ``memory_record.csv`` and its like.

    Gives the tensors of the peaks: the memory, the operator that made one, when, and the bytes.
    """
    found: dict[str, Memory] = {}
    for row in rows(output / "memory_record.csv", _RECORD, profile.notes):
        memory = found.setdefault(row["Device Type"], Memory(row["Device Type"]))
        columns = (*_RECORD[2:4], "Total Active(MB)")
        allocated, reserved, active = (number(row, name) * _MB for name in columns)
        if row["Component"] in ("APP", "WORKSPACE"):
            memory.has(row["Component"], reserved)
        elif row["Component"] == "PTA":
            if allocated > memory.allocated:
                memory.allocated, memory.when = allocated, number(row, "Timestamp(us)")
            if reserved > memory.reserved:  # it had to grow: what it had did not fit
                memory.reserved, memory.unused = reserved, reserved - max(allocated, active)
    for row in rows(output / "npu_module_mem.csv", ("Component", _RECORD[3]), profile.notes):
        memory = found.setdefault(row.get("Device", ""), Memory(""))
        memory.has(row["Component"], number(row, _RECORD[3]) * _MB)
    profile.memory += [memory for memory in found.values() if memory.reserved]
    tensors: Tensors = []
    for row in rows(output / "operator_memory.csv", _TENSOR, profile.notes):
        held, start = found.get(row["Device Type"]), number(row, "Allocation Time(us)")
        end = number(row, "Release Time(us)") or float("inf")
        if held and start <= held.when < end and not row["Name"].startswith("cann::"):
            tensors.append((held, row["Name"], start, number(row, "Size(KB)") * _KB))
    return tensors


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
                    frames = (f"{f['filename']}({f['line']}): {f['name']}" for f in block.get("frames") or ())
                    place = place_of(";".join(frames))
                    memory.holders.setdefault(place, Operator("")).add(1, block["size"], place=place)
        for device, entries in enumerate(read.get("device_traces") or ()):
            for entry in entries:
                if entry.get("action") == "oom":
                    found.setdefault(device, Memory(f"device {device}")).refused = int(entry["size"])
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ProfileError("{line}", line=unreadable(file, error)) from None
    return Profile(str(file), memory=list(found.values()))


def note_memory(profile: Profile) -> None:
    """What the memory of each device is a sign of."""
    settings = "".join(profile.settings.get(name, "") for name in _SETTINGS)
    fragmented = "still-fragmented" if "expandable_segments:True" in settings else "fragmented"
    for memory in profile.memory:
        held = memory.holders.values()
        profile.found("refused", memory.refused, held, memory)
        profile.found(fragmented, memory.unused, held, memory)
        profile.found("workspace", memory.besides.get("WORKSPACE", 0.0), (), memory)
        profile.found("hccl", memory.besides.get("HCCL", 0.0), (), memory)
