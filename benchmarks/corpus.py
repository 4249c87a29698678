"""Puts every repository of a list through every command, and tells what must not happen in any of them.

    python -m benchmarks.corpus REPOS.txt --out OUT --minutes 60

The list is that of a fleet (docs/fleet.md), or ``site-packages``: the packages of this environment that
import torch. Each is migrated, with ``--keep-cuda`` and ``--distributed`` too, linted and analyzed in a
process of its own with limits of time and memory. Nothing may be an internal error or take longer or more
memory than its size explains; a result has to parse, to differ from its source in the lines that
``change_list.csv`` has and in no others, and to stay as it is when it is migrated once more.
``OUT/results.jsonl`` has a line for each run: what it has is not done again. The exit code is 1 where
anything was wrong.
"""

from __future__ import annotations

import argparse
import atexit
import csv
import functools
import io
import json
import os
import re
import shutil
import sys
import sysconfig
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from migrator.fleet.repositories import NotObtainedError, Repository, obtain, read_list, run
from tests.fuzzing.properties import lost_lines

RESULTS = "results.jsonl"
SITE = "site-packages"
REPORTS = "migration_report"
SECONDS = 1800.0  # of one command on one repository: what takes longer hangs
SECONDS_A_LINE = 2 / 10_000  # of processor time
SHORTEST = 1.0  # seconds that any file may take: the first one pays for what is loaded
MEMORY, MEMORY_A_BYTE = 1 << 30, 40
TIMES_MEDIAN = 3  # of the seconds a file
_A_LINE = 40  # bytes, where a file has fewer lines than these would make
_FEW = 20  # files, from which a repository's seconds a file say something


class Run(NamedTuple):
    """A command of npumigrate with its options; ``writes``: its result is looked at."""

    name: str
    words: tuple[str, ...]
    writes: bool = True


def runs_for(oldest: str, newest: str) -> list[Run]:
    """The runs of each repository, for two versions of torch."""
    found = []
    for version, plain, keep in ((newest, (), ("--docs",)), (oldest, ("--docs",), ())):
        found.append(Run(f"migrate {version}", ("migrate", "-v", version, *plain)))
        found.append(Run(f"keep {version}", ("migrate", "-v", version, "--keep-cuda", *keep)))
    for version in (oldest, newest):
        shown = ("--output-format", "json", "--exit-zero", "--no-cache")
        found.append(Run(f"lint {version}", ("lint", "-v", version, *shown), False))
        found.append(Run(f"analyze {version}", ("analyze", "-v", version), False))
        found.append(Run(f"distributed {version}", ("migrate", "-v", version, "--distributed")))
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("list", help="repositories, one a line, or site-packages")
    parser.add_argument("--out", type=Path, default=Path("corpus_results"))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--versions", nargs=2, default=("2.1", "2.13"), help="of torch")
    parser.add_argument("--runs", default="", help="only those in whose names this expression is found")
    parser.add_argument("--summary", action="store_true", help="only tell what is known")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    known = _known(options.out / RESULTS)
    end = time.monotonic() + 60 * options.minutes
    every = [] if options.summary else packages() if options.list == SITE else read_list(Path(options.list))
    for repository in every:
        left = [
            each
            for each in runs_for(*options.versions)
            if re.search(options.runs, each.name)
            if (repository.name, each.name) not in known
        ]
        if left and time.monotonic() < end:
            for row in examine(repository, left, end):
                known[row["name"], row["run"]] = row
                with (options.out / RESULTS).open("a") as file:
                    print(json.dumps(row), file=file)
                for fault in row["faults"]:
                    print(f"{row['name']}, {row['run']}: {fault}", flush=True)
    return summary([*known.values()])


