"""Files that others recorded: logs, profiles, memory snapshots, traces. Each is read or refused."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from migrator.compare import showing
from migrator.compare.reading import read_trace
from migrator.explain.judge import explain_logs
from migrator.explain.logs import log_at
from migrator.explain.show import as_data, parts_of
from migrator.language import UserError
from migrator.profile.read import read_profile
from migrator.profile.report import as_json, as_text
from tests.fuzzing.settings_files import Kind
from tests.profile import made

ROOT = Path(__file__).parents[1]
TABLES = ("step_trace_time", "kernel_details", "operator_details", "memory_record", "operator_memory")


def _log(file: Path) -> str:
    found = explain_logs([log_at(str(file))])
    list(parts_of(found))
    json.dumps(as_data(found))
    return ""


def _profile(path: Path) -> str:
    found = read_profile(path)
    json.dumps(as_json(found, [], found))
    as_text(found, [], None, True)
    return ""


def _part_of_profile(file: Path) -> str:
    """A profile of torch_npu with a file in the place of its own."""
    with TemporaryDirectory() as folder:
        place = made.npu_profile(Path(folder))
        (place / "ASCEND_PROFILER_OUTPUT" / file.name).write_bytes(file.read_bytes())
        return _profile(place)


def _snapshot(file: Path) -> str:
    """A memory snapshot with what a JSON file has; what is none stays as it is."""
    with suppress(ValueError):
        file.write_bytes(pickle.dumps(json.loads(file.read_bytes())))
    return _profile(file)


def _about(file: Path) -> str:
    """What a trace says of its run."""
    with TemporaryDirectory() as folder:
        whole = Path(folder)
        (whole / "run.json").write_bytes(file.read_bytes())
        for process in _stored().glob("process-*"):
            (whole / process.name).write_bytes(process.read_bytes())
        showing.as_text(showing.compare(read_trace(whole), read_trace(whole), None))
    return ""


def _stored() -> Path:
    return sorted((ROOT / "stored").iterdir())[-1] / "trace"


def _rows(text: str) -> list[list[str]]:
    return [line.split(",") for line in text.splitlines()]


def _of_rows(content: Any) -> str:
    rows = content if isinstance(content, list) else [[content]]
    return "".join(",".join(map(str, row if isinstance(row, list) else [row])) + "\r\n" for row in rows)


def kinds() -> Iterator[Kind]:
    """The kinds, with files that are right to begin with."""
    logs = sorted((ROOT / "explain" / "logs").glob("*/*.log"))
    yield Kind("run.log", tuple(each.read_text("utf-8", "replace") for each in logs), _log, UserError)
    with TemporaryDirectory() as name:
        folder = Path(name)
        output = made.npu_profile(folder) / "ASCEND_PROFILER_OUTPUT"
        for table in TABLES:
            file = output / f"{table}.csv"
            yield Kind(file.name, (file.read_bytes().decode(),), _part_of_profile, UserError, _rows, _of_rows)
        for part in ("trace_view.json", "communication.json"):
            yield _of_json(part, (output / part).read_text(), _part_of_profile)
        events = gzip.decompress(made.cuda_trace(folder / "gpu.json.gz").read_bytes()).decode()
        yield _of_json("gpu.json", events, _profile)
        held = pickle.loads(made.snapshot(folder / "memory.pickle").read_bytes())
        yield _of_json("memory.pickle", json.dumps(held), _snapshot)
    yield _of_json("run.json", (_stored() / "run.json").read_text(), _about)


def _of_json(name: str, text: str, use: Callable[[Path], str]) -> Kind:
    return Kind(name, (text,), use, UserError, json.loads, json.dumps)
