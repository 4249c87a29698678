"""Which profile a path is."""

from __future__ import annotations

from pathlib import Path

from migrator.files.errors import shown
from migrator.language import N_, _
from migrator.profile.memory import note_memory, read_snapshot
from migrator.profile.model import Profile
from migrator.profile.npu import OUTPUT, note_signs, read_npu
from migrator.profile.streams import ProfileError, number, rows
from migrator.profile.trace import Trace

_SNAPSHOTS = (".pickle", ".pkl")
_TRACES = (".json", ".gz")


def read_profile(path: Path) -> Profile:
    """Read a rank's folder, a folder of ranks, a trace or a memory snapshot. Raises ProfileError."""
    if path.is_file():
        profile = read_snapshot(path) if path.suffix in _SNAPSHOTS else _read_trace(path)
    elif path.is_dir():
        profile = _read_folder(path.parent if path.name == OUTPUT else path)
    else:
        raise ProfileError(N_("no such file or folder: {path}"), path=shown(path))
    note_memory(profile)
    return profile


def _read_folder(folder: Path) -> Profile:
    ranks = [place for place in (folder, *sorted(folder.glob("*_ascend_pt"))) if (place / OUTPUT).is_dir()]
    if ranks:
        times = [_computing(rank) for rank in ranks]
        profile = read_npu(ranks[times.index(max(times))])  # the others wait for it
        if len(ranks) > 1:
            said = N_("{count} ranks: this one computes longest, {most:.3g} ms; the shortest: {least:.3g} ms")
            values = {"most": max(times) / 1000, "least": min(times) / 1000}
            profile.notes.append(_(said, count=len(ranks), **values))
        return profile
    if (folder / "FRAMEWORK").is_dir() or any(folder.glob("PROF_*")):
        return read_npu(folder)
    files = sorted(file for file in folder.iterdir() if file.suffix in (*_SNAPSHOTS, *_TRACES))
    files = [file for file in files if ".pt.trace.json" in file.name] or files
    if len(files) != 1:
        said = N_("{path}: neither a folder …_ascend_pt, nor one trace or memory snapshot: name the file")
        raise ProfileError(said, path=shown(folder))
    return read_profile(files[0])


def _computing(rank: Path) -> float:
    table = rows(rank / OUTPUT / "step_trace_time.csv", ("Computing",), [])
    times = [number(row, "Computing") for row in table]
    return sum(times) / len(times) if times else 0.0


def _read_trace(path: Path) -> Profile:
    profile = Profile(str(path))
    trace = Trace(path, profile)
    if not profile.steps:
        raise ProfileError(N_("{folder}: no time of a step is in it"), folder=shown(path))
    profile.device = "GPU" if trace.gpu else "NPU"
    profile.operators, profile.kernels = trace.operators, trace.kernels
    profile.per_step()
    if not trace.gpu:
        note_signs(profile, trace)
    return profile
