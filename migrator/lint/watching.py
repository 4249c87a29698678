"""``--watch``: lint again whenever a file changes. By polling: a project's files are few enough."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from migrator.files.errors import SourceError
from migrator.lint.config_files import CONFIG_NAMES
from migrator.lint.files import Stamp, stamp, targets
from migrator.lint.options import ConfigError
from migrator.lint.run import CommandLine, configuration_of, lint_once
from migrator.run.processes import Progress

_PAUSE = 0.5  # seconds between two looks


def lint_and_watch(line: CommandLine, progress: Progress) -> int:
    """Lint until the user has enough: never returns but by KeyboardInterrupt.

    Raises ConfigError where the first run does; a configuration that breaks later is
    told, and the next change looked at.
    """
    if "-" in line.paths:
        raise ConfigError("--watch needs files, not the standard input")
    lint_once(line, progress)
    state = _state(line)
    while True:
        time.sleep(_PAUSE)
        now = _state(line)
        if now == state:
            continue
        if sys.stdout.isatty():
            print("\x1b[2J\x1b[H", end="")
        try:
            lint_once(line, progress)
        except (ConfigError, SourceError) as error:
            print(f"npumigrate: {error}", file=sys.stderr)
        sys.stdout.flush()
        state = _state(line)  # fixes have changed files, too


def _state(line: CommandLine) -> Stamp:
    """Time and size of each file that decides what is found."""
    native: list[Path] = []
    try:
        configuration = configuration_of(line)
        found = list(
            targets(line.paths, configuration, lambda _: None, lambda _, place: native.append(place))
        )
    except (ConfigError, SourceError):
        found = []
    places = {target.place for target in found}.union(native)
    for options in {id(target.options): target.options for target in found}.values():
        deciding = (options.origin, *options.extended, options.baseline, *options.rules)
        places.update(Path(file) for file in deciding if file)
    for folder in {Path.cwd(), *(target.place.parent for target in found)}:
        places.update(folder / name for name in CONFIG_NAMES)
    return stamp(sorted(map(str, places)))
