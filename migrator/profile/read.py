"""Which profile a path is, and what torch_npu's profiler writes: the folder of a rank, ``…_ascend_pt``.

Memory is in the allocator's tables of a profile, and in snapshots, as ``_dump_snapshot`` writes them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from migrator.data_folders import reports_yaml
from migrator.files.errors import shown
from migrator.language import N_, _
from migrator.profile.model import Memory, Operator, Profile, place_of
from migrator.profile.streams import ProfileError, content, number, rows, unpickled, unreadable
from migrator.profile.trace import read_trace

_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_STEPS = f"{_OUTPUT}/step_trace_time.csv"
_STEP = ("Computing", "Communication(Not Overlapped)", "Bubble", "Free", "Communication")
_HOST = "Host Self Duration(us)"
_COLLECTIVES = ("HCCL", "COMMUNICATION")  # cores of tasks of collectives
_SNAPSHOTS = (".pickle", ".pkl")
_NO_STEP = N_("{folder}: contains no step times")


def read_profile(path: Path) -> Profile:
    """Read a rank's folder, a folder of ranks, a trace or a memory snapshot. Raises ProfileError."""
    if not path.exists():
        raise ProfileError(N_("{path}: no such file or folder"), path=shown(path))
    try:
        folder = path.parent if path.name == _OUTPUT else path
        profile = _read_folder(folder) if path.is_dir() else _read_file(path)
    except OSError as error:
        raise ProfileError("{line}", line=unreadable(path, error)) from None
    note_memory(profile)
    profile.advice.sort(key=lambda one: (one.memory, -one.gain))
    return profile


def _read_folder(folder: Path) -> Profile:
    places = (folder, *sorted(folder.glob("*_ascend_pt")))
    ranks = [place for place in places if (place / _OUTPUT).is_dir()]
    ranks = ranks or [place for place in places if (place / "FRAMEWORK").is_dir()]  # _read_rank refuses these
    if ranks:
        tables = (list(rows(rank / _STEPS, (), [])) for rank in ranks)
        times = [sum(number(row, "Computing") for row in table) / (len(table) or 1) for table in tables]
        profile = _read_rank(ranks[times.index(max(times))])  # the others wait for it
        if len(ranks) > 1:
            said = N_("{count} ranks: this one computes longest, {most:.3g} ms; the shortest: {least:.3g} ms")
            values = {"most": max(times) / 1000, "least": min(times) / 1000}
            profile.notes.append(_(said, count=len(ranks), **values))
        return profile
    files = sorted(file for file in folder.iterdir() if file.suffix in (*_SNAPSHOTS, ".json", ".gz"))
    files = [file for file in files if ".pt.trace.json" in file.name] or files
    if len(files) != 1:
        said = N_("{path}: expected a folder …_ascend_pt, a trace or a memory snapshot")
        raise ProfileError(said, path=shown(folder))
    return _read_file(files[0])


def _read_file(path: Path) -> Profile:
    if path.suffix in _SNAPSHOTS:
        return read_snapshot(path)
    profile = Profile(str(path))
    read_trace(path, profile)
    return _of_a_step(profile)


def _read_rank(folder: Path) -> Profile:
    output, profile = folder / _OUTPUT, Profile(str(folder))
    if not output.is_dir():
        said = N_(
            '{folder} is not analysed yet; on a machine with CANN run: python -c "from '
            "torch_npu.profiler.profiler import analyse; analyse('{folder}')\""
        )
        raise ProfileError(said, folder=folder)
    variables = content(folder / "profiler_metadata.json", profile.notes).get("ENV_VARIABLES")
    profile.settings = {str(k): str(v) for k, v in variables.items()} if isinstance(variables, dict) else {}
    for file in folder.glob("profiler_info_*.json"):
        profile.rank = file.stem.removeprefix("profiler_info_")
    if table := list(rows(folder / _STEPS, _STEP[:2], profile.notes)):
        mean = (sum(number(row, name) for row in table) / len(table) for name in _STEP)
        compute, alone, bubble, free, profile.communication = mean
        bubble, profile.marked = min(alone, bubble), bool(table[0].get("Step"))
        profile.steps, profile.step = len(table), compute + alone + free
        profile.parts = {"compute": compute, "communication": alone - bubble, "bubble": bubble, "host": free}
    _read_operators(output, profile)
    tensors, trace, lines = read_tables(output, profile), output / "trace_view.json", dict[float, str]()
    if trace.is_file():
        lines = read_trace(trace, profile, (when for _memory, _name, when, _size in tensors))
    else:
        profile.notes.append(_("trace_view.json is missing: the reason why the NPU waits is unknown"))
    for memory, name, when, size in tensors:
        memory.holders.setdefault(name, Operator(name)).add(1, size, place=lines.get(when, ""))
    _of_a_step(profile)
    _note_waiting(output / "communication.json", profile)
    return profile


