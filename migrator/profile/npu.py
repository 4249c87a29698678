"""What torch_npu's profiler writes: the folder of a rank, ``…_ascend_pt``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from migrator.data_folders import reports_yaml
from migrator.language import N_, _
from migrator.profile.database import read_database
from migrator.profile.memory import moments, read_tables, seen_at_peak
from migrator.profile.model import Operator, Profile, place_of
from migrator.profile.streams import ProfileError, content, number, rows
from migrator.profile.trace import read_trace, split_step

OUTPUT = "ASCEND_PROFILER_OUTPUT"
_EMULATED = "EMULATED"  # how the emulator begins the name of a core
_SELF, _HOST = "Device Self Duration(us)", "Host Self Duration(us)"


def ranks(folder: Path) -> list[Path]:
    """The folders of ranks in a folder, or this one if it is one; those that have a profile."""
    places = [folder.parent if folder.name == OUTPUT else folder, *sorted(folder.glob("*_ascend_pt"))]
    return [place for place in places if (place / OUTPUT).is_dir() or (place / "FRAMEWORK").is_dir()]


def slowest(folders: list[Path]) -> tuple[Path, list[float]]:
    """The rank that computes longest in a step, as others wait for it; and how long each computes."""
    times = []
    for folder in folders:
        table = rows(folder / OUTPUT / "step_trace_time.csv", ("Computing",), lambda _line: None)
        each = [number(row, "Computing") for row in table]
        times.append(sum(each) / len(each) if each else 0.0)
    return folders[times.index(max(times))], times


def read_npu(folder: Path) -> Profile:
    """One rank's profile. Raises ProfileError."""
    output = folder / OUTPUT
    if not output.is_dir():
        said = N_(
            "{folder} is not analysed yet; where CANN is: "
            "python -c \"from torch_npu.profiler.profiler import analyse; analyse('{folder}')\""
        )
        raise ProfileError(said, folder=folder)
    profile = Profile(str(folder))
    _settings(folder, profile)
    _steps(output, profile)
    _kernels(output, profile)
    _operators(output, profile)
    if not profile.operators and not profile.kernels:
        for file in sorted(output.glob("*.db")):
            read_database(file, profile)
    read_tables(output, profile)
    trace = output / "trace_view.json"
    if trace.is_file():
        seen = read_trace(trace, profile, moments(profile))
        split_step(profile, seen)
        profile.emulated = profile.emulated or seen.emulated
        profile.kernels = profile.kernels or seen.kernels
        per_step(profile)
        for name, one in seen.on_cpu.items():
            one.add(0, 0.0)
            profile.operators.setdefault(name, Operator(name)).kind = "CPU"
        on_cpu = sorted(seen.on_cpu.values(), key=lambda one: -one.host)
        profile.found(
            "fallback",
            profile.parts.get("fallback", 0.0),
            ", ".join(one.name for one in on_cpu[:3]),
            (one.place for one in on_cpu),
        )
        profile.found("compile", seen.compiling / profile.steps)
        profile.found("garbage", seen.garbage / profile.steps)
        seen_at_peak(profile, seen.at)
    else:
        _without_trace(profile)
        per_step(profile)
    if not profile.step:
        raise ProfileError(N_("{folder}: no time of a step is in it"), folder=folder)
    _signs(output, profile)
    return profile


def per_step(profile: Profile) -> None:
    """Make times and calls of operators and kernels those of a step."""
    for one in [*profile.operators.values(), *profile.kernels.values()]:
        one.calls, one.device, one.host = (each / profile.steps for each in (one.calls, one.device, one.host))


def _settings(folder: Path, profile: Profile) -> None:
    variables = content(folder / "profiler_metadata.json", profile.tell).get("ENV_VARIABLES")
    profile.settings = {str(k): str(v) for k, v in variables.items()} if isinstance(variables, dict) else {}
    for file in sorted(folder.glob("profiler_info*.json")):
        info = content(file, profile.tell)
        profile.rank = str(info.get("rank_id", file.stem.removeprefix("profiler_info").strip("_")))


