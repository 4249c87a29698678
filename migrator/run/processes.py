"""Many files over several processes, with the results in order."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

# Few enough files at a time to spread well and to show progress; more where many are left, so that less goes
# to and fro between the processes.
_LEAST, _MOST = 4, 100
_CHUNKS_PER_JOB = 6
# Enough for a worker to be busy while the last chunk's results are written.
_CHUNKS_AHEAD = 4
_THREADS_OF_A_POOL = 2
# Of processor time: an item that takes more, for each MB that it has, may never end.
_SECONDS, _MB = 20.0, 1_000_000
_PR_SET_PDEATHSIG = 1  # see prctl(2)
# Below this many bytes of Python, starting processes takes longer than they save.
_WORTH_PROCESSES = 4_000_000

# What is going on, how many files of how many (0: not known yet).
Progress = Callable[[str, int, int], None]

Item = TypeVar("Item")
Result = TypeVar("Result")


def processes_for(size: int, wanted: int | None) -> int:
    """How many processes to use for ``size`` bytes of Python, where ``wanted`` is what the user said."""
    if wanted is not None:
        return wanted
    return 1 if size < _WORTH_PROCESSES else processors()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(items: Sequence[Item], jobs: int, work: Callable[..., Result], *shared: Any) -> Iterator[Result]:
    """``work(item, *shared)`` for each of ``items``, in their order, whatever the number of processes.

    ``work`` is a function of a module, and other processes are given ``shared`` once. A worker that is
    killed from outside loses nothing: what it and the others had not finished is done in this process, as is
    everything where the system starts no more processes, or has no memory that they could share. An item that
    takes too long raises GivenUpError inside ``work``.
    """
    finished = 0
    if jobs > 1 and len(items) > 1:
        from concurrent.futures.process import BrokenProcessPool

        why = ""
        try:
            for result in _in_processes(items, min(jobs, len(items)), work, shared):
                finished += 1
                yield result
        except BrokenProcessPool:
            why = "a worker process ended early"
        except _NoProcessError as error:
            why = f"no other process can be started ({error})"
        if why:
            import logging

            logging.getLogger("npumigrate").warning("%s: going on with one process", why)
    in_time = bounded(work)
    for item in items[finished:]:
        yield in_time(item, *shared)


class GivenUpError(BaseException):
    """An item takes too long. No Exception: what guards a part of the work must not go on with the rest."""

    def __init__(self, times: int = 1) -> None:
        super().__init__(times * _SECONDS)


def bounded(work: Callable[..., Result]) -> Callable[..., Result]:
    """``work``, which GivenUpError interrupts where it takes too long and the system can interrupt it."""
    import signal
    from threading import current_thread, main_thread

    if current_thread() is not main_thread():
        return _bounded_in_thread(work)
    if not hasattr(signal, "setitimer"):
        return work
    at_work: list[Any] = []  # the item, and how often it was looked at

    def look(*_: object) -> None:
        at_work[1] += 1
        size = 0
        for part in at_work[0] if isinstance(at_work[0], tuple) else ():
            with suppress(OSError):
                size += len(part) if isinstance(part, (str, bytes)) else 0
                size += os.path.getsize(part) if isinstance(part, os.PathLike) else 0
        if at_work[1] * _MB >= size:
            raise GivenUpError(at_work[1])

    def in_time(item: Any, *shared: Any) -> Result:
        at_work[:] = item, 0
        signal.signal(signal.SIGVTALRM, look)
        signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS, _SECONDS)
        try:
            return work(item, *shared)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    return in_time


def _bounded_in_thread(work: Callable[..., Result]) -> Callable[..., Result]:
    """The same for a thread, which hears of no signal: another one raises the error in it."""
    import ctypes
    from threading import Timer, get_ident

    def in_time(*given: Any) -> Result:
        here = ctypes.c_ulong(get_ident()), ctypes.py_object(GivenUpError)
        timer = Timer(_SECONDS, ctypes.pythonapi.PyThreadState_SetAsyncExc, here)
        timer.daemon = True
        timer.start()
        try:
            return work(*given)
        finally:
            timer.cancel()

    return in_time


class _NoProcessError(Exception):
    """The system lets us have no other process; the text says why."""


@contextmanager
def _starting() -> Iterator[None]:
    # A process that is no copy of this one begins with "python -c", which must import nothing of the current
    # folder.
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    except OSError as error:
        raise _NoProcessError(error.strerror or str(error)) from error
    # A Python or a system without semaphores; or there is no room for a thread.
    except (ImportError, NotImplementedError, RuntimeError, MemoryError) as error:
        from concurrent.futures import BrokenExecutor

        if isinstance(error, BrokenExecutor):
            raise
        raise _NoProcessError(str(error) or "not enough memory") from error
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _in_processes(
    items: Sequence[Item], jobs: int, work: Callable[..., Result], shared: tuple[Any, ...]
) -> Iterator[Result]:
    with _starting():
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        _try_threads()
        pool = ProcessPoolExecutor(jobs, initializer=_start, initargs=(work, shared))
    chunks = _chunks(items, jobs)
    waiting: deque[Future[list[Result]]] = deque()
    try:
        for chunk in chunks:
            with _starting(), _undisturbed():
                waiting.append(pool.submit(_each, chunk))
            if len(waiting) >= jobs * _CHUNKS_AHEAD:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()
        pool.shutdown()
    except BaseException:
        # Ctrl-C, a killed worker, or the caller has had enough: nobody waits for what is still running. But
        # the pool's own thread has to be through before Python ends, or the two meet over a closed pipe.
        for process in multiprocessing.active_children():
            process.terminate()
        with suppress(RuntimeError):  # a pool that was never whole has nothing to wait for
            pool.shutdown(cancel_futures=True)
        raise


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold back what asks to end while workers start: they hear it when they are ready, in their own way."""
    import signal

    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _try_threads() -> None:
    """Raise RuntimeError where no two threads can be started: a pool without its own waits for ever."""
    from threading import Event, Thread

    through = Event()
    try:
        for _ in range(_THREADS_OF_A_POOL):
            Thread(target=through.wait, daemon=True).start()
    finally:
        through.set()


