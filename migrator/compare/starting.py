"""Starts a program so that the recorder is in it, and in all Python processes that it starts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from migrator import __version__
from migrator.compare.reading import RUN
from migrator.emulator.launch import in_front
from migrator.language import MessageError

BOOTSTRAP = Path(__file__).parent / "bootstrap"


def prepare_folder(folder: Path) -> None:
    """Make the folder of a trace, or empty it of an older one. Raises MessageError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        others = [
            path for path in folder.iterdir() if path.name != RUN and not path.match("process-*.jsonl.gz")
        ]
        if others:
            raise MessageError(
                "{folder} contains files other than a trace: {name}", folder=folder, name=others[0].name
            )
        for old in folder.iterdir():
            old.unlink()
    except OSError as error:
        raise MessageError("{folder}: {why}", folder=folder, why=error.strerror) from None


def environment(
    base: Mapping[str, str], folder: Path, steps: int, level: str, same_random: bool, seed: int | None
) -> dict[str, str]:
    """The environment of a program that is recorded."""
    own = {"": str(folder.absolute()), "_STEPS": str(steps), "_LEVEL": level}
    own |= {"_RANDOM": "same"} if same_random else {}
    own |= {} if seed is None else {"_SEED": str(seed)}
    kept = {name: value for name, value in base.items() if not name.startswith("NPUMIGRATE_RECORD")}
    path = in_front(BOOTSTRAP, base.get("PYTHONPATH"))
    return {**kept, "PYTHONPATH": path, **{f"NPUMIGRATE_RECORD{name}": value for name, value in own.items()}}


def write_about(folder: Path, command: Sequence[str], how: str, code: int | None) -> None:
    """Write what was run into a trace, and its exit code once it is known. Raises OSError."""
    about = {"schema": 1, "npumigrate": __version__, "command": [*command], "with": how, "code": code}
    (folder / RUN).write_text(json.dumps(about) + "\n", encoding="utf-8")
