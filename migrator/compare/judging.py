"""Finds where the numbers of two processes first part, and which signs there are of the reason.

A call is where they part if what it was given agrees and what it gave does not. What is inside of a call is
looked at only where the call itself is one: another way to the same result is no difference. The errors
of earlier steps grow by themselves: what a call may be apart grows with its inputs and parameters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Optional

from migrator.compare.matching import Both, Pair, apart, parameters, short_name, tensors
from migrator.compare.reading import Call, Process, Step, Tensor
from migrator.data_folders import reports_yaml
from migrator.language import _
from migrator.light import Frozen

_GROWTH = 30.0  # how much larger than the errors of its inputs a call's may be
_BACKWARD = 10.0  # tolerances of gradients in those of the forward pass: they add over the batch
_STRICT = 0.01  # of a call whose settings, arguments or dtype differ: then a small distance has that reason
_ZERO = 1e-5  # a gradient so much smaller than the largest is rounding: a bias before a normalisation has one
_CHOSEN = 0.1  # of gradients of a choice that rounding decides
_UPDATE = 0.1  # of what an optimizer changes: where gradients are small, rounding decides their sign
_SMALL = 1e-2
_MOST = 0.5  # of all parameters
_OPTION = re.compile(r"\b(\w+)=(\[[^\]]*\]|'[^']*'|[^,]*)")
Difference = tuple[str, Any, Any]  # a name with its values in both runs


class Parting(Frozen):
    """Where two runs part: ``place`` is a module by path and class, an optimizer, or an input.

    The ``direction`` is start (before the first step), data, forward, backward or optimizer.
    """

    step: int
    direction: str
    place: str
    distance: float
    tolerance: float
    signs: frozenset[str]
    facts: tuple[str, ...] = ()
    api: str = ""

    @property
    def causes(self) -> list[dict[str, str]]:
        """What these are signs of, the likeliest first, two at most: ``name``, ``why`` and ``advice``."""
        known = reports_yaml("compare.yaml")["causes"]
        likely = [each for each in known if self.signs.issuperset(each["signs"])]
        return [{key: _(each[key]) for key in ("name", "why", "advice")} for each in likely[:2]]


@dataclass
class Judge:
    """Judges two processes, step by step, in the order of the first one."""

    both: Both
    tolerance: float = 0.0  # that of the coarsest dtype so far
    drift: float = 0.0  # the largest allowed error of a model's output in this step
    errors: dict[str, tuple[float, float]] = field(default_factory=dict)  # of parameters, and norms: squares
    before: dict[str, tuple[int, int]] = field(default_factory=dict)  # parameters
    called: bool = False
    used: set[int] = field(default_factory=set)  # what modules and the way to the loss are given in this step
    grown: float = 0.0  # the largest error of a gradient so far

    def first_parting(self) -> Optional[Parting]:
        """Where the numbers part; None where they agree."""
        self.tolerance = reports_yaml("compare.yaml")["tolerances"]["float32"]
        found = self.start()
        for step, other, whole in self.both.steps if found is None else ():
            found = self.initial(step.number, step.joined, other.joined)
            # One of several optimizers may step before the forward pass for another one.
            found = found or (self.settings(step, other) if len(step.optimizers) > 1 else None)
            found = found or self.forward(step, whole) or self.backward(step, other, whole)
            found = found or self.settings(step, other) or self.gradients(step, other, whole)
            found = found or self.update(step, other)
            if found:
                break
        return found

    # Before the first step.

    def start(self) -> Optional[Parting]:
        """Parameters that are one in one run only, and those that begin with other values."""
        first, second = self.both.first, self.both.second
        names = [{_path(name) for name in (*each.first, *each.shared)} for each in (first, second)]
        shared = [{_path(name): to for name, to in each.shared.items()} for each in (first, second)]
        for name in sorted((shared[0].keys() ^ shared[1].keys()) & names[0] & names[1]):
            other = shared[0].get(name) or shared[1][name]
            fact = _("{name} and {other} are one parameter in one run only", name=name, other=other)
            return Parting(
                0, "start", self.module_of(name).place, math.inf, 0.0, frozenset({"tied"}), (fact,)
            )
        return self.initial(0, first.first, second.first)

    def initial(self, step: int, first: dict[str, int], second: dict[str, int]) -> Optional[Parting]:
        """Modules that are new in a step with other values; an average of what was trained may differ."""
        parted, allowed = [], max(self.tolerance, _GROWTH * self.parameter_error(Call()))
        for name, ours, theirs in parameters(first, second):
            self.note_parameter(name, ours, theirs)
            if self.both.apart(ours, theirs) > allowed:
                parted.append((name, self.both.apart(ours, theirs)))
        # What is small by itself may differ more: then all of the module together decide.
        if not parted or (step and self.parameter_error(Call(parted[0][0].partition(" ")[0])) <= allowed):
            return None
        name, distance = parted[0]
        fact = _("{count} of {all} parameters and buffers", count=len(parted), all=len(first))
        facts = (fact, _("the first: {name}", name=_path(name)))
        signs = {"initial", *self.of_run()}
        return Parting(step, "start", self.module_of(name).place, distance, allowed, frozenset(signs), facts)

    # The forward pass.

    def forward(self, step: Step, whole: Pair) -> Optional[Parting]:
        """The first call of the program whose results part, followed to what is inside of it."""
        self.drift, calls = 0.0, [pair.first for _outer, pair in _inside(whole)]
        self.used = {each for call in calls if not call.api or self.graded(call) for each in call.given}
        for pair in whole.inside:
            self.see_dtypes(pair.first)
            module = not pair.first.api
            self.called |= module
            if module and pair.given > max(self.tolerance, _GROWTH * self.drift):
                return self.data(step, whole, pair)
            if self.called and self.is_where(pair) and (module or self.graded(pair.first)):
                found = self.inside(step, whole, pair)
                if found:
                    return found
            around = Pair(whole.first, whole.second, inside=[pair] if self.called else [])
            for outer, each in reversed([*_inside(around)]):
                if self.is_changed(each):
                    return self.at(step, outer, each)
            if module:
                self.drift = max(self.drift, pair.made)
        return None

    def inside(self, step: Step, outer: Pair, pair: Pair) -> Optional[Parting]:
        """Where in a call the numbers part; None where errors grow inside of it, from call to call."""
        for each in pair.inside:
            if self.is_where(each):
                return self.inside(step, pair, each)
            if each.given > self.tolerance:
                fact = _("the arguments of {call} already differ", call=each.first.api or each.first.place)
                return self.at(step, outer, pair, {"code"}, fact)
            if each.made > self.tolerance:
                return None
        return self.at(step, outer, pair)

    def at(self, step: Step, outer: Pair, pair: Pair, signs: Iterable[str] = (), *facts: str) -> Parting:
        """The parting at a call, with its signs."""
        first, second = pair.first, pair.second
        around = outer if first.api else pair
        found, said = {*signs, *self.of_run()}, [*facts]
        settings = self.settings_of(around.first)
        found |= {"setting", *(f"setting:{name}" for name, *_values in settings)} if settings else set()
        differ = [*settings, (_("training mode"), around.first.training, around.second.training)]
        if around.first.training != around.second.training:
            found.add("training")
        beside = outer.inside if outer.first.kind else []  # what its module has changed may show only here
        other = next((each for each in (pair, *beside) if _other_arguments(each)), None)
        if other:
            found.add("arguments")
            name = "" if other is pair else other.first.api
            differ.append((_("arguments"), f"{name}({other.first.said})", f"{name}({other.second.said})"))
        if not around.first.api and around.first.kind != around.second.kind:
            found.add("replaced")
            differ.append((_("class"), around.first.kind, around.second.kind))
        if any(around.alone):
            found.add("replaced")
            differ.append(_only(around, 6))
        if pair.turned or sorted(around.alone[0]) == sorted(around.alone[1]) != []:
            found.add("order")
        name = first.api.rpartition(".")[2].strip("_")
        found |= {f"api:{name}"} if name else set()
        found |= {"convolution"} if name.startswith("conv") else set()
        if name in reports_yaml("compare.yaml")["random"] and not _other_arguments(pair):
            found.add("random")
        found |= _signs_of(self.numbers(first.made, second.made))
        found |= {"small"} if pair.made <= _SMALL else set()
        facts = (*said, *_said(differ))
        return Parting(
            *(step.number, "forward", around.first.place, pair.made, self.tolerance),
            *(frozenset(found), facts, first.api),
        )

    def data(self, step: Step, whole: Pair, pair: Pair) -> Parting:
        """What the program gives a module differs: by what it computes before, or from the beginning."""
        for each in whole.inside[: whole.inside.index(pair)]:
            if each.first.api and self.is_where(each):
                return self.at(step, whole, each, {"input"})
        parted = [each for each in self.numbers(pair.first.given, pair.second.given) if apart(*each) > 0]
        signs = {"input", *self.of_run(), *_signs_of(parted)}
        one, other = max(parted, key=lambda each: apart(*each))
        facts = _said([(_("values"), _values(one), _values(other))])
        for later in self.both.second.steps:
            same = [each for each in later.inside if each.key == pair.second.key]
            if later.number != step.number and any(
                self.both.largest(pair.first.given, each.given) <= self.tolerance for each in same
            ):
                signs.add("other-step")
                facts = (*facts, _("step {step} of B has the data that A has here", step=later.number))
                break
        place = _("input of {place}", place=pair.first.place)
        return Parting(step.number, "data", place, pair.given, self.tolerance, frozenset(signs), facts)

    # The backward pass.

    def backward(self, step: Step, other: Step, whole: Pair) -> Optional[Parting]:
        """The first gradient that parts, at the innermost call whose backward pass computed it."""
        together = {ours: theirs for ours, theirs in tensors(whole) if ours >= 0 and theirs >= 0}
        later: dict[int, list[int]] = {}
        for tensor, gradient in other.grads:
            later.setdefault(tensor, []).append(gradient)
        graded = [
            (tensor, ours, later[together[tensor]].pop(0))
            for tensor, ours in step.grads
            if later.get(together.get(tensor, -1))
        ]
        graded = self.without_overflows(graded)
        factor = 1.0  # a power of two by which the second run's are larger is that of a GradScaler
        if graded:
            ratio = self.ratio(*graded[0][1:])
            power = round(math.log2(ratio)) if 0 < ratio < math.inf else 0
            factor = 2.0**power if math.isclose(ratio, 2.0**power, rel_tol=1e-5) else 1.0
        largest = max((self.size(ours) for _tensor, ours, _theirs in graded), default=0.0)
        errors: dict[int, float] = {}
        for tensor, ours, theirs in graded:
            distance = errors[tensor] = self.both.apart(ours, theirs, factor)
            if self.size(ours) <= _ZERO * largest or distance <= self.allowed_backward():
                continue
            around = (
                each
                for each in _inside(whole)
                if tensor in each[1].first.given
                and not any(tensor in inner.first.given for inner in each[1].inside)
            )
            outer, pair = next(around, (whole, Pair(Call(kind=_("the loss")), Call(kind=_("the loss")))))
            grown = _GROWTH * max((errors.get(each, 0.0) for each in pair.first.made), default=0.0)
            if pair.given and short_name(pair.first) in reports_yaml("compare.yaml")["choosing"]:
                grown = max(grown, _CHOSEN)
            if distance <= grown:  # as where it divides by what is nearly zero
                self.drift = max(self.drift, distance)
                continue
            found = self.at(step, outer, pair, {"backward"})
            found = replace(found, direction="backward", signs=found.signs - {"small"})
            return replace(found, distance=distance, tolerance=_BACKWARD * self.tolerance)
        return None

    def without_overflows(self, graded: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
        """The finite gradients where both runs overflow, as when a GradScaler skips the step; else all."""
        pairs = [(each, pair) for each in graded for pair in self.numbers(each[1:2], each[2:])]
        over = [tuple(bool(one.nan or one.inf) for one in pair) for _each, pair in pairs]
        if not all(map(any, zip(*over))):
            return graded
        return [each for (each, _pair), infinite in zip(pairs, over) if not any(infinite)]

    # The optimizer.

    def settings(self, step: Step, other: Step) -> Optional[Parting]:
        """The settings of the optimizers."""
        for name, ours in step.optimizers.items():
            kind, _blank, place = name.rpartition(" ")
            theirs = next((each for key, each in other.optimizers.items() if key.endswith(f" {place}")), {})
            same = reports_yaml("compare.yaml")["equal_ways"]
            differ = [each for each in _differences(ours, theirs) if each[0] not in same]
            if differ:
                found = frozenset({"hyperparameter", *(f"setting:{key}" for key, *_values in differ)})
                return Parting(step.number, "optimizer", kind, math.inf, 0.0, found, _said(differ))
        return None

    def gradients(self, step: Step, other: Step, whole: Pair) -> Optional[Parting]:
        """The gradients that the optimizers get."""
        given = [*parameters(step.given, other.given)]
        largest = max((self.size(ours) for _name, ours, _theirs in given), default=0.0)
        given = [each for each in given if self.size(each[1]) > _ZERO * largest]
        self.grown = max([self.grown, *(self.both.apart(*each[1:]) for each in given)])
        parted, allowed = [], self.allowed_backward()
        for each in given:
            distance = self.both.apart(*each[1:])
            # Where large parts cancel, as before a normalisation, the rest is rounding of these.
            if distance > allowed and distance * self.size(each[1]) > self.tolerance * largest:
                parted.append(each)
        if not parted:
            return None
        name, distance = parted[0][0], self.both.apart(*parted[0][1:])
        fact = _("the gradients of {count} of {all} parameters", count=len(parted), all=len(given))
        facts: tuple[str, ...] = (fact, _("the first: {name}", name=_path(name)))
        signs, place, direction = {"backward"}, self.module_of(name).place, "backward"
        if len(parted) > _MOST * len(given):
            signs, place, direction = {"gradients"}, _optimizer(step), "optimizer"
            ratios = sorted(self.ratio(*each[1:]) for each in parted)
            if ratios[-1] - ratios[0] <= _SMALL * ratios[-1]:
                signs.add("scaled")
                facts = (fact, _("all are {ratio:.4g} times as large in B", ratio=ratios[0]))
            signs |= {"later"} if step.number else set()
            facts = (*facts, *(_said([_only(whole, 8)]) if any(whole.alone) else ()))
        tolerance = _BACKWARD * self.tolerance
        return Parting(step.number, direction, place, distance, tolerance, frozenset(signs), facts)

    def update(self, step: Step, other: Step) -> Optional[Parting]:
        """Buffers that part, and what an optimizer made of gradients that agree."""
        updates: list[float] = []
        buffers = [self.size(tensor) for name, tensor in step.left.items() if name not in step.given]
        for name, ours, theirs in parameters(step.left, other.left):
            distance = self.both.apart(ours, theirs)
            counts = name not in step.given and self.size(ours) > _ZERO * max(buffers)
            if counts and distance > max(self.tolerance, _GROWTH * self.drift):
                module = self.module_of(name)
                settings = self.settings_of(module)
                signs = {"buffer", *(f"setting:{key}" for key, *_values in settings)}
                facts = (*_said(settings), _("the buffer: {name}", name=_path(name)))
                values = distance, self.tolerance, frozenset(signs), facts
                return Parting(step.number, "forward", module.place, *values)
            if name in step.given and name in self.before:
                updates.append(self.update_apart(*self.before[name], ours, theirs))
            self.note_parameter(name, ours, theirs)
        allowed = _UPDATE + 10 * math.sqrt(self.grown)  # Adam divides small gradients by small ones
        parted = [each for each in updates if each > allowed]
        if len(parted) <= _MOST * len(updates):
            return None
        fact = _("the updates of {count} of {all} parameters", count=len(parted), all=len(updates))
        values = parted[0], allowed, frozenset({"update"}), (fact,)
        return Parting(step.number, "optimizer", _optimizer(step), *values)

    def update_apart(self, *tensors: int) -> float:
        """How far the changes of a parameter are apart: the sums of a difference are the sums' difference."""
        first, second = self.both.first.tensors, self.both.second.tensors
        ends = [side.get(each) for side, each in zip((first, second, first, second), tensors)]
        a, b, c, d = ends
        if a is None or b is None or c is None or d is None:
            return 0.0
        ours, theirs = ([y - x for x, y in zip(p.sums, q.sums)] for p, q in ((a, c), (b, d)))
        scale = max(math.hypot(*ours), math.hypot(*theirs))
        rounding = scale <= 1e-4 * c.norm
        return 0.0 if rounding else math.hypot(*(x - y for x, y in zip(ours, theirs))) / scale

    # What these ask.

    def is_where(self, pair: Pair) -> bool:
        """Whether a call is given what agrees, and gives what does not."""
        if pair.given > self.tolerance or pair.made <= self.tolerance:
            return False
        if not all(each.floating for each, _other in self.numbers(pair.first.made, pair.second.made)):
            return pair.given == 0 and bool(pair.first.given)  # of a comparison rounding may decide
        return not self.is_explained(pair)

    def is_explained(self, pair: Pair) -> bool:
        """Whether errors of earlier calls explain a call's, also those in numbers that it is given."""
        numbers = self.drift if pair.first.api and not pair.first.given else 0.0
        return pair.made <= max(numbers, _GROWTH * max(pair.given, self.parameter_error(pair.first)))

    def is_changed(self, pair: Pair) -> bool:
        """Whether a small distance comes from another setting, other arguments or another dtype."""
        unused = self.used.isdisjoint(pair.first.made) and not self.graded(pair.first)  # as a time
        if pair.made <= _STRICT * self.tolerance or (unused and pair.first.api):
            return False
        tensors = self.numbers([*pair.first.given, *pair.first.made], [*pair.second.given, *pair.second.made])
        if any(one.dtype != other.dtype for one, other in tensors):  # between halves it is usual
            return bool(self.tolerance <= reports_yaml("compare.yaml")["tolerances"]["float32"])
        if self.is_explained(pair):
            return False
        return _other_arguments(pair) or (not pair.inside and bool(self.settings_of(pair.first)))

    def see_dtypes(self, call: Call) -> None:
        """Allow from here on what the dtypes of a call allow."""
        known = reports_yaml("compare.yaml")["tolerances"]
        for tensor, _same in self.numbers([*call.given, *call.made], (), alone=True):
            self.tolerance = max(self.tolerance, known.get(tensor.dtype, 0.0))
        for each in call.inside:
            self.see_dtypes(each)

    def allowed_backward(self) -> float:
        """How far gradients may be apart."""
        error = max(self.drift, self.parameter_error(Call()))
        return _BACKWARD * max(self.tolerance, _GROWTH * error)

    def note_parameter(self, name: str, ours: int, theirs: int) -> None:
        """Note what a parameter is, and how far it is apart."""
        self.before[name] = ours, theirs
        for one, other in self.numbers([ours], [theirs]):
            if one.floating:
                self.errors[name] = (apart(one, other) * max(one.norm, other.norm)) ** 2, one.squares

    def parameter_error(self, call: Call) -> float:
        """How far all parameters of a module are apart; of all modules for the program and its APIs."""
        prefix = f"{call.label} {call.path}".rstrip()
        within = (f"{prefix}.", f"{prefix} ")
        own = [each for name, each in self.errors.items() if not prefix or name.startswith(within)]
        squares = sum(square for _error, square in own)
        return math.sqrt(sum(error for error, _square in own) / squares) if squares else 0.0

    def size(self, tensor: int) -> float:
        """The root of the mean square of a tensor of the first run."""
        found = self.both.first.tensors.get(tensor)
        return found.norm / math.sqrt(max(1, found.count)) if found else 0.0

    def ratio(self, ours: int, theirs: int) -> float:
        """How much larger the second run's tensor is."""
        both = self.numbers([ours], [theirs])
        return both[0][1].norm / both[0][0].norm if both and both[0][0].norm else math.inf

    def graded(self, call: Call) -> bool:
        """Whether gradients go through what a call gave: it is on the way to the loss."""
        return any(each.graded for each, _same in self.numbers(call.made, (), alone=True))

    def numbers(
        self, ours: Iterable[int], theirs: Iterable[int], alone: bool = False
    ) -> list[tuple[Tensor, Tensor]]:
        """The tensors that belong together, where both have numbers; ``alone``: the first run's, twice."""
        first, second = self.both.first.tensors, self.both.second.tensors
        if alone:
            return [(first[each], first[each]) for each in ours if each in first]
        return [(first[a], second[b]) for a, b in zip(ours, theirs) if a in first and b in second]

    def module_of(self, name: str) -> Call:
        """The module that a parameter or buffer belongs to; ``name`` may come without its label."""
        label, owner = name.rpartition(" ")[0], _path(name).rpartition(".")[0]
        known = self.both.first.modules
        label = label or next((key[0] for key in known if key[1] == owner), "")
        return Call(label, owner, known.get((label, owner), ("", {}))[0])

    def settings_of(self, call: Call) -> list[Difference]:
        """The settings of a module that differ."""
        ours, theirs = (each.modules.get(call.key) for each in (self.both.first, self.both.second))
        return [] if ours is None or theirs is None or call.api else _differences(ours[1], theirs[1])

    def of_run(self) -> Iterator[str]:
        """Signs of what differs between the runs as a whole."""
        return (f"run:{name}" for name, *_values in run_settings(self.both))