def _read_operators(output: Path, profile: Profile) -> None:
    for row in rows(output / "kernel_details.csv", ("Name", "Duration(us)"), profile.notes):
        kind, core = row.get("Type", "N/A"), row.get("Accelerator Core", "")
        # Level0 has no types: aclnnMatmul_MatMulCommon_MatMulV2 is a MatMulV2.
        name = row["Name"].rpartition("_")[2] if kind in ("", "N/A") else kind
        types = "" if row.get("HF32 Eligible") == "YES" else row.get("Input Data Types", "")
        outside = profile.marked and row.get("Step Id") == ""  # of any step
        if core not in _COLLECTIVES and not row["Name"].startswith("hcom_") and not outside:
            time, float32 = number(row, "Duration(us)"), types.split(";")[0] in ("FLOAT", "DT_FLOAT")
            _kernel(profile, name, core).add(1, time, time * float32)
    if not profile.kernels:
        for row in rows(output / "op_statistic.csv", ("OP Type", "Total Time(us)"), profile.notes):
            kernel = _kernel(profile, row["OP Type"], row.get("Core Type", ""))
            kernel.add(number(row, "Count"), number(row, "Total Time(us)"))
    for row in rows(output / "operator_details.csv", ("Name", _HOST), profile.notes):
        # Of a step of the optimizer all that it calls.
        host = "Host Total Duration(us)" if row["Name"].startswith("Optimizer.") else _HOST
        one = profile.operators.setdefault(row["Name"], Operator(row["Name"]))
        device = number(row, "Device Self Duration(us)")
        one.add(1, device, number(row, host), place_of(row.get("Call Stack", "")))


def _kernel(profile: Profile, name: str, core: str) -> Operator:
    """Kernels of a type; their ``host`` is the time of those with inputs of float32."""
    profile.emulated = profile.emulated or core.startswith("EMULATED")
    return profile.kernels.setdefault(f"{name} {core}", Operator(name, core))


def _of_a_step(profile: Profile) -> Profile:
    """Make sums over all steps those of a mean step; note what they, and settings, are signs of.

    Raises ProfileError.
    """
    if not profile.steps:
        raise ProfileError(_NO_STEP, folder=shown(profile.path))
    for one in (*profile.operators.values(), *profile.kernels.values()):
        one.calls, one.device, one.host = (x / profile.steps for x in (one.calls, one.device, one.host))
        one.places = {place: time / profile.steps for place, time in one.places.items()}
    for sign, text in reports_yaml("profile.yaml")["signs"].items():
        kernels, operators = tuple(text.get("kernels", ())), tuple(text.get("operators", ()))
        found = [one for one in profile.kernels.values() if one.name.startswith(kernels)]
        profile.found(sign, sum(one.host if "float32" in text else one.device for one in found), found)
        called = [one for one in profile.operators.values() if one.name.startswith(operators)]
        # What the NPU does meanwhile is not lost.
        profile.found(sign, min(profile.parts["host"], sum(one.host for one in called)), called)
        if sign in ("data", "bubble", "communication", "host"):
            profile.found(sign, profile.parts.get(sign, 0.0))
    on_ai_cpu = [one for one in profile.kernels.values() if one.kind == "AI_CPU"]
    profile.found("ai-cpu", sum(one.device for one in on_ai_cpu), on_ai_cpu)
    if profile.settings.get("ASCEND_LAUNCH_BLOCKING") == "1":
        profile.found("blocking", profile.parts["host"])
    return profile


def _note_waiting(file: Path, profile: Profile) -> None:
    """How much of its collectives a rank waits for others, by the totals of each step."""
    waited = moved = 0.0
    try:
        for calls in (calls for kinds in content(file, profile.notes).values() for calls in kinds.values()):
            times = calls.get("Total Op Info", {}).get("Communication Time Info", {})
            waited += times.get("Wait Time(ms)", 0)
            moved += times.get("Transit Time(ms)", 0)
    except (AttributeError, TypeError) as error:
        profile.notes.append(unreadable(file, error))
    profile.found("slow-rank", profile.parts["communication"] * waited / ((waited + moved) or 1))


def insight_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of ``npu_insight.json`` in a result, or in its folder of reports. Raises ProfileError."""
    for place in (folder, folder / "migration_report", folder / "npu_insight"):
        if (place / "npu_insight.json").is_file():
            found = content(place / "npu_insight.json", []).get("rows")
            return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    said = N_("--insight: no npu_insight.json in {folder}; npumigrate verify --insight writes it")
    raise ProfileError(said, folder=folder)


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
