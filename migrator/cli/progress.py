"""How far the work is: a progress bar, on a terminal and where it takes long, or the log of --verbose."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PATIENCE = 0.7  # seconds without a bar
_PAUSE = 0.1  # seconds between two pictures of it


class ProgressBar:
    """Called with stage, done and total; remembers them. At the end of a stage the bar goes away."""

    def __init__(self, shown: bool) -> None:
        self.stage = ""
        self.done = 0
        self.total = 0
        self._shown = shown and sys.stderr.isatty()
        self._next = time.monotonic() + _PATIENCE
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note how far the work is."""
        self.stage, self.done, self.total = stage, done, total
        if total and done >= total:  # what is printed now does not run into it
            self._stop()
        elif self._shown and time.monotonic() >= self._next:
            self._draw()
            self._next = time.monotonic() + _PAUSE

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = self._task = None

    def _draw(self) -> None:
        if self._bar is None or self._task is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

            parts = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
            # No thread of its own: processes are started by fork while the bar is up.
            self._bar = Progress(*parts, console=Console(stderr=True), auto_refresh=False, transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self.stage, total=None)
        self._bar.update(
            self._task, description=self.stage, completed=self.done, total=self.total or None, refresh=True
        )


@contextmanager
def log_on_terminal(verbose: bool) -> Iterator[None]:
    """Let the log run on the standard error, too, where ``verbose``."""
    import logging  # lint, which needs a start as short as can be, has no log

    logger = logging.getLogger("npumigrate")
    logger.setLevel(logging.DEBUG if verbose else logging.INFO)
    logger.propagate = False
    handler = logging.StreamHandler(sys.stderr) if verbose else logging.NullHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