def run_settings(both: Both) -> list[Difference]:
    """The versions, settings and devices of two processes that differ."""
    ours, theirs = map(_settings, (both.first, both.second))
    return [(name, ours[name], theirs.get(name)) for name in ours if ours[name] != theirs.get(name)]


def module_settings(both: Both) -> list[tuple[str, str, Any, Any]]:
    """The settings of modules that differ: place, name, values."""
    judge = Judge(both)
    calls = [Call(*key, kind) for key, (kind, _settings) in both.first.modules.items()]
    return [(call.place, *each) for call in calls for each in judge.settings_of(call)]


def _settings(process: Process) -> dict[str, Any]:
    """The settings of a process with its device; those of TF32 only of a GPU."""
    kinds = (each.device.partition(":")[0] for each in process.tensors.values())
    device = next((each for each in kinds if each != "cpu"), "cpu")
    kept = {key: each for key, each in process.settings.items() if device == "cuda" or "tf32" not in key}
    return {**kept, "device": device}


def _optimizer(step: Step) -> str:
    return next(iter(step.optimizers), _("optimizer")).rpartition(" ")[0]


def _path(name: str) -> str:
    return name.rpartition(" ")[2]


def _differences(ours: dict[str, Any], theirs: dict[str, Any]) -> list[Difference]:
    """What both have with another value."""
    both = [(key, ours[key], theirs[key]) for key in ours if key in theirs and key != "training"]
    return [each for each in both if not _same(each[1], each[2])]


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, (int, float)):
        return math.isclose(ours, theirs, rel_tol=1e-9)
    return bool(ours == theirs)