def _known(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    rows = map(json.loads, file.read_text().splitlines()) if file.is_file() else ()
    return {(row["name"], row["run"]): row for row in rows}


def packages() -> list[Repository]:
    """The packages of this environment with files that import torch."""
    found = []
    for folder in sorted(Path(sysconfig.get_paths()["purelib"]).iterdir()):
        if (folder / "__init__.py").is_file():
            if any(b"import torch" in file.read_bytes() for file in folder.rglob("*.py") if file.is_file()):
                found.append(Repository(folder.name, "folder", str(folder)))
    return found


def examine(repository: Repository, runs: list[Run], end: float) -> Iterator[dict[str, Any]]:
    """A row for each run of a repository: what it took, and the faults."""
    with TemporaryDirectory() as name:
        scratch = Path(name)
        try:
            source = obtain(repository, scratch, "", SECONDS)
        except (NotObtainedError, OSError) as error:
            print(f"{repository.name}: {error}")
            return
        size = _size(source)
        for each in runs:
            if time.monotonic() < end:
                folder = scratch / "run"
                folder.mkdir()
                row, result = _done(each, source, folder, size)
                if result is not None:
                    row["faults"] += _faults_of_result(source, result)
                    once_more = each._replace(words=tuple(w for w in each.words if w != "--distributed"))
                    again, other = _done(once_more, result, folder, size, "again")
                    row["faults"] += [f"again: {fault}" for fault in again["faults"]]
                    row["faults"] += _differences(result, other) if other else ["no result of the result"]
                shutil.rmtree(folder)
                yield {"name": repository.name, "run": each.name, **size, **row}


def _size(source: Path) -> dict[str, int]:
    sizes = [file.stat().st_size for file in _files(source) if file.suffix in (".py", ".ipynb")]
    return {"files": len(sizes), "bytes": sum(sizes), "largest": max(map(_bytes, _files(source)), default=0)}


def _bytes(file: Path) -> int:
    return file.stat().st_size


def _files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each not in (REPORTS, ".git", "__pycache__"))
        yield from (
            path for each in sorted(names) if (path := Path(root, each)).is_file() and not path.is_symlink()
        )


def _done(
    each: Run, source: Path, folder: Path, size: dict[str, int], out: str = "out"
) -> tuple[dict[str, Any], Path | None]:
    """What a run took and its faults, and the folder with the result, None without."""
    stats = folder / f"{out}.json"
    words = [
        *each.words,
        "-j",
        "1",
        str(source),
        *(() if each.words[0] == "lint" else ("-o", str(folder / out))),
    ]
    command = [sys.executable, "-c", "from benchmarks.corpus import child; child()", str(stats), *words]
    environment = {**os.environ, "NPUMIGRATE_LANG": "en", "PYTHONPATH": str(Path(__file__).parents[1])}
    code, printed, errors, cpu = run(command, folder, environment, SECONDS)
    told = errors.decode("utf-8", "replace").strip()
    faults = [line for line in told.splitlines() if "internal error" in line]
    if code is None:
        faults.append("hangs")
    elif code == 2 and ("nothing to do" in told or "no training script" in told):
        return {"seconds": cpu, "faults": []}, None
    elif code not in ((0,) if not faults and each.words[0] == "lint" else (0, 1, 2)) or (
        code == 2 and each.writes
    ):
        faults.append(f"exit code {code}: {told[-300:]}")
    row: dict[str, Any] = {"seconds": round(cpu, 2), "faults": faults}
    if stats.is_file():
        measured = json.loads(stats.read_bytes())
        row["memory"] = measured["memory"]
        most = MEMORY + MEMORY_A_BYTE * size["largest"]
        if row["memory"] > most:
            faults.append(f"{row['memory'] >> 20} MiB of memory, more than {most >> 20}")
        for name, (seconds, lines) in measured["files"].items():
            if seconds > max(SHORTEST, SECONDS_A_LINE * lines):
                faults.append(f"slow: {name}: {seconds:.2f} s for {lines} lines")
    if each.words[0] == "lint":
        json.loads(printed)
        return row, None
    results = (
        [path for path in (folder / out).iterdir() if not path.name.startswith(".")]
        if (folder / out).is_dir()
        else []
    )
    for result in results:
        for file in result.rglob("*"):
            if file.name in ("skipped_files.csv", "npumigrate.log"):
                text = file.read_text("utf-8-sig", "replace")
                faults += [line[:300] for line in text.splitlines() if "internal error" in line][:5]
    return row, results[0] if results and each.writes else None


def child() -> None:
    """In the run's process: the command, with the seconds that each file took."""
    import resource

    from migrator.cli.start import main as start
    from migrator.lint import file as lint_file
    from migrator.run import loading, project_files

    stats = Path(sys.argv[1])
    del sys.argv[1]
    files: dict[str, list[float]] = {}
    project_files._check_file = _timed(project_files._check_file, files)
    loading._read = _timed(loading._read, files)
    lint_file.check_target = _timed(lint_file.check_target, files)

    @atexit.register
    def write() -> None:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        stats.write_text(json.dumps({"memory": memory, "files": files}))

    start()


