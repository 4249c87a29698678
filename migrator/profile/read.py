"""Which profile a path is."""

from __future__ import annotations

from pathlib import Path

from migrator.files.errors import shown
from migrator.language import N_, _
from migrator.profile.memory import read_snapshot
from migrator.profile.model import Profile
from migrator.profile.npu import per_step, ranks, read_npu, slowest
from migrator.profile.streams import ProfileError
from migrator.profile.trace import read_trace, split_step

_SNAPSHOTS = (".pickle", ".pkl")
_TRACES = (".json", ".gz")


def read_profile(path: Path) -> Profile:
    """Read a rank's folder, a folder of ranks, a trace or a memory snapshot. Raises ProfileError."""
    if path.is_file():
        return read_snapshot(path) if path.suffix in _SNAPSHOTS else _read_trace(path)
    if not path.is_dir():
        raise ProfileError(N_("no such file or folder: {path}"), path=shown(path))
    folders = ranks(path)
    if len(folders) > 1:
        folder, times = slowest(folders)
        profile = read_npu(folder)
        said = N_(
            "{count} ranks: this one computes longest, {most:.3g} ms in a step; the shortest: {least:.3g} ms"
        )
        profile.tell(_(said, count=len(folders), most=max(times) / 1000, least=min(times) / 1000))
        return profile
    if folders:
        return read_npu(folders[0])
    files = sorted(file for file in path.iterdir() if file.suffix in (*_SNAPSHOTS, *_TRACES))
    traces = [file for file in files if ".pt.trace.json" in file.name]
    if len(traces or files) != 1:
        said = N_("{path}: no folder …_ascend_pt, and not one trace or memory snapshot: name the file")
        raise ProfileError(said, path=shown(path))
    return read_profile((traces or files)[0])


def _read_trace(path: Path) -> Profile:
    profile = Profile(str(path))
    trace = read_trace(path, profile)
    profile.device = "GPU" if trace.gpu else "NPU"
    split_step(profile, trace)
    profile.operators, profile.kernels, profile.emulated = trace.operators, trace.kernels, trace.emulated
    per_step(profile)
    for part in ("data", "host", "communication"):
        profile.found(part, profile.parts.get(part, 0.0))
    return profile
