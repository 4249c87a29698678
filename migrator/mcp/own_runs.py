"""Runs a command of npumigrate in a process of its own, which ends when its time is up.

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

from migrator.mcp.workspace import Refused

_MOST = 64 << 20  # bytes of what a command prints
_GRACE = 15.0  # seconds to end in order, once asked to


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
            raise Refused(
                f"{arguments[0]} took longer than {seconds:g} s: name a smaller folder, or a file"
            ) from None
        finally:  # also where the client cancels the call
            if process.returncode is None:
                await asyncio.shield(_end(process))
        return Finished(
            process.returncode or 0, _text(out, most, arguments[0]), _text(err, most, arguments[0])
        )


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