def _timed(work: Callable[..., Any], files: dict[str, list[float]]) -> Callable[..., Any]:
    @functools.wraps(work)
    def timed(item: Any, *shared: Any) -> Any:
        path = Path(item.place if hasattr(item, "place") else item[1])
        started = time.process_time()
        try:
            return work(item, *shared)
        finally:
            taken = time.process_time() - started
            if taken > SHORTEST / 2:
                data = path.read_bytes() if path.is_file() else b""
                row = files.setdefault(str(path), [0, max(data.count(b"\n"), len(data) // _A_LINE)])
                row[0] += taken

    return timed


def _faults_of_result(source: Path, result: Path) -> list[str]:
    """What is wrong with the files of a migration: those that differ, and those that it added."""
    rows: dict[str, set[int]] = defaultdict(set)
    text = (result / REPORTS / "change_list.csv").read_text("utf-8-sig")
    csv.field_size_limit(1 << 30)
    for row in csv.DictReader(io.StringIO(text, newline="")):
        rows[re.sub(r":cell \d+$", "", row["File"])] |= set(
            range(int(row["Start Line"]), int(row["End Line"]) + 1)
        )
    skipped = (result / REPORTS / "skipped_files.csv").read_text("utf-8-sig")
    left = {row["File"]: row["Reason"] for row in csv.DictReader(io.StringIO(skipped, newline=""))}
    faults = []
    for file in _files(source):
        name = file.relative_to(source).as_posix()
        there = result / name
        if not there.is_file():
            faults += (
                [f"{name} is gone"] if file.suffix in (".py", ".ipynb") and "node_modules" not in name else []
            )
            continue
        before, after = file.read_bytes(), there.read_bytes()
        if "not valid Python" in left.get(name, "") and file.suffix == ".py" and _parses(file):
            faults.append(f"{name} is skipped though Python takes it: {left[name]}")
        if before == after:
            continue
        if name not in rows:
            faults.append(f"{name} changed and is not listed")
        elif file.suffix != ".ipynb":
            lost = lost_lines(_text(before), _text(after), rows[name])
            faults += [f"{name}: lines that no change is about: {lost[:3]}"] if lost else []
        if _parses(file) and not _parses(there):
            faults.append(f"{name}: the result does not parse")
    faults += [
        f"{there.relative_to(result)}: what was added does not parse"
        for there in _files(result)
        if not (source / there.relative_to(result)).exists() and there.suffix == ".py" and not _parses(there)
    ]
    return faults[:20]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _parses(file: Path) -> bool:
    data = file.read_bytes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if file.suffix == ".py":
                compile(data, "", "exec", dont_inherit=True)
            elif file.suffix in (".json", ".ipynb"):
                json.loads(data)
            elif file.suffix in (".yaml", ".yml"):
                import yaml

                list(yaml.parse(data, Loader=yaml.CSafeLoader))
        except Exception:
            return False
    return True


def _differences(result: Path, again: Path) -> list[str]:
    """The files that a second migration changes."""
    return [
        f"a second migration changes {name}"
        for file in _files(result)
        if (name := file.relative_to(result).as_posix()) and (again / name).is_file()
        if (again / name).read_bytes() != file.read_bytes()
    ][:10]


def summary(rows: list[dict[str, Any]]) -> int:
    """Print what the runs took and what was wrong; the exit code."""
    faults = sum(len(row["faults"]) for row in rows)
    for name in sorted({row["run"] for row in rows}):
        own = [row for row in rows if row["run"] == name and row["files"] >= _FEW]
        each = {row["name"]: row["seconds"] / row["files"] for row in own}
        typical = median(each.values()) if each else 0.0
        print(
            f"{name}: {len(own)} repositories, {sum(row['files'] for row in own)} files, "
            f"{sum(row['seconds'] for row in own):.0f} s, median {1000 * typical:.1f} ms a file, "
            f"{max((row.get('memory', 0) for row in own), default=0) >> 20} MiB at most"
        )
        for other, seconds in sorted(each.items(), key=lambda item: -item[1]):
            if seconds > TIMES_MEDIAN * typical:
                print(f"  {other}: {1000 * seconds:.1f} ms a file")
    print(f"{len(rows)} runs, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
