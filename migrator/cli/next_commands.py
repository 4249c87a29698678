"""The commands that come next, as they can be pasted into the shell that ran this one."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def shell_word(text: str) -> str:
    """A text as one word of bash, on one line: what cannot be printed becomes an escape in ``$'…'``."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = (
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\\\" else f"\\x{byte:02x}"
        for byte in os.fsencode(text)
    )
    return f"$'{''.join(escaped)}'"


def own_command() -> str:
    """How this npumigrate is called: by its name where a shell finds it, else by its path or its Python."""
    called = sys.argv[0]
    found = shutil.which("npumigrate")
    if os.path.basename(called) == "npumigrate":
        same = found is not None and os.path.realpath(found) == os.path.realpath(called)
        return "npumigrate" if same else shell_word(called)
    return f"{shell_word(sys.executable)} -m migrator"


def after_migration(result: Path, launcher: str) -> list[str]:
    """Check a result on emulated NPUs, by its launcher; start it on NPUs."""
    place = str(result)
    if place.startswith("-"):  # no option
        place = f"./{place}"
    return [
        f"{own_command()} verify {shell_word(place)} --devices 2 -- bash {launcher}",
        f"bash {shell_word(os.path.join(place, launcher))}",
    ]
