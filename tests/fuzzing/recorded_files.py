"""Files that others recorded: logs, profiles, traces, reports, caches, outcomes. Each is read or refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from migrator.compare import showing
from migrator.compare.reading import read_trace
from migrator.core.settings import Settings
from migrator.explain.judge import explain_logs
from migrator.explain.logs import log_at
from migrator.explain.show import as_data, parts_of
from migrator.field_types import to_json
from migrator.findings.finding import Edit, Finding, Fix
from migrator.fleet import job
from migrator.fleet.job import Task
from migrator.fleet.repositories import Repository
from migrator.fleet.tables import write as write_tables
from migrator.fleet.tables import write_page
from migrator.language import UserError
from migrator.matchers.packs import Rule, load_all
from migrator.migrate.run import Plan, migrate
from migrator.profile.read import read_profile
from migrator.profile.report import as_json, as_text
from migrator.report.views.run import REPORTS, read_run
from migrator.report.views.writing import difference, show_difference, write_formats
from migrator.run.cache import Cache
from tests.fuzzing.settings_files import Kind
from tests.profile import made
from tests.reading import write

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


def _process(file: Path) -> str:
    """The lines of a process in a trace."""
    with TemporaryDirectory() as folder:
        whole = Path(folder)
        (whole / "run.json").write_bytes((_stored() / "run.json").read_bytes())
        (whole / "process-1.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
        showing.as_text(showing.compare(read_trace(whole), read_trace(_stored()), None))
    return ""


def _report(file: Path) -> str:
    """A result's reports with a file in the place of its own: built again, and compared."""
    with TemporaryDirectory() as name:
        folder = _result(Path(name))
        before = read_run(folder)
        (folder / file.name).write_bytes(file.read_bytes())
        write_formats(folder, ("html" if file.suffix == ".json" else "md",), _rules(), None)
        console = Console(file=io.StringIO())
        for runs in ((before, read_run(folder)), (read_run(folder), before)):
            show_difference(console, runs, *difference(*runs))
    return ""


@cache
def _rules() -> dict[str, Rule]:
    return {rule.code: rule for rule in load_all()}


def _result(folder: Path) -> Path:
    """The reports of a small migration, as they are each time."""
    for name, data in _reports().items():
        (folder / name).write_bytes(data)
    return folder


@cache
def _reports() -> dict[str, bytes]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        text = "import torch\nx = torch.ones(1).cuda()\ntorch.cuda.nvtx.mark('a')\nimport cupy\n"
        write(folder, {"p/a.py": text, "p/b.py": "x ==\n", "p/c.sh": "CUDA_VISIBLE_DEVICES=0 python a.py\n"})
        (folder / "out").mkdir()
        migrate(Plan(folder / "p", Settings("2.6.0"), jobs=1), folder / "out", False, lambda *_: None)
        place = folder / "out" / "p_msft" / REPORTS
        return {file.name: file.read_bytes() for file in place.iterdir()}


def _outcome(file: Path) -> str:
    """What a fleet wrote down of a repository: taken, or done again."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        task = Task("lint", "2.6", name, 1, 0)
        repository = Repository("a", "package", "a==1")
        key = job._key(task, repository.source, "")
        write(folder, {f"outcomes/{key}.json": file.read_bytes()})
        if known := job._known(repository, task, key):
            write_page(folder, task, *write_tables(folder, [known]), {})
    return ""


def _cached(file: Path) -> str:
    """A row of the lint cache with the right mark."""
    with TemporaryDirectory() as name:
        cache = Cache(Path(name), "a")
        with suppress(ValueError):
            cache.put(b"key", json.loads(file.read_bytes()))
        cache.flush()
        for finding in cache.get(b"key", tuple[Finding, ...]) or ():
            hash(finding)
            to_json(finding)
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
    recorded = gzip.decompress(next(_stored().glob("process-*")).read_bytes()).decode()
    yield Kind("process.jsonl", (recorded,), _process, UserError, _lines, _of_lines)
    for name in ("change_list.csv", "manual_review.csv"):
        text = _reports()[name].decode("utf-8-sig")
        yield Kind(name, (text,), _report, UserError, _table, _of_table)
    yield _of_json("summary.json", _reports()["summary.json"].decode(), _report)
    outcome = {"state": "done", "reason": "", "seconds": 1.5, "cpu_seconds": 1.0, "bytes": 10, "error": 1}
    outcome["findings"] = [["NPU600", "a.b", "error", "", ""]]
    yield _of_json("outcome.json", json.dumps(outcome), _outcome)
    cached = to_json((Finding("NPU100", "a", 1, 2, 1, 3, fix=Fix((Edit(0, 1, "b"),), "safe")),))
    yield _of_json("cached.json", json.dumps(cached), _cached)


def _lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def _of_lines(content: Any) -> str:
    return "".join(f"{json.dumps(line)}\n" for line in (content if isinstance(content, list) else [content]))


def _table(text: str) -> list[list[str]]:
    return [*csv.reader(io.StringIO(text, newline=""))]


def _of_table(content: Any) -> str:
    out = io.StringIO(newline="")
    rows = content if isinstance(content, list) else [content]
    csv.writer(out).writerows(row if isinstance(row, list) else [row] for row in rows)
    return out.getvalue()


def _of_json(name: str, text: str, use: Callable[[Path], str]) -> Kind:
    return Kind(name, (text,), use, UserError, json.loads, json.dumps)
