"""What torch_npu's profiler writes: the folder of a rank, ``…_ascend_pt``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from migrator.data_folders import reports_yaml
from migrator.language import N_, _
from migrator.profile.database import read_database
from migrator.profile.memory import moments, read_tables, seen_at_peak
from migrator.profile.model import Operator, Profile, place_of
from migrator.profile.streams import ProfileError, content, number, rows, unreadable
from migrator.profile.trace import read_trace

OUTPUT = "ASCEND_PROFILER_OUTPUT"
_STEP = ("Computing", "Communication(Not Overlapped)", "Bubble", "Free", "Communication")
_HOST = "Host Self Duration(us)"
_COLLECTIVES = ("HCCL", "COMMUNICATION")  # cores of tasks of collectives


def read_npu(folder: Path) -> Profile:
    """One rank's profile. Raises ProfileError."""
    output, profile = folder / OUTPUT, Profile(str(folder))
    if not output.is_dir():
        said = N_(
            "{folder} is not analysed yet; where CANN is: "
            "python -c \"from torch_npu.profiler.profiler import analyse; analyse('{folder}')\""
        )
        raise ProfileError(said, folder=folder)
    variables = content(folder / "profiler_metadata.json", profile.notes).get("ENV_VARIABLES")
    profile.settings = {str(k): str(v) for k, v in variables.items()} if isinstance(variables, dict) else {}
    for file in folder.glob("profiler_info_*.json"):
        profile.rank = file.stem.removeprefix("profiler_info_")
    table = list(rows(output / "step_trace_time.csv", _STEP[:2], profile.notes))
    note_steps(profile, [[number(row, name) for name in _STEP] for row in table])
    profile.marked = not table or bool(table[0].get("Step"))
    _read_operators(output, profile)
    if not profile.operators and not profile.kernels:
        for file in sorted(output.glob("*.db")):
            read_database(file, profile)
    read_tables(output, profile)
    if (output / "trace_view.json").is_file():
        seen_at_peak(profile, read_trace(output / "trace_view.json", profile, moments(profile)))
    else:
        profile.notes.append(_("there is no trace_view.json: why the NPU waits is not known"))
    if not profile.steps:
        raise ProfileError(N_("{folder}: no time of a step is in it"), folder=folder)
    profile.per_step()
    note_signs(profile)
    _note_waiting(output / "communication.json", profile)
    return profile


def note_steps(profile: Profile, table: Sequence[Sequence[float]]) -> None:
    """The parts of a mean step, by rows as step_trace_time.csv and its like have them."""
    if not table:
        return
    compute, alone, bubble, free, communication = (sum(each) / len(table) for each in zip(*table))
    bubble = min(alone, bubble)
    profile.steps, profile.step, profile.communication = len(table), compute + alone + free, communication
    profile.parts = {"compute": compute, "communication": alone - bubble, "bubble": bubble, "host": free}


def _read_operators(output: Path, profile: Profile) -> None:
    for row in rows(output / "kernel_details.csv", ("Name", "Duration(us)"), profile.notes):
        kind, core = row.get("Type", "N/A"), row.get("Accelerator Core", "")
        # Level0 has no types: aclnnMatmul_MatMulCommon_MatMulV2 is a MatMulV2.
        name = row["Name"].rpartition("_")[2] if kind in ("", "N/A") else kind
        types = "" if row.get("HF32 Eligible") == "YES" else row.get("Input Data Types", "")
        outside = profile.marked and row.get("Step Id") == ""  # of any step
        if core not in _COLLECTIVES and not row["Name"].startswith("hcom_") and not outside:
            note_kernel(profile, name, core, 1, number(row, "Duration(us)"), types)
    if not profile.kernels:
        for row in rows(output / "op_statistic.csv", ("OP Type", "Total Time(us)"), profile.notes):
            time = number(row, "Total Time(us)")
            note_kernel(profile, row["OP Type"], row.get("Core Type", ""), number(row, "Count"), time)
    for row in rows(output / "operator_details.csv", ("Name", _HOST), profile.notes):
        # Of a step of the optimizer all that it calls.
        host = "Host Total Duration(us)" if row["Name"].startswith("Optimizer.") else _HOST
        one = profile.operators.setdefault(row["Name"], Operator(row["Name"]))
        device = number(row, "Device Self Duration(us)")
        one.add(1, device, number(row, host), place_of(row.get("Call Stack", "")))


def note_kernel(profile: Profile, name: str, core: str, calls: float, time: float, types: str = "") -> None:
    """Count kernels of a type; of each, ``host`` is its time with inputs of float32."""
    profile.emulated = profile.emulated or core.startswith("EMULATED")
    plain = types.split(";")[0] in ("FLOAT", "DT_FLOAT")
    profile.kernels.setdefault(f"{name} {core}", Operator(name, core)).add(calls, time, time * plain)


def note_signs(profile: Profile) -> None:
    """What parts, kernels, operators and settings are signs of."""
    waits = profile.parts["host"]
    for part in ("data", "bubble", "communication", "host"):
        profile.found(part, profile.parts.get(part, 0.0))
    for sign, text in reports_yaml("profile.yaml")["signs"].items():
        kernels, operators = tuple(text.get("kernels", ())), tuple(text.get("operators", ()))
        found = [one for one in profile.kernels.values() if one.name.startswith(kernels)]
        profile.found(sign, sum(one.host if "float32" in text else one.device for one in found), found)
        called = [one for one in profile.operators.values() if one.name.startswith(operators)]
        # What the NPU does meanwhile is not lost.
        profile.found(sign, min(waits, sum(one.host for one in called)), called)
    on_ai_cpu = [one for one in profile.kernels.values() if one.kind == "AI_CPU"]
    profile.found("ai-cpu", sum(one.device for one in on_ai_cpu), on_ai_cpu)
    if profile.settings.get("ASCEND_LAUNCH_BLOCKING") == "1":
        profile.found("blocking", waits)


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
