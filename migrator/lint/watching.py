"""``--watch``: lint again whenever a file changes. By polling: a project's files are few enough."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from migrator.lint.command import Wishes, configuration_of, lint_once
from migrator.lint.files import targets
from migrator.lint.options import ConfigError
from migrator.sources.errors import SourceError

_PAUSE = 0.5  # seconds between two looks

State = dict[Path, tuple[int, int]]


def lint_and_watch(wishes: Wishes) -> int:
    """Lint until the user has enough: never returns but by KeyboardInterrupt.

    Raises ConfigError where the first run does; a configuration that breaks later is
    told, and the next change looked at.
    """
    if "-" in wishes.paths:
        raise ConfigError("--watch needs files, not the standard input")
    lint_once(wishes)
    state = _state(wishes)
    while True:
        time.sleep(_PAUSE)
        now = _state(wishes)
        if now == state:
            continue
        if sys.stdout.isatty():
            print("\x1b[2J\x1b[H", end="")
        try:
            lint_once(wishes)
        except (ConfigError, SourceError) as error:
            print(f"npumigrate: {error}", file=sys.stderr)
        sys.stdout.flush()
        state = _state(wishes)  # fixes have changed files, too


def _state(wishes: Wishes) -> State:
    """Time and size of each file that is linted, and of the configuration files."""
    state: State = {}
    try:
        found = list(targets(wishes.paths, configuration_of(wishes), lambda _: None))
    except (ConfigError, SourceError):
        found = []
    places = {target.place for target in found} | {Path(item.options.origin) for item in found}
    places |= {Path(name).absolute() for name in ("pyproject.toml", "npumigrate.toml", ".npumigrate.toml")}
    for place in places:
        try:
            status = os.stat(place)
            state[place] = (status.st_mtime_ns, status.st_size)
        except OSError:
            continue
    return state