def _steps(output: Path, profile: Profile) -> None:
    names = ("Computing", "Communication(Not Overlapped)", "Free")
    table = list(rows(output / "step_trace_time.csv", names, profile.tell))
    if not table:
        return
    profile.steps, profile.whole = len(table), not table[0].get("Step")

    def mean(name: str) -> float:
        return sum(number(row, name) for row in table) / len(table)

    alone, bubble = mean(names[1]), mean("Bubble")
    profile.parts = {
        "compute": mean(names[0]),
        "communication": max(0.0, alone - bubble),
        "bubble": min(alone, bubble),
        "host": mean("Free"),
    }
    profile.communication, profile.step = mean("Communication"), sum(profile.parts.values())
    lengths = sorted(sum(number(row, name) for name in names) for row in table)
    if lengths[-1] > 2 * lengths[len(lengths) // 2]:
        said = N_(
            "the longest step took {longest:.0f} ms, the middle one {middle:.0f} ms: profile some steps more"
        )
        profile.tell(_(said, longest=lengths[-1] / 1000, middle=lengths[len(lengths) // 2] / 1000))


def _kernels(output: Path, profile: Profile) -> None:
    needed = ("Name", "Duration(us)")
    for row in rows(output / "kernel_details.csv", needed, profile.tell):
        core, kind = row.get("Accelerator Core", ""), row.get("Type", "")
        name = kind if kind not in ("", "N/A") else row["Name"]
        if core == "HCCL" or name.startswith("hcom_"):
            continue
        types = row.get("Input Data Types", "")
        note_kernel(profile, name, core, 1, number(row, "Duration(us)"), types, row.get("HF32 Eligible", ""))
    if not profile.kernels:
        for row in rows(output / "op_statistic.csv", ("OP Type", "Total Time(us)"), profile.tell):
            core = row.get("Core Type", "")
            note_kernel(profile, row["OP Type"], core, number(row, "Count"), number(row, "Total Time(us)"))


def note_kernel(
    profile: Profile, name: str, core: str, calls: float, time: float, types: str = "", fast: str = ""
) -> None:
    """Count kernels of a type; and products of float32, which the matrix units are slow at."""
    profile.emulated = profile.emulated or core.startswith(_EMULATED)
    profile.kernels.setdefault(f"{name} {core}", Operator(name, core)).add(calls, time)
    products = reports_yaml("profile.yaml")["kernels"]["float32-products"]
    if types.split(";")[0] in ("FLOAT", "DT_FLOAT") and fast != "YES" and name.startswith(tuple(products)):
        profile.kernels[f"{name} {core}"].host += time  # of a kernel: its time in float32


def _operators(output: Path, profile: Profile) -> None:
    for row in rows(output / "operator_details.csv", ("Name", _HOST), profile.tell):
        name, place = row["Name"], place_of(row.get("Call Stack", ""))
        one = profile.operators.setdefault(name, Operator(name))
        one.add(1, number(row, _SELF), number(row, _HOST), place)
        if name.startswith("Optimizer.step#"):  # with all that it calls
            one.host += number(row, "Host Total Duration(us)") - number(row, _HOST)


def _without_trace(profile: Profile) -> None:
    """Data loading by its mark alone: it is at most what the NPU is idle."""
    profile.tell(_("there is no trace_view.json: what the NPU waits for is known in part"))
    loading = sum(
        one.host for name, one in profile.operators.items() if name.startswith("enumerate(DataLoader)")
    )
    profile.steps = profile.steps or 1
    profile.parts["data"] = min(profile.parts.get("host", 0.0), loading / profile.steps)
    profile.parts["host"] = profile.parts.get("host", 0.0) - profile.parts["data"]


def _signs(output: Path, profile: Profile) -> None:
    """What the parts, kernels, operators and settings are signs of; ``reports/profile.yaml`` says it."""
    for part in ("data", "host", "bubble", "communication"):
        profile.found(part, profile.parts.get(part, 0.0))
    for sign, starts in reports_yaml("profile.yaml")["kernels"].items():
        found = [one for one in profile.kernels.values() if one.name.startswith(tuple(starts))]
        amount = (one.host if sign == "float32-products" else one.device for one in found)
        profile.found(sign, sum(amount), _names(found))
    on_ai_cpu = [one for one in profile.kernels.values() if one.kind == "AI_CPU"]
    profile.found("ai-cpu", sum(one.device for one in on_ai_cpu), _names(on_ai_cpu))
    for sign, starts in reports_yaml("profile.yaml")["operators"].items():
        called = [one for one in profile.operators.values() if one.name.startswith(tuple(starts))]
        places = [place for one in called for place in sorted(one.places, key=lambda p: -one.places[p])]
        profile.found(sign, sum(one.host for one in called), _names(called), places)
    if profile.settings.get("ASCEND_LAUNCH_BLOCKING") == "1":
        profile.found("blocking", profile.parts.get("host", 0.0))
    _collectives(content(output / "communication.json", profile.tell), profile)


def _names(found: list[Operator]) -> str:
    order = sorted(found, key=lambda one: -(one.device or one.host))
    return ", ".join(dict.fromkeys(one.name for one in order[:3]))


def _collectives(steps: dict[str, Any], profile: Profile) -> None:
    """Waiting for other ranks, and small packets, by the totals of each step."""
    waited = moved = small = 0.0
    for time, links in _totals(steps):
        waited += _of(time, "Wait Time(ms)")
        moved += _of(time, "Transit Time(ms)")
        for link in links.values():
            sizes = link.get("Size Distribution") if isinstance(link, dict) else None
            for size, counted in (sizes or {}).items():
                small += float(counted[1]) if float(size) < 1 else 0.0  # MB, ms
    alone = profile.parts.get("communication", 0.0)
    if waited + moved > 0:
        profile.found("slow-rank", alone * waited / (waited + moved))
        profile.found("small-packets", alone * min(small, moved) / (waited + moved))


def _totals(steps: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for kinds in steps.values():
        for calls in kinds.values() if isinstance(kinds, dict) else ():
            total = calls.get("Total Op Info") if isinstance(calls, dict) else None
            if isinstance(total, dict):
                links = total.get("Communication Bandwidth Info") or {}
                yield total.get("Communication Time Info") or {}, links


def _of(time: dict[str, Any], name: str) -> float:
    value = time.get(name, 0)
    return float(value) if isinstance(value, (int, float)) else 0.0
