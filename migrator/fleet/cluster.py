"""The repositories over Dask's workers: those of a scheduler, or threads here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Callable, Optional

from migrator.fleet.job import Outcome, Task, examine, outcome_of
from migrator.fleet.repositories import Repository
from migrator.language import UserError

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
        except _lost() as error:
            away = away or time.monotonic()
            if not there or scheduler is None or time.monotonic() - away > _WAITS:
                raise UserError(f"{scheduler or 'Dask'}: {error}") from error
            time.sleep(1)
    return [found[item.name] for item in repositories]


def _lost() -> tuple[type[BaseException], ...]:
    from concurrent.futures import CancelledError

    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError

    return CancelledError, FutureCancelledError, CommClosedError, OSError, TimeoutError


@contextmanager
def _client(scheduler: Optional[str], jobs: int) -> Iterator[Any]:
    """A client of the scheduler, or of a cluster of threads in this process: each job is a process anyway."""
    import logging

    import dask
    from distributed import Client, LocalCluster

    logging.getLogger("distributed").setLevel(logging.ERROR)  # it speaks of its own inner life
    if scheduler is not None:
        with Client(scheduler, timeout="10s", set_as_default=False) as client:
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