def _other_arguments(pair: Pair) -> bool:
    """Whether an API is called with other arguments; one that is left out is its default."""
    if pair.first.said == pair.second.said:
        return False
    ours, theirs = (dict(_OPTION.findall(each.said)) for each in (pair.first, pair.second))
    places = [_OPTION.sub("", each.said).strip(" ,").split(", ") for each in (pair.first, pair.second)]
    return bool(_differences(ours, theirs)) or (len(places[0]) == len(places[1]) and places[0] != places[1])


def _said(differ: Iterable[Difference]) -> tuple[str, ...]:
    said = _("{name}: {ours} in A, {theirs} in B")
    return tuple(said.format(name=a, ours=b, theirs=c) for a, b, c in differ if b != c)


def _only(pair: Pair, most: int) -> Difference:
    ours, theirs = (", ".join(dict.fromkeys(each[:most])) or "-" for each in pair.alone)
    return _("only here"), ours, theirs


def _values(tensor: Tensor) -> str:
    mean = tensor.sum / max(1, tensor.count)
    said = _("mean {mean:.4g}, from {low:.4g} to {high:.4g}", mean=mean, low=tensor.low, high=tensor.high)
    return f"[{tensor.shape}] {tensor.dtype}, {said}"


def _signs_of(together: Iterable[tuple[Tensor, Tensor]]) -> set[str]:
    """Signs in the numbers of tensors that part."""
    found = set()
    for one, other in together:
        same = [(one.low, other.low), (one.high, other.high), (one.norm, other.norm), (one.sum, other.sum)]
        permuted = all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5) for a, b in same)
        for sign, holds in (
            ("shape", one.shape != other.shape),
            ("dtype", one.dtype != other.dtype),
            ("nan", (one.nan, one.inf) != (other.nan, other.inf)),
            ("permuted", one.shape == other.shape and permuted),
        ):
            found |= {sign} if holds else set()
    return found


def _inside(outer: Pair) -> Iterator[tuple[Pair, Pair]]:
    """All pairs inside of one, each with the pair that it is in; the last ones first, as they go backward."""
    for pair in reversed(outer.inside):
        yield from _inside(pair)
        yield outer, pair
