"""Each repository is one run of a command of npumigrate with limits; many go over Dask's workers."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Literal, Optional

from migrator.files.replacing import put_in_place, replace_file, staged
from migrator.findings.finding import SEVERITIES
from migrator.fleet.repositories import NotObtainedError, Repository, obtain, run
from migrator.language import UserError
from migrator.light import Frozen

State = Literal["done", "failed", "timeout", "not obtained"]
Outcome = dict[str, Any]  # goes to other machines and into files: plain values
# The job is done by the npumigrate that asks for it, also where another one is installed.
_FOLDER = str(Path(__file__).parents[2])
_START = (
    f"import sys; {_FOLDER!r} in sys.path or sys.path.insert(0, {_FOLDER!r}); "
    "from migrator.cli.start import main; main()"
)
_BLOCK = 1 << 20
_CONNECTING = "10s"


class Task(Frozen):
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
    # What killed jobs have left on this machine goes first.
    with staged(Path(tempfile.gettempdir()) / "npumigrate-fleet") as staging:
        scratch = staging / "new"
        scratch.mkdir()
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
        # It may be half damaged, or changed by hand.
        marked = {**outcome, "mark": _key(task, json.dumps(outcome, sort_keys=True))}
        replace_file(file, json.dumps(marked, ensure_ascii=False).encode("utf-8", "backslashreplace"))
    return outcome


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
        if isinstance(known, dict) and known.pop("mark", "") == _key(task, json.dumps(known, sort_keys=True)):
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


_AHEAD = 4  # jobs that wait for each thread of the cluster
_LEAST = 200
_WAITS = 60.0  # seconds for a scheduler that is away to come back


def examine_all(
    repositories: Sequence[Repository],
    task: Task,
    scheduler: Optional[str],
    jobs: int,
    retries: int,
    tell: Callable[[Outcome], None],
    link: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """The outcome of each repository, in their order.

    A failure is tried ``retries`` times more. Where the scheduler goes away the rest is done when it is there
    again; raises UserError where it stays away. ``tell`` hears of outcomes, ``link`` of Dask's page.
    """
    from concurrent.futures import CancelledError

    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError

    found: dict[str, Outcome] = {}
    tries = dict.fromkeys((item.name for item in repositories), retries)
    away, there = 0.0, False
    while waiting := [item for item in repositories if item.name not in found]:
        try:
            with _client(scheduler, jobs) as client:
                there = True
                link(str(client.dashboard_link) if client.dashboard_link else "")
                for item, outcome in _outcomes(client, waiting, task, tries):
                    away = 0.0
                    found[item.name] = outcome
                    tell(outcome)
        except (CancelledError, FutureCancelledError, CommClosedError, OSError, TimeoutError) as error:
            if len(found) == len(repositories):
                break  # Dask cannot close in time: no reason to give up what is done
            away = away or time.monotonic()
            if not there or scheduler is None or time.monotonic() - away > _WAITS:
                raise UserError(f"{scheduler or 'Dask'}: {error}") from error
            time.sleep(1)
    return [found[item.name] for item in repositories]


@contextmanager
def _client(scheduler: Optional[str], jobs: int) -> Iterator[Any]:
    """A client of the scheduler, or of a cluster of threads in this process: each job is a process anyway."""
    import logging

    import dask
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.ERROR)  # it speaks of its own inner life
    if scheduler is not None:
        with Client(scheduler, timeout=_CONNECTING, set_as_default=False) as client:
            yield client
        return
    with (
        dask.config.set({"distributed.dashboard.link": "http://127.0.0.1:{port}/status"}),
        LocalCluster(1, jobs, processes=False, dashboard_address="127.0.0.1:0", memory_limit=0) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def _outcomes(
    client: Any, repositories: Sequence[Repository], task: Task, tries: dict[str, int]
) -> Iterator[tuple[Repository, Outcome]]:
    """Each repository with its outcome, as they come; a few at a time are with the scheduler.

    ``tries`` says how often each may be tried again, and is counted down.
    """
    from distributed import as_completed

    rest = iter(repositories)
    threads = sum(client.nthreads().values())
    items: dict[str, Repository] = {}

    def submit(item: Repository) -> Any:
        # Not pure: a repository that failed is tried again, by the same name.
        future = client.submit(examine, item, task, pure=False, retries=0)
        items[future.key] = item
        return future

    first = [submit(item) for item in islice(rest, max(_LEAST, threads * _AHEAD))]
    running = as_completed(first, loop=client.loop)
    for future in running:
        item, error = items.pop(future.key), future.exception()
        if error is None:
            outcome: Outcome = future.result()
        elif future.status == "cancelled":
            raise error
        else:  # a worker that was killed with it again and again is an outcome, too
            why = f"its worker: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            outcome = outcome_of(item, "failed", why, time.monotonic())
        if outcome["state"] != "done" and tries[item.name]:
            tries[item.name] -= 1
            running.add(submit(item))
            continue
        yield item, outcome
        following = next(rest, None)
        if following is not None:
            running.add(submit(following))
