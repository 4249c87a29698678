"""The folder that an agent may ask about, and runs of npumigrate's commands in processes that end in time.

So the answers are those of the command line, and no input can keep the server from answering.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from migrator.files.errors import shown

LARGEST = 1_000_000  # characters of a text, bytes of a file
_MOST = 64 << 20  # bytes of what a command prints
_GRACE = 15.0  # seconds to end in order, once asked to


class Refused(ValueError):  # noqa: N818 - it says what became of a request
    """What a tool does not look at; its text is the agent's line."""


def place_in(workspace: Path, path: str) -> Path:
    """Where a path, relative to the workspace or absolute, leads to. Raises Refused for what lies outside."""
    try:
        place = Path(os.path.realpath(workspace / path))
    except ValueError:  # a NUL byte
        raise Refused(f"no path: {path!r}") from None
    if not place.is_relative_to(workspace):
        raise Refused(f"{shown(path)} lies outside of the workspace {shown(workspace)}")
    return place


def existing(workspace: Path, path: str, largest: int = LARGEST) -> Path:
    """A file of no more than ``largest`` bytes, or a folder, of the workspace. Raises Refused."""
    place = place_in(workspace, path)
    if place.is_file():
        if place.stat().st_size > largest:
            raise Refused(f"{shown(path)} has more than {largest:,} bytes")
    elif not place.is_dir():
        raise Refused(f"no such file or folder in the workspace: {shown(path)}")
    return place


def name_in(workspace: Path, file: str) -> str:
    """The name of a file inside the workspace; empty where it, or what it links to, lies outside."""
    inside = Path(os.path.realpath(file)).is_relative_to(workspace)
    return os.path.relpath(file, workspace).replace(os.sep, "/") if inside else ""


class Finished(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


async def run_own(
    arguments: Sequence[str], folder: Path, seconds: float, stdin: str = "", most: int = _MOST
) -> Finished:
    """Run ``npumigrate`` with some arguments in a folder.

    Raises Refused where it takes longer than ``seconds``, or prints more than ``most`` bytes.
    """
    # Nothing is imported from the folder, which may hold a package called migrator.
    start = f"import sys; sys.path[:] = {sys.path!r}; sys.argv[0] = 'npumigrate'"
    program = [sys.executable, "-c", f"{start}; from migrator.cli.start import main; main()"]
    # As all that programs read, it is English.
    fixed = {"NO_COLOR": "1", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8", "NPUMIGRATE_LANG": "en"}
    environment = {**os.environ, **fixed}
    environment.pop("FORCE_COLOR", None)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = await asyncio.create_subprocess_exec(
            *program,
            *arguments,
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            given = stdin.encode("utf-8", "surrogatepass")
            await asyncio.wait_for(process.communicate(given), seconds)
        except asyncio.TimeoutError:
            why = f"{arguments[0]} took longer than {seconds:g} s: name a smaller folder, or a file"
            raise Refused(why) from None
        finally:  # also where the client cancels the call
            if process.returncode is None:
                await asyncio.shield(_end(process))
        printed = (_text(file, most, arguments[0]) for file in (out, err))
        return Finished(process.returncode or 0, *printed)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a command and the processes that it started."""
    for number, patience in ((signal.SIGTERM, _GRACE), (getattr(signal, "SIGKILL", signal.SIGTERM), None)):
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, number)
            else:
                process.kill()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), patience)
            return


def _text(file: IO[bytes], most: int, command: str) -> str:
    size = file.seek(0, os.SEEK_END)
    if size > most:
        raise Refused(f"{command} has more than {most >> 20} MiB to say: name a smaller folder, or a file")
    file.seek(0)
    return file.read().decode("utf-8", "replace")
