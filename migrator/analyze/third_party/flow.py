"""The ways through a function's body: what is done on each of them, and on which condition.

A body is a sequence of steps. It can be asked whether some way through it does without a set of uses: a
function *cannot work* where every way that ends well needs something that is unsupported on NPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Callable, Union

GUARDS = ("device", "import")
_ON, _RETURN, _BREAK, _CONTINUE = 1, 2, 4, 8


@dataclass(frozen=True)
class Use:
    """A call, or a place that a rule has found (``reason``: its number in the file's findings).

    ``target`` is what is called, as it is written: ``self.conv``, ``Conv()`` for a call of what a call gives,
    ``layers[]`` for one of what an index gives. ``called`` tells of a reason that it is a call and not a
    mention.
    """

    line: int
    target: str = ""
    reason: int = -1
    called: bool = False


@dataclass(frozen=True)
class Condition:
    """What a branch depends on: its line, its text, and what it asks.

    ``guard`` is device or import; filled and empty, which ask for the usual case (there is some input, a
    gradient is wanted) or for its contrary; '' for anything else.
    """

    line: int
    text: str
    guard: str = ""


@dataclass(frozen=True)
class Branch:
    """``if``: one of two sequences. A loop's body is no branch: it is taken to run."""

    condition: Condition
    body: Steps
    otherwise: Steps = ()


@dataclass(frozen=True)
class Loop:
    """``for`` and ``while``; ``endless`` is ``while True``."""

    body: Steps
    endless: bool = False


@dataclass(frozen=True)
class Attempt:
    """``try``: the body, or where it fails one of the handlers."""

    condition: Condition
    body: Steps
    handlers: tuple[Steps, ...]


@dataclass(frozen=True)
class End:
    """``return``, ``raise``, ``break`` or ``continue``."""

    kind: str


Step = Union[Use, Branch, Loop, Attempt, End]
Steps = tuple[Step, ...]


@dataclass(frozen=True)
class Place:
    """A use in a body, and the conditions under which it is come by, the outermost first."""

    use: Use
    conditions: tuple[Condition, ...] = field(default=())

    @property
    def guarded(self) -> bool:
        """Whether a test of the device, or of an import, decides about it."""
        return any(condition.guard in GUARDS for condition in self.conditions)


def _never(use: Use) -> bool:
    return False


def can_end_well(steps: Steps, bad: Callable[[Use], bool] = _never) -> bool:
    """Whether some way through the steps comes to a normal end and by nothing that is ``bad``.

    An abstract method, which only raises, comes to none at all.
    """
    return bool(_outcomes(steps, bad) & (_ON | _RETURN))


def _outcomes(steps: Steps, bad: Callable[[Use], bool]) -> int:
    """How the ways through the steps without a bad use may end."""
    found = 0
    for step in steps:
        if isinstance(step, Use):
            if bad(step):
                return found
            continue
        if isinstance(step, End):
            return found | {"return": _RETURN, "break": _BREAK, "continue": _CONTINUE}.get(step.kind, 0)
        if isinstance(step, Branch):
            # Nothing is shown to work by a way that is for empty input only.
            unusual = step.condition.guard if bad is not _never else ""
            ends = 0 if unusual == "empty" else _outcomes(step.body, bad)
            ends |= 0 if unusual == "filled" else _outcomes(step.otherwise, bad)
        elif isinstance(step, Attempt):
            ends = _outcomes(step.body, bad)
            for handler in step.handlers:
                ends |= _outcomes(handler, bad)
        else:
            inner = _outcomes(step.body, bad)
            goes_on = inner & _BREAK if step.endless else inner & (_ON | _BREAK | _CONTINUE)
            ends = (inner & _RETURN) | (_ON if goes_on else 0)
        found |= ends & ~_ON
        if not ends & _ON:
            return found
    return found | _ON


def places(steps: Steps, above: tuple[Condition, ...] = ()) -> Iterator[Place]:
    """Every use in the steps. What follows ``if x: return`` depends on that test too."""
    for step in steps:
        if isinstance(step, Use):
            yield Place(step, above)
        elif isinstance(step, Branch):
            usual = step.condition.guard in ("filled", "empty")
            below = above if usual else (*above, step.condition)
            yield from places(step.body, below)
            yield from places(step.otherwise, below)
            if _returns(step.body) != _returns(step.otherwise):
                above = below
        elif isinstance(step, Loop):
            yield from places(step.body, above)
        elif isinstance(step, Attempt):
            recovers = any(_outcomes(handler, _never) for handler in step.handlers)
            yield from places(step.body, (*above, step.condition) if recovers else above)
            for handler in step.handlers:
                yield from places(handler, (*above, step.condition))


def _returns(steps: Steps) -> bool:
    """Whether the steps leave the function with a value: then what follows is another case."""
    return _outcomes(steps, _never) == _RETURN
