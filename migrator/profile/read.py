"""Which profile a path is."""

from __future__ import annotations

from pathlib import Path

from migrator.files.errors import shown
from migrator.language import N_, _
from migrator.profile.memory import note_memory, read_snapshot
from migrator.profile.model import Profile
from migrator.profile.npu import OUTPUT, note_signs, read_npu
from migrator.profile.streams import ProfileError, number, rows, unreadable
from migrator.profile.trace import read_trace

_SNAPSHOTS = (".pickle", ".pkl")
_TRACES = (".json", ".gz")


def read_profile(path: Path) -> Profile:
    """Read a rank's folder, a folder of ranks, a trace or a memory snapshot. Raises ProfileError."""
    if not path.exists():
        raise ProfileError(N_("no such file or folder: {path}"), path=shown(path))
    try:
        folder = path.parent if path.name == OUTPUT else path
        profile = _read_folder(folder) if path.is_dir() else _read_file(path)
    except OSError as error:
        raise ProfileError("{line}", line=unreadable(path, error)) from None
    note_memory(profile)
    profile.advice.sort(key=lambda one: (one.memory, -one.gain))
    return profile


def _read_folder(folder: Path) -> Profile:
    places = (folder, *sorted(folder.glob("*_ascend_pt")))
    ranks = [place for place in places if (place / OUTPUT).is_dir()]
    ranks = ranks or [place for place in places if (place / "FRAMEWORK").is_dir()]  # read_npu refuses these
    if ranks:
        times = [_computing(rank) for rank in ranks]
        profile = read_npu(ranks[times.index(max(times))])  # the others wait for it
        if len(ranks) > 1:
            said = N_("{count} ranks: this one computes longest, {most:.3g} ms; the shortest: {least:.3g} ms")
            values = {"most": max(times) / 1000, "least": min(times) / 1000}
            profile.notes.append(_(said, count=len(ranks), **values))
        return profile
    files = sorted(file for file in folder.iterdir() if file.suffix in (*_SNAPSHOTS, *_TRACES))
    files = [file for file in files if ".pt.trace.json" in file.name] or files
    if len(files) != 1:
        said = N_("{path}: neither a folder …_ascend_pt, nor one trace or memory snapshot: name the file")
        raise ProfileError(said, path=shown(folder))
    return _read_file(files[0])


def _computing(rank: Path) -> float:
    table = rows(rank / OUTPUT / "step_trace_time.csv", ("Computing",), [])
    times = [number(row, "Computing") for row in table]
    return sum(times) / len(times) if times else 0.0


def _read_file(path: Path) -> Profile:
    if path.suffix in _SNAPSHOTS:
        return read_snapshot(path)
    profile = Profile(str(path))
    read_trace(path, profile)
    if not profile.steps:
        raise ProfileError(N_("{folder}: no time of a step is in it"), folder=shown(path))
    profile.per_step()
    if profile.device == "NPU":
        note_signs(profile)
    return profile
