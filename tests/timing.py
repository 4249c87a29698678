"""How the time of a call grows with what it gets. Seconds differ between machines: no test judges by them."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Callable, TypeVar

_MOST = 2.5  # times as long for twice as much: a call that looks at every pair takes 4 times as long
_ROUNDS = 12
T = TypeVar("T")


class TooSlow(BaseException):
    """No Exception: what guards a file from mistakes of ours must not catch it."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raises TooSlow after so many seconds of this process's time; only in the main thread."""

    def end(*_: object) -> None:
        raise TooSlow(f"{time.process_time():.1f} s")

    old = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def grows_evenly(do: Callable[[T], object], make: Callable[[int], T], size: int, hangs: float = 120) -> bool:
    """Whether a call takes at most 2.5 times as long for what is twice as large.

    ``make`` gives what the call gets, of a quarter of the size and of the size, as two steps even out what
    caches do to one. The shortest of several calls counts, and they end as soon as the two are close enough,
    so that noise alone does not decide. Raises TooSlow after ``hangs`` seconds of processor time: only what
    would not end takes so long.
    """
    given = make(size // 4), make(size)
    limit, pairs = _MOST**2, []
    with bounded(hangs):
        for _ in range(_ROUNDS):
            pairs.append([_seconds(do, each) for each in given])
            quarter, whole = map(min, zip(*pairs))
            if whole <= limit * quarter:
                return True
    return median(whole / max(quarter, 1e-9) for quarter, whole in pairs) <= limit  # a clock may err once


def _seconds(do: Callable[[T], object], given: T) -> float:
    """The seconds of the processor that a call takes in this thread.

    The collector waits meanwhile: in a process that has run thousands of tests, each of its rounds visits
    what all of them left, and a call of 0.2 s was seen to take 2.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        started = time.thread_time()  # exact also while a timer of the process runs
        do(given)
        return time.thread_time() - started
    finally:
        if collects:
            gc.enable()


def wait_until(done: Callable[[], object], seconds: float = 30) -> None:
    """Wait until something is so; an error where it is not for some seconds."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)
