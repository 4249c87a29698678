"""One repository: its files, one run of a command of npumigrate with limits, and what came out of it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Optional

from migrator.files.replacing import replace_file
from migrator.files.staging import put_in_place, staged
from migrator.findings.finding import SEVERITIES
from migrator.fleet.obtain import NotObtainedError, obtain, run
from migrator.fleet.repositories import Repository

State = Literal["done", "failed", "timeout", "not obtained"]
Outcome = dict[str, Any]  # goes to other machines and into files: plain values
_START = "from migrator.cli.start import main; main()"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Task:
    """What is done with each repository: the same for all of a fleet.

    ``folder`` holds the results and is seen by every worker. ``memory`` is in bytes, ``seconds`` the limit of
    one repository. ``rules`` says which rules and which npumigrate it is: a result of others is none of this.
    """

    command: Literal["migrate", "analyze", "lint"]
    version: str
    folder: str
    seconds: float
    memory: int
    index_url: str = ""
    packs: tuple[str, ...] = ()
    rules: str = ""


def _result_file(task: Task, key: str) -> Path:
    return Path(task.folder) / "outcomes" / f"{key}.json"


def _result(task: Task, repository: Repository) -> Path:
    return Path(task.folder) / "migrated" / repository.name


def _kept_file(task: Task, repository: Repository) -> Path:
    """Says of which key the result is that has a repository's name: in another list the name is another's."""
    return Path(task.folder) / "outcomes" / f"{repository.name}.key"


def examine(repository: Repository, task: Task) -> Outcome:
    """Do a repository's work, or take what was done before. Never raises: a failure is an outcome, too."""
    started = time.monotonic()
    key = _key(task, repository.source, repository.revision) if repository.fixed else ""
    known = _known(repository, task, key)
    if known:
        return known
    with _scratch() as scratch:
        try:
            source = obtain(repository, scratch, task.index_url, task.seconds)
            if not key:
                key = _key(task, _content(source))
                known = _known(repository, task, key)
        except (NotObtainedError, OSError) as error:
            return outcome_of(repository, "not obtained", str(error), started)
        if known:
            return known
        outcome = _run(repository, task, source, scratch, started, key)
    outcome |= {"schema": 1, "key": key}
    if outcome["state"] == "done":
        file = _result_file(task, key)
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, json.dumps(outcome, ensure_ascii=False).encode("utf-8", "backslashreplace"))
    return outcome


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for one job. Those that killed jobs have left on this machine go first."""
    with staged(Path(tempfile.gettempdir()) / "npumigrate-fleet") as staging:
        folder = staging / "new"
        folder.mkdir()
        yield folder


def _key(task: Task, *content: str) -> str:
    parts = (task.command, task.version, task.rules, *content)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _content(folder: Path) -> str:
    """A digest of the names and the bytes of all files below a folder; links are not followed."""
    state = hashlib.blake2b(digest_size=16)
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(files):
            path = os.path.join(root, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            state.update(os.fsencode(f"\0{os.path.relpath(path, folder)}\0{os.path.getsize(path)}\0"))
            with open(path, "rb") as file:
                while block := file.read(_BLOCK):
                    state.update(block)
    return state.hexdigest()


def _known(repository: Repository, task: Task, key: str) -> Optional[Outcome]:
    """The outcome that was written down under a key, with the name of this list; None without one."""
    with suppress(OSError, ValueError):
        if key and task.command == "migrate":
            kept = _kept_file(task, repository).read_text("utf-8") == key
            if not kept or not _result(task, repository).is_dir():
                return None
        known = json.loads(_result_file(task, key).read_bytes()) if key else None
        if isinstance(known, dict) and known.get("state") == "done":
            return {**known, **_named(repository), "known": True}
    return None


def _named(repository: Repository) -> Outcome:
    return {"name": repository.name, "source": repository.source, "revision": repository.revision}


def outcome_of(repository: Repository, state: State, why: str, started: float, **more: Any) -> Outcome:
    """What came of a repository, for which the work started then (``time.monotonic``)."""
    seconds = round(time.monotonic() - started, 3)
    return {**_named(repository), "state": state, "reason": why, "seconds": seconds, "known": False, **more}


def _run(
    repository: Repository, task: Task, source: Path, scratch: Path, started: float, key: str
) -> Outcome:
    """The command, in a process of its own with limits of time and memory."""
    out = scratch / ".out"
    # Isolated: nothing of the current folder, which holds the repository, is imported.
    command = [sys.executable, "-I", "-c", _START]
    command += [task.command, "--jobs", "1", *(("-v", task.version) if task.version else ())]
    command += [word for pack in task.packs for word in ("--rules", pack)]
    if task.command == "lint":
        command += ["--output-format", "json", "--exit-zero", "--no-cache", str(source)]
    else:
        command += ["--format", "json", "--quiet", "-o", str(out), str(source)]
    environment = {**os.environ, "NPUMIGRATE_LANG": "en"}
    code, printed, errors, cpu = run(command, scratch, environment, task.seconds, task.memory)
    size = sum(path.stat().st_size for path in source.rglob("*.py") if path.is_file())
    measured = {"cpu_seconds": round(cpu, 3), "bytes": size}
    if code is None:
        return outcome_of(repository, "timeout", f"not done after {task.seconds:.0f} s", started, **measured)
    if code not in (0, 1):
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        why = lines[-1] if lines else f"ended by signal {-code}" if code < 0 else f"exit code {code}"
        return outcome_of(repository, "failed", why, started, **measured)
    found: Outcome
    if task.command == "lint":
        findings = json.loads(printed)
        levels = Counter(item["severity"] for item in findings)
        found = {level: levels[level] for level in SEVERITIES}
        fixes = ((item, (item["fix"] or {}).get("applicability") or "") for item in findings)
        places = Counter(
            (item["code"] or "", item.get("api") or "", item["severity"], "", fix) for item, fix in fixes
        )
    else:
        (result,) = (path for path in out.iterdir() if not path.name.startswith("."))
        (report,) = result.rglob("report.json")
        content = json.loads(report.read_bytes())
        summary = content["summary"]
        found = {
            "minutes": round(sum(content["effort"]["minutes"].values()), 1),
            "files": summary["files"]["seen"],
            "framework": ", ".join(summary.get("frameworks", {})),
            **summary["findings"]["by_severity"],
        }
        keys = ("code", "api", "severity", "status", "safety")
        places = Counter(tuple(place[key] for key in keys) for place in content["places"])
        if task.command == "migrate":
            found["readiness"] = content["readiness"]
            _keep(result, _result(task, repository), _kept_file(task, repository), key)
    found["findings"] = [[*key, count] for key, count in places.items()]
    return outcome_of(repository, "done", "", started, **measured, **found)


def _keep(result: Path, target: Path, kept: Path, key: str) -> None:
    """Put a result in its place at once, for that of an earlier run, and write down of which key it is."""
    for folder in (target.parent, kept.parent):
        folder.mkdir(parents=True, exist_ok=True)
    kept.unlink(missing_ok=True)
    with staged(target) as staging:
        shutil.copytree(result, staging / "new", symlinks=True)
        put_in_place(staging, target)
    replace_file(kept, key.encode())