def _chunks(items: Sequence[Item], jobs: int) -> Iterator[Sequence[Item]]:
    """The items in ever smaller pieces, so that all processes end together."""
    place = 0
    while place < len(items):
        size = max(_LEAST, min(_MOST, (len(items) - place) // (jobs * _CHUNKS_PER_JOB)))
        yield items[place : place + size]
        place += size


# In a worker: what it does with each item, and what every item shares.
_task: tuple[Callable[..., Any], tuple[Any, ...]] = (lambda item: item), ()


def _start(work: Callable[..., Any], shared: tuple[Any, ...]) -> None:
    import gc
    import signal

    global _task
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C, and ends the workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # with this one
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    _end_with_parent()
    gc.freeze()  # the rules and the project stay: to look through them for garbage costs a thirtieth
    _task = bounded(work), shared


def _end_with_parent() -> None:
    """Let this worker end when its parent is killed: nobody else would ever end it.

    Linux itself can see to it, whatever the worker is busy with. Elsewhere, and if the parent was gone before
    Linux was asked, a thread does.
    """
    import signal
    from multiprocessing import parent_process
    from multiprocessing.connection import wait
    from threading import Thread

    if sys.platform == "linux":
        # A Python or a C library without it, or no memory for it.
        with suppress(ImportError, OSError, AttributeError, MemoryError):
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    parent = parent_process()
    if parent is None:
        return

    def watch(ends: int) -> None:
        wait([ends])  # workers that were started later hold this pipe, too: the last one ends first
        os._exit(1)

    with suppress(RuntimeError):  # there is no room for a thread: Linux was asked
        Thread(target=watch, args=(parent.sentinel,), daemon=True).start()


def _each(items: Sequence[Any]) -> list[Any]:
    work, shared = _task
    return [work(item, *shared) for item in items]
