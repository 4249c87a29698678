"""Compares the numbers that two runs of a program print, line by line."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import Optional

from migrator.light import Frozen

_PER = r"(?:s|sec|secs|second|ms|it|iter|step|batch|img|sample|token|min|hour)\b"
# Not results: escape codes, a tensor's device, addresses, paths, versions, dates, times such as 01:02.
_NOISE = re.compile(
    rf"""\x1b\[[0-9;?]*[A-Za-z]
      | ,[ ]device='\w+(?::\d+)?'
      | 0x[0-9a-fA-F]+
      | (?<!\w)(?:~|\.\.?)?/(?!{_PER})[A-Za-z_.~][\w./~-]*
      | (?<![\w.~-])(?<![\w.~-]/)[\w.~-]+(?:/[\w.~-]+)+\.[A-Za-z]\w*
      | \b\d+\.\d+\.\d+[\w.+]*
      | \b\d{{4}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?)?
      | \b\d+:\d\d(?::\d\d)?(?:[.,]\d+)?(?!\d)
    """,
    re.VERBOSE,
)
# A point without decimals belongs to a number in a tensor or array, and ends a sentence elsewhere.
_NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+(?:\.\d+|\.(?=[,\])]))?|\.\d+)(?:[eE][-+]?\d+)?|(?<![\w.])[-+]?(?:nan|inf)\b",
    re.IGNORECASE,
)
# What stands behind a number that is a speed, a duration or an amount of memory …
_UNIT = re.compile(
    r"\s*(?:(?:s|sec|secs|seconds?|ms|us|µs|min|mins|minutes?|h|hours?|hz|[kmgt]i?b|bytes|[kmgt]?flops|fps)\b"
    r"(?!\s*(?:[:=]\s*)?[-+]?\d)"  # the name of the number that follows
    rf"|(?:\w*/|(?:\w+\s+|(?<=\s))per\s+){_PER})",
    re.IGNORECASE,
)
# … and what stands before one.
_LONGEST_LABEL = 100
_LABEL = re.compile(
    r"(?:time|elapsed|duration|latency|speed|throughput|memory|_per_(?:second|sec|step|s)|(?<![a-z])"
    r"(?:took|eta|data|fps|(?:[cg]pu_?)?mem|allocated|reserved|cached|used|free|pid|port|secs?|seconds|ms|tflops"
    r"|date|(?:s|secs?|seconds?|ms|mins?)/\w{1,20}|\w{1,20}/(?:s|sec|second)))"
    r"(?:_\w{0,20})?s?[\"']?\s*(?:(?:[:=(]|is|was)+\s*[\"']?)?$",
    re.IGNORECASE,
)
# Lines of warnings, of Python and of torch's C++ code.
_WARNING = re.compile(
    r"(?:\[rank\d+\]:\s*)?\[[WEI]\d{4} |\S+:\d+: \w*Warning: |npumigrate emulate: |.*\(Triggered internally"
)
_WORD = re.compile(r"[^\W\d][\w./%-]*")
_SAME_WORDS = (("cuda", "npu"), ("nccl", "hccl"), ("gpu", "npu"))


class Line(Frozen):
    """A printed line that holds numbers which could be results."""

    text: str
    key: str  # the text without its numbers
    numbers: tuple[str, ...]
    whole: tuple[str, ...]  # those of them that are whole numbers
    names: tuple[str, ...]  # the words before each


class Pair(Frozen):
    """Two lines that say the same of two runs, and the largest difference between their numbers."""

    original: str
    migrated: str
    difference: float
    agrees: bool


class Comparison(Frozen):
    """What two runs printed. ``compared`` has every pair with a number that is not whole."""

    tolerance: float
    compared: tuple[Pair, ...]
    numbers: int
    only_original: tuple[str, ...]
    only_migrated: tuple[str, ...]

    @property
    def wrong(self) -> tuple[Pair, ...]:
        """The pairs that do not agree."""
        return tuple(pair for pair in self.compared if not pair.agrees)

    @property
    def agrees(self) -> bool:
        """Whether something could be compared, and all of it agrees."""
        return bool(self.compared) and not self.wrong

    @property
    def largest(self) -> float:
        """The largest relative difference; infinite where one of the numbers is none."""
        return max((pair.difference for pair in self.compared), default=0.0)


def compare(original: str, migrated: str, tolerance: float) -> Comparison:
    """Compare what two runs printed.

    Lines belong together whose text without its numbers is equal: of those first the lines with the same
    whole numbers (an epoch, a rank), then the rest in their order. Two numbers agree if they
    differ by at most ``tolerance``, relative to the larger one, or by one unit of the last place
    that was printed (rounding), where at least three digits were.
    """
    groups: defaultdict[str, tuple[list[Line], list[Line]]] = defaultdict(lambda: ([], []))
    for side, output in enumerate((original, migrated)):
        for line in lines(output):
            groups[line.key][side].append(line)
    pairs: list[Pair] = []
    numbers = 0
    only: tuple[list[str], list[str]] = ([], [])
    for ours, theirs in groups.values():
        together, left, right = _together(ours, theirs)
        only[0].extend(line.text for line in left)
        only[1].extend(line.text for line in right)
        for first, second in together:
            if len(first.whole) == len(first.numbers) and len(second.whole) == len(second.numbers):
                continue
            agrees = len(first.numbers) == len(second.numbers)
            largest = 0.0 if agrees else math.inf
            for both in zip(first.numbers, second.numbers):
                relative, rounded = _apart(*both)
                largest = max(largest, relative)
                agrees &= rounded or relative <= tolerance
            pairs.append(Pair(first.text, second.text, largest, agrees))
            numbers += len(first.numbers)
    return Comparison(tolerance, tuple(pairs), numbers, tuple(only[0]), tuple(only[1]))


def lines(output: str) -> list[Line]:
    """Return the lines that hold numbers which could be results: no times, speeds, sizes, dates, paths."""
    found = []
    for text in re.split(r"[\r\n]+", output):
        if _WARNING.match(text):
            continue
        clean = _NOISE.sub(" ", text)
        numbers: list[str] = []
        names: list[str] = []
        position, dropped = 0, False
        for match in _NUMBER.finditer(clean):
            before = clean[position : match.start()]
            position = match.end()
            average = dropped and before.strip() == "("  # "time 0.12 (0.15)"
            dropped = bool(
                average
                or _UNIT.match(clean, match.end())
                or _LABEL.search(clean, max(0, match.start() - _LONGEST_LABEL), match.start())
            )
            if not dropped:
                numbers.append(match[0])
                names.append(" ".join(_WORD.findall(re.split("[,;|]", before)[-1])[-3:]))
        if numbers:
            whole = tuple(number for number in numbers if number.lstrip("+-").isdigit())
            same = " ".join(_NUMBER.sub("#", clean).lower().split())
            for before, after in _SAME_WORDS:
                same = same.replace(before, after)
            found.append(Line(text.strip(), same, tuple(numbers), whole, tuple(names)))
    return found


def _together(ours: list[Line], theirs: list[Line]) -> tuple[list[tuple[Line, Line]], list[Line], list[Line]]:
    """Pair lines with one text; return the pairs, and what is left of each."""
    waiting: dict[tuple[str, ...], list[Line]] = defaultdict(list)
    for line in theirs:
        waiting[line.whole].append(line)
    pairs = [(line, waiting[line.whole].pop(0)) for line in ours if waiting[line.whole]]
    taken = {id(line) for pair in pairs for line in pair}
    left, right = ([line for line in side if id(line) not in taken] for side in (ours, theirs))
    both = min(len(left), len(right))
    return [*pairs, *zip(left, right)], left[both:], right[both:]


def _apart(ours: str, theirs: str, floor: float = 0.0) -> tuple[float, bool]:
    """How far two numbers are apart, relative to the larger one or to ``floor``; whether that is rounding."""
    a, b = float(ours), float(theirs)
    if a == b or (math.isnan(a) and math.isnan(b)):
        return 0.0, True
    relative = abs(a - b) / max(abs(a), abs(b), floor) if math.isfinite(a) and math.isfinite(b) else math.inf
    return relative, abs(a - b) <= max(_last_place(ours), _last_place(theirs)) * (1 + 1e-9)


def _last_place(number: str) -> float:
    """One unit of the last place; 0 where that is more than a hundredth, or nothing was rounded."""
    mantissa, _, exponent = number.lower().partition("e")
    before, _, decimals = mantissa.lstrip("+-").partition(".")
    if not decimals or len((before + decimals).lstrip("0")) < 3:
        return 0.0
    return float(10.0 ** (int(exponent or "0") - len(decimals)))


class Curve(Frozen):
    """A number that both runs print again and again, by its name; ``parts`` is where it first parts."""

    name: str
    values: tuple[tuple[float, float], ...]
    largest: float
    parts: Optional[int]


def curves(original: str, migrated: str, tolerance: float) -> list[Curve]:
    """The numbers with a point that both runs print, in the order of the first one.

    They part where they differ by more than ``tolerance``, relative to the larger one or to a hundredth
    of the largest that was printed, and by more than their rounding.
    """
    sides: tuple[dict[str, list[Line]], dict[str, list[Line]]] = ({}, {})
    for side, output in zip(sides, (original, migrated)):
        for line in lines(output):
            side.setdefault(line.key, []).append(line)
    found = []
    for key, ours in sides[0].items():
        pairs = _together(ours, sides[1].get(key, []))[0]
        for place, name in enumerate(ours[0].names):
            texts = [
                (a.numbers[place], b.numbers[place]) for a, b in pairs if len(a.numbers) == len(b.numbers)
            ]
            if not any("." in text or "n" in text.lower() for pair in texts for text in pair):
                continue
            values = tuple((float(a), float(b)) for a, b in texts)
            floor = max((abs(a) for a, _b in values if math.isfinite(a)), default=0.0) / 100
            apart = [_apart(*pair, floor) for pair in texts]
            wrong = (at for at, (far, rounded) in enumerate(apart) if far > tolerance and not rounded)
            largest = max(far for far, _rounded in apart)
            found.append(Curve(name or f"number {place + 1}", values, largest, next(wrong, None)))
    return found
