"""Finds for each call of one run the same call of the other one, and how far their tensors are apart."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property

from migrator.compare.reading import Call, Process, Step, Tensor
from migrator.light import Frozen

_NOTHING = 1e-30
_OPERATORS = {"iadd": "add", "radd": "add", "isub": "sub", "imul": "mul", "rmul": "mul", "truediv": "div"}


@dataclass
class Pair:
    """A call of both runs, and the largest distance between what each was given, and gave."""

    first: Call
    second: Call
    given: float = 0.0
    made: float = 0.0
    inside: list[Pair] = field(default_factory=list)
    alone: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # what was called in one of them only
    turned: bool = False  # the calls inside of them have another order


class Both(Frozen):
    """Two processes that are compared."""

    first: Process
    second: Process

    @cached_property
    def steps(self) -> list[tuple[Step, Step, Pair]]:
        """The steps that both runs recorded, with the calls of the program itself."""
        later = {step.number: step for step in self.second.steps}
        both = [(step, later[step.number]) for step in self.first.steps if step.number in later]
        return [
            (step, other, pairs(self, step.inside, other.inside))
            for step, other in both
            if step.inside and other.inside
        ]

    def apart(self, ours: int, theirs: int, factor: float = 1.0) -> float:
        """How far two tensors are apart, by their numbers in the traces; 0 where one has none."""
        one, other = self.first.tensors.get(ours), self.second.tensors.get(theirs)
        return 0.0 if one is None or other is None else apart(one, other, factor)

    def largest(self, ours: Sequence[int], theirs: Sequence[int]) -> float:
        """The largest distance between tensors that belong together by their order."""
        return max(map(self.apart, ours, theirs), default=0.0)


def apart(one: Tensor, other: Tensor, factor: float = 1.0) -> float:
    """The norm of the difference of two tensors, relative to the larger norm: an estimate, from their sums.

    Infinite where they have other shapes, or one has NaN or infinite values that the other has not. The
    second one is divided by ``factor``.
    """
    sizes = one.shape == other.shape or one.count == other.count
    if not sizes or (one.nan, one.inf) != (other.nan, other.inf):
        return math.inf
    difference = math.sqrt(sum((a - b / factor) ** 2 for a, b in zip(one.sums, other.sums)))
    scale = max(one.norm, other.norm / factor)
    return 0.0 if scale < _NOTHING or math.isnan(difference) else difference / scale


def pairs(both: Both, ours: Sequence[Call], theirs: Sequence[Call]) -> Pair:
    """Match the calls inside of a call of each run, in the first run's order: a pair with them inside.

    Modules belong together by path, and by which call of theirs it is; those that a program itself calls
    also by their label, or else by their order. APIs belong together by their names, in their order.
    """
    whole = Pair(Call(inside=list(ours)), Call(inside=list(theirs)))
    waiting: defaultdict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in theirs:
        waiting[call.key] += [] if call.api else [call]
    modules = [(each, waiting[each.key].pop(0)) for each in ours if not each.api and waiting[each.key]]
    matched = {id(each) for pair in modules for each in pair}
    # The class of a model, and so its label, may be another one.
    by_path: list[defaultdict[str, list[Call]]] = [defaultdict(list), defaultdict(list)]
    for side, found in zip((ours, theirs), by_path):
        for call in side:
            found[call.path] += [] if call.api or id(call) in matched else [call]
    modules += [pair for path, calls in by_path[0].items() for pair in zip(calls, by_path[1][path])]
    named = [[short_name(each) for each in side if each.api] for side in (ours, theirs)]
    apis = [[each for each in side if each.api] for side in (ours, theirs)]
    equal = SequenceMatcher(None, named[0], named[1], autojunk=False).get_matching_blocks()
    together = [(apis[0][a + i], apis[1][b + i]) for a, b, size in equal for i in range(size)]
    every = sorted([*modules, *together], key=lambda pair: pair[0].order)
    for first, second in every:
        pair = pairs(both, first.inside, second.inside)
        pair.first, pair.second = first, second
        pair.given = both.largest(first.given, second.given)
        pair.made = both.largest(first.made, second.made)
        whole.inside.append(pair)
    taken = {id(each) for pair in every for each in pair}
    alone = ([each.api or each.place for each in side if id(each) not in taken] for side in (ours, theirs))
    whole.alone = (tuple(next(alone)), tuple(next(alone)))
    orders = [second.order for _, second in every]
    whole.turned = orders != sorted(orders)
    return whole


def tensors(pair: Pair) -> Iterator[tuple[int, int]]:
    """All tensors of a pair, and of those inside of it, that belong together."""
    yield from zip(pair.first.given, pair.second.given)
    yield from zip(pair.first.made, pair.second.made)
    for each in pair.inside:
        yield from tensors(each)


def short_name(call: Call) -> str:
    """The name of an API without what says where it stands, or that it works in place."""
    last = call.api.rpartition(".")[2].strip("_")
    return _OPERATORS.get(last, last)


def parameters(ours: dict[str, int], theirs: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """The parameters or buffers that both runs have, in the first run's order."""
    by_path = {name.partition(" ")[2]: tensor for name, tensor in theirs.items()}
    for name, tensor in ours.items():
        found = theirs.get(name, by_path.get(name.partition(" ")[2]))
        if found is not None:
            yield name, tensor, found
