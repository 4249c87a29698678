"""Runs a program to its end, or to a time limit, and leaves none of its processes behind."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO

from migrator.emulator import warden
from migrator.emulator.launch import boxed, one_launch, shell_code, when_asked_to_end
from migrator.light import Frozen
from migrator.verify.diagnosis import ask_where

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, see prctl(2)
_GRACE = 10.0  # seconds to end in order, once asked to
_REST = 3.0  # seconds for helpers, such as multiprocessing's resource tracker, to follow the program
# Whether a program does anything: one that waits uses no processor and moves no data.
_SAMPLE = 1.0  # seconds between two looks
_SHARE = 0.05  # of a core: polls and heartbeats stay below
_MOVED = 1 << 16  # bytes a second


class Ended(Frozen):
    """How a program ended.

    ``code`` is as a shell has it. ``output`` is what it printed, where that was kept: standard output,
    then standard error.
    """

    code: int
    seconds: float
    timed_out: bool = False
    interrupted: bool = False
    left: int = 0  # processes that outlived it, and were ended
    output: str = ""
    still: float = 0.0  # seconds before it was ended in which it did nothing

    @property
    def well(self) -> bool:
        """Whether it came to its end, without an error."""
        return self.code == 0 and not self.timed_out and not self.interrupted


@dataclass
class Stillness:
    """Since when some processes, as ``members`` gives them, have done nothing."""

    members: Callable[[], Iterable[int]]
    _active: float = field(default_factory=time.monotonic)
    _looked: float = field(default_factory=time.monotonic)
    _known: dict[int, tuple[float, int]] = field(default_factory=dict)

    def seconds(self) -> float:
        """For how long nothing has been done."""
        now = time.monotonic()
        seconds = now - self._looked
        if seconds >= _SAMPLE:
            usage = dict(filter(None, map(_usage, self.members())))
            same = usage.keys() == self._known.keys()
            before = self._known if same else usage
            used, moved = (sum(usage[pid][i] - before[pid][i] for pid in usage) for i in (0, 1))
            if not same or used > _SHARE * seconds or moved > _MOVED * seconds:
                self._active = now
            self._known, self._looked = usage, now
        return now - self._active


def run(
    command: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    timeout: float | None = None,
    keep: bool = False,
    shown: bool = True,
    notes: Path | None = None,
    patience: float | None = None,
) -> Ended:
    """Run a command in a folder.

    ``keep`` keeps what it prints, ``shown`` also lets it through. Where it does nothing for ``patience``
    seconds, it is ended as at the end of the time; before that, its processes write into ``notes`` where
    they are. What asks this process to end is passed on, and so is the end of the time. The death of this
    process ends all that the command has started, and removes the folder of ``notes``.

    Raises OSError if it cannot be started.
    """
    # Become the parent of what the program's processes leave behind, so that it can be found.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    start = time.monotonic()
    pipe = subprocess.PIPE if keep else None
    asked: list[int] = []  # the signals that came: the program has a session of its own
    output: tuple[list[bytes], list[bytes]] = ([], [])
    with one_launch(env, folder=notes) as launch:
        before = warden.below([os.getpid()])
        process = subprocess.Popen(
            boxed(command, launch.env, (folder, notes)),
            env=launch.env,
            cwd=folder,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
        )
        streams = ((process.stdout, sys.stdout, output[0]), (process.stderr, sys.stderr, output[1]))
        readers = [
            threading.Thread(target=_copy, args=(source, target.buffer if shown else None, kept), daemon=True)
            for source, target, kept in streams
            if source is not None
        ]
        for reader in readers:
            reader.start()

        def pass_on(number: int, _: object) -> None:
            asked.append(number)
            _ask(process, number)

        with when_asked_to_end(pass_on):
            own = Stillness(lambda: warden.below([os.getpid()]) - before)
            timed_out, still = _wait(process, asked, timeout, patience, own, notes)
            seconds = time.monotonic() - start
            end = time.monotonic() + _REST
            while (rest := _rest(before)) and time.monotonic() < end:
                time.sleep(0.05)
            warden.end_all(lambda: _rest(before))
    for reader in readers:
        reader.join()
    return Ended(
        shell_code(process.returncode),
        seconds,
        timed_out,
        bool(asked),
        len(rest),
        b"\n".join(b"".join(kept) for kept in output).decode("utf-8", "replace"),
        still if timed_out else 0.0,
    )


def _wait(
    process: subprocess.Popen[bytes],
    asked: list[int],
    timeout: float | None,
    patience: float | None,
    own: Stillness,
    notes: Path | None,
) -> tuple[bool, float]:
    """Wait for the end; return whether the time or the patience was up, and for how long nothing was done."""
    end = float("inf") if timeout is None else time.monotonic() + timeout
    ending = timed_out = False
    still = 0.0
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            return timed_out, still
        now = time.monotonic()
        if not ending and patience is not None:
            still = own.seconds()
            end = now if still >= patience else end
        if asked and not ending:
            ending, end = True, now + _GRACE
        elif now >= end and ending:
            process.kill()
        elif now >= end:
            timed_out = ending = True
            if notes is not None:
                ask_where(notes)
            _ask(process, signal.SIGTERM)
            end = now + _GRACE


def _ask(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to the program and its group, as a terminal does: a shell waits for what it runs."""
    if process.poll() is None:  # its number is still its own
        os.killpg(process.pid, number)


def _copy(source: IO[bytes], target: BinaryIO | None, kept: list[bytes]) -> None:
    while data := os.read(source.fileno(), 1 << 16):
        kept.append(data)
        if target is not None:
            target.write(data)
            target.flush()


def _rest(before: set[int]) -> set[int]:
    """What is still there of the program's processes."""
    rest = warden.below([os.getpid()]) - before
    for pid in rest:
        with suppress(ChildProcessError):  # not adopted yet
            os.waitpid(pid, os.WNOHANG)
    return {pid for pid in rest if warden.stat(pid)[:1] not in (["Z"], [])}


def _usage(pid: int) -> tuple[int, tuple[float, int]] | None:
    """The seconds of processor time that a process has used, and the bytes that it has read and written."""
    fields = warden.stat(pid)
    if not fields or fields[0] in "ZX":
        return None
    used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    moved = 0
    with suppress(OSError):
        moved = sum(int(line.split()[1]) for line in Path(f"/proc/{pid}/io").read_text().splitlines()[:2])
    return pid, (used, moved)
