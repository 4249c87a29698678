"""What a program lacks that fails or waits: data, a port, a rank; ``reports/waiting.yaml`` has the signs."""

from __future__ import annotations

import json
import linecache
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.data_folders import reports_yaml
from migrator.language import N_, _
from migrator.verify.stacks import Call, Stack, is_installed, is_own, process_name

_ELSEWHERE: Mapping[str, Any] = {"name": "waits", "advice": N_("check the place where it waits")}


@dataclass(frozen=True)
class Frame:
    """One call on the way to a failure; lines are 1-based, columns in bytes, -1 where not known.

    ``values`` are those of the names on its line: ``expression``, ``kind``, ``device``, …
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    source: str
    values: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Failure:
    """An exception that ended a process, or was being handled when the process gave up."""

    process: int
    rank: str | None
    type: str
    kinds: tuple[str, ...]
    text: str
    frames: tuple[Frame, ...]  # the innermost last

    @property
    def who(self) -> str:
        """The process for a person."""
        return process_name(self.process, self.rank)

    @property
    def line(self) -> str:
        """Type and message on one line."""
        return f"{self.type}: {' '.join(self.text.split())}"[:300]

    def own(self, folder: Path) -> Frame | None:
        """The innermost call of the project in ``folder``."""
        return next((frame for frame in reversed(self.frames) if is_own(frame.file, folder)), None)

    @property
    def written(self) -> list[Frame]:
        """The calls outside of installed packages."""
        return [frame for frame in self.frames if not is_installed(frame.file)]


@dataclass(frozen=True)
class Lack:
    """What a program lacks; ``lines`` say who failed or waits, and where."""

    name: str
    lines: tuple[str, ...]
    advice: str


def read_failures(notes: Path, kind: str = "failure") -> list[Failure]:
    """The failures that processes noted, in their order; of kind ``lost``, mixed precision that is off."""
    paths = sorted(notes.glob(f"{kind}-*.json"), key=lambda path: path.stat().st_mtime_ns)
    return [_failure(json.loads(path.read_text(encoding="utf-8"))) for path in paths]


def _failure(data: dict[str, Any]) -> Failure:
    frames = tuple(Frame(**{**frame, "values": tuple(frame["values"])}) for frame in data["frames"])
    return Failure(**{**data, "kinds": tuple(data["kinds"]), "frames": frames})


def what_fails(failures: Sequence[Failure], folder: Path) -> Lack | None:
    """What a failed program lacks; None where that is not the reason, as far as is known."""
    if not failures:
        return None
    first = failures[0]
    for entry in reports_yaml("waiting.yaml")["failures"]:
        fits = "kinds" not in entry or set(entry["kinds"]) & set(first.kinds)
        if fits and ("text" not in entry or re.search(entry["text"], first.text)):
            own = first.own(folder)
            place = f" at {_shown(own, folder)}" if own else ""
            return Lack(_(entry["name"]), (f"{first.who}{place}: {first.line}",), _(entry["advice"]))
    return None


def what_waits(stacks: Sequence[Stack], folder: Path) -> Lack | None:
    """For what a program waits; None where its processes did not say where they are."""
    found = [(entry, stack) for stack in stacks if (entry := _wait_of(stack, folder)) is not None]
    if not found:
        return None
    order = [*reports_yaml("waiting.yaml")["waits"], _ELSEWHERE]
    # A process that waits for those below it does so because of what they wait for.
    entry = min((entry for entry, _stack in found), key=order.index)
    lines = [_("{who} waits {stack}", who=stack.who, stack=_where(stack, folder)) for _entry, stack in found]
    return Lack(_(entry["name"]), tuple(lines), _(entry["advice"]))


def _wait_of(stack: Stack, folder: Path) -> Mapping[str, Any] | None:
    own = stack.own(folder)
    if own is None:
        return None
    place, call = own
    inside = stack.calls[:place]
    source = linecache.getline(call.file, call.line)

    def fits(entry: Mapping[str, Any]) -> bool:
        return bool(
            ("source" in entry and not inside and re.search(entry["source"], source))
            or {one.function for one in inside}.intersection(entry.get("calls", ()))
            or ("files" in entry and any(re.search(entry["files"], one.file) for one in inside))
        )

    return next(filter(fits, reports_yaml("waiting.yaml")["waits"]), _ELSEWHERE)


def _where(stack: Stack, folder: Path) -> str:
    own = stack.own(folder)
    if own is None:
        return _("outside of the project")
    place, call = own
    through = f"in {stack.calls[place - 1].function} " if place else ""
    return f"{through}at {_shown(call, folder)}"


def _shown(place: Frame | Call, folder: Path) -> str:
    return f"{os.path.relpath(os.path.realpath(place.file), folder.resolve())}:{place.line}"
