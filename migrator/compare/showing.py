"""What a comparison of two runs comes to: as text, JSON, a table with msprobe's columns, and a page."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Optional

from migrator.compare.judging import Judge, Parting, module_settings, run_settings
from migrator.compare.matching import Both, Pair, apart
from migrator.compare.printed import Curve, curves
from migrator.compare.reading import Step, Tensor, Trace
from migrator.language import N_, _, language
from migrator.light import Frozen

SCHEMA = 1
_LIMIT = 0.01  # of a printed number, where none is given
_SHOWN = 10
_WAYS = {
    "start": N_("before the first step"),
    "data": N_("data"),
    "forward": N_("forward"),
    "backward": N_("backward"),
    "optimizer": N_("optimizer"),
}
# msprobe's, in its order; B is the NPU's run, A the benchmark. Behind them our own.
_STATISTICS = ("max", "min", "mean", "l2norm")
_COLUMNS = (
    *("NPU Name", "Bench Name", "NPU Dtype", "Bench Dtype", "NPU Tensor Shape", "Bench Tensor Shape"),
    *("NPU Requires_grad", "Bench Requires_grad", "Max diff", "Min diff", "Mean diff", "L2norm diff"),
    *("MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"),
    *(f"{side} {name}" for side in ("NPU", "Bench") for name in _STATISTICS),
    *("Requires_grad Consistent", "Result", "Err_message", "Step", "Rank", "Distance"),
)


class Ranked(Frozen):
    """What the processes of one rank come to. ``distances`` are those of the models' outputs, by step."""

    rank: int
    both: Both
    parting: Optional[Parting]
    distances: tuple[tuple[int, float], ...]
    alone: tuple[tuple[str, ...], tuple[str, ...]]
    curves: tuple[Curve, ...]


class Outcome(Frozen):
    """A comparison of two traces; ``limit`` is the largest difference of printed numbers, if that decides."""

    first: Trace
    second: Trace
    ranks: tuple[Ranked, ...]
    limit: Optional[float]

    @property
    def parting(self) -> Optional[Ranked]:
        """The rank whose numbers part first."""
        parted = [(each.parting.step, each.rank, each) for each in self.ranks if each.parting]
        return min(parted)[2] if parted else None

    @property
    def curves(self) -> list[Curve]:
        """The printed numbers of all ranks."""
        return [curve for each in self.ranks for curve in each.curves]

    @property
    def agrees(self) -> bool:
        """Whether something was compared and all of it agrees; printed numbers alone where these decide."""
        compared = bool(self.curves) or (self.limit is None and any(each.distances for each in self.ranks))
        parted = any(curve.parts is not None for curve in self.curves)
        return compared and not parted and (self.limit is not None or self.parting is None)


def compare(first: Trace, second: Trace, limit: Optional[float] = None) -> Outcome:
    """Compare two traces, rank by rank."""
    ranks = []
    for rank, processes in enumerate(zip(first.processes, second.processes)):
        both = Both(*processes)
        names = [
            {key[1]: f"{key[1]} {kind}" for key, (kind, _all) in each.modules.items()} for each in processes
        ]
        alone = tuple(
            tuple(said for path, said in one.items() if path not in other)
            for one, other in (names, reversed(names))
        )
        distances = tuple(
            (step.number, max((each.made for each in whole.inside if not each.first.api), default=0.0))
            for step, _other, whole in both.steps
        )
        ours, theirs = ("\n".join(text for _step, text in each.lines) for each in processes)
        found = tuple(curves(ours, theirs, _LIMIT if limit is None else limit))
        ranks.append(Ranked(rank, both, Judge(both).first_parting(), distances, (alone[0], alone[1]), found))
    return Outcome(first, second, tuple(ranks), limit)


def head(parting: Parting) -> str:
    """Where runs part, in a line."""
    where = f"{parting.place} ({parting.api})" if parting.api else parting.place
    return _("step {step}, {way}: {where}", step=parting.step, way=_(_WAYS[parting.direction]), where=where)


def as_text(outcome: Outcome) -> str:
    """The outcome for people, for a terminal."""
    return "\n".join(_text(outcome)) + "\n"


def _text(outcome: Outcome) -> Iterator[str]:
    for name, trace in (("A", outcome.first), ("B", outcome.second)):
        yield f"{name}  {trace.folder}  {' '.join(trace.about.get('command', ()))}"
    for process in (*outcome.first.processes, *outcome.second.processes):
        yield from (_("note: {text}", text=_(each)) for each in process.notes)
    counts = {"ours": len(outcome.first.processes), "theirs": len(outcome.second.processes)}
    if counts["ours"] != counts["theirs"]:
        yield _("A has {ours} ranks and B has {theirs}: the first ones are compared", **counts)
    yield ""
    ranked = outcome.parting
    if ranked is None or ranked.parting is None:
        steps = max((len(each.distances) for each in outcome.ranks), default=0)
        largest = max((far for each in outcome.ranks for _step, far in each.distances), default=0.0)
        values = {"steps": steps, "far": largest}
        said = _("No call differs in {steps} steps; largest distance of an output: {far:.2g}.", **values)
        if steps and any(each.parts is not None for each in outcome.curves):
            grown = N_("Rounding errors grow from step to step: compare runs with several seeds.")
            other = N_("Printed numbers differ for another reason: they come from no recorded call.")
            said += " " + _(grown if largest else other)
        yield said if steps else _("No step was recorded in both runs; only printed numbers are compared.")
    else:
        parting = ranked.parting
        rank = _(" (rank {rank})", rank=ranked.rank) if len(outcome.ranks) > 1 else ""
        yield _("First difference: {head}", head=head(parting)) + rank
        if math.isfinite(parting.distance):
            values = {"far": parting.distance, "allowed": parting.tolerance}
            yield "  " + _("{far:.2g} of the norm; allowed: {allowed:.2g}", **values)
        yield from (f"  {fact}" for fact in parting.facts)
        for cause in parting.causes:
            yield _("Likely: {name}. {why}", **cause)
            yield f"  {cause['advice']}"
    yield from _listed(_("Printed numbers"), [_curve_said(each) for each in outcome.curves])
    both = outcome.ranks[0].both
    said = _("{name}: {ours} in A, {theirs} in B")
    settings = [(f"{place}, {name}", ours, theirs) for place, name, ours, theirs in module_settings(both)]
    for title, differ in (
        (_("Settings of modules that differ"), settings),
        (_("Versions and settings of the runs that differ"), run_settings(both)),
    ):
        yield from _listed(title, [said.format(name=a, ours=b, theirs=c) for a, b, c in differ])
    for name, modules in zip("AB", outcome.ranks[0].alone):
        yield from _listed(_("Modules only in {name}", name=name), modules)
    yield ""
    yield _("Verdict: the runs agree") if outcome.agrees else _("Verdict: the runs differ")


def _listed(title: str, lines: list[str] | tuple[str, ...]) -> Iterator[str]:
    if lines:
        yield from ("", title, *(f"  {line}" for line in lines[:_SHOWN]))
    if len(lines) > _SHOWN:
        yield "  " + _("… and {rows} more", rows=len(lines) - _SHOWN)


def _curve_said(curve: Curve) -> str:
    values = {"name": curve.name, "count": len(curve.values), "far": f"{100 * curve.largest:.3g}"}
    if curve.parts is None:
        return _("{name}: {count} values agree, largest difference {far} %", **values)
    ours, theirs = curve.values[curve.parts]
    said = N_(
        "{name}: differs from value {place} of {count} on ({ours:g} in A, {theirs:g} in B); largest "
        "difference {far} %"
    )
    return _(said, **values, place=curve.parts + 1, ours=ours, theirs=theirs)


def as_json(outcome: Outcome) -> dict[str, Any]:
    """All of it; docs/compare.md has the keys. What is not finite is null."""
    ranked = outcome.parting
    parting = ranked.parting if ranked else None
    both = outcome.ranks[0].both
    found = None
    if ranked and parting:
        more = {"signs": sorted(parting.signs), "rank": ranked.rank, "causes": parting.causes}
        found = {**asdict(parting), **more}
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "agrees": outcome.agrees,
        "first": {"folder": str(outcome.first.folder), **outcome.first.about},
        "second": {"folder": str(outcome.second.folder), **outcome.second.about},
        "parting": found,
        "metrics": [asdict(each) for each in outcome.curves],
        "distances": outcome.ranks[0].distances,
        "modules": [dict(zip(("module", "name", "first", "second"), each)) for each in module_settings(both)],
        "runs": [dict(zip(("name", "first", "second"), each)) for each in run_settings(both)],
        "only_first": outcome.ranks[0].alone[0],
        "only_second": outcome.ranks[0].alone[1],
    }
    finite: dict[str, Any] = _finite(content)
    return finite


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_csv(outcome: Outcome) -> str:
    """Every tensor of both runs with its statistics, in msprobe's columns."""
    text = io.StringIO()
    table = csv.DictWriter(text, _COLUMNS)
    table.writeheader()
    for ranked in outcome.ranks:
        for step, other, whole in ranked.both.steps:
            seen: Counter[str] = Counter()
            grads = (dict(reversed(step.grads)), dict(reversed(other.grads)))
            rows = _rows(ranked.both, whole, seen, grads)
            for name, their_name, ours, theirs in (*rows, *_gradients(step, other)):
                one, another = ranked.both.first.tensors.get(ours), ranked.both.second.tensors.get(theirs)
                if one and another:
                    about = {"NPU Name": their_name, "Bench Name": name}
                    about |= {"Step": str(step.number), "Rank": str(ranked.rank)}
                    table.writerow({**_cells(one, another), **about})
    return text.getvalue()


def _rows(
    both: Both, outer: Pair, seen: Counter[str], grads: tuple[dict[int, int], dict[int, int]]
) -> Iterator[tuple[str, str, int, int]]:
    for pair in outer.inside:
        yield from _rows(both, pair, seen, grads)
        calls = pair.first, pair.second
        if pair.first.api:
            names, form = [each.api[:1].upper() + each.api[1:] for each in calls], "{0}.{1}.{2}"
        else:
            names = [f"Module.{each.path}.{each.kind}".replace("..", ".") for each in calls]
            form = "{0}.{2}.{1}"
        number = seen[names[0]]
        ways = [[form.format(name, number, way) for name in names] for way in ("forward", "backward")]
        seen[names[0]] += 1
        for what, back, ours, theirs in (
            ("input", "output", pair.first.given, pair.second.given),
            ("output", "input", pair.first.made, pair.second.made),
        ):
            for place, (a, b) in enumerate(zip(ours, theirs)):
                yield f"{ways[0][0]}.{what}.{place}", f"{ways[0][1]}.{what}.{place}", a, b
                if a in grads[0] and b in grads[1]:
                    backward = [f"{way}.{back}.{place}" for way in ways[1]]
                    yield backward[0], backward[1], grads[0][a], grads[1][b]


def _gradients(step: Step, other: Step) -> Iterator[tuple[str, str, int, int]]:
    for name in step.given.keys() & other.given.keys():
        path = "Module." + name.rpartition(" ")[2] + ".parameters_grad"
        yield path, path, step.given[name], other.given[name]


def _cells(ours: Tensor, theirs: Tensor) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for side, tensor in (("NPU", theirs), ("Bench", ours)):
        mean = tensor.sum / max(1, tensor.count)
        numbers = tensor.high, tensor.low, mean, tensor.norm
        cells |= {f"{side} {key}": value for key, value in zip(_STATISTICS, numbers)}
        cells[f"{side} Dtype"], cells[f"{side} Requires_grad"] = f"torch.{tensor.dtype}", tensor.graded
        cells[f"{side} Tensor Shape"] = f"[{tensor.shape.replace('x', ', ')}]"
    names = (("Max", "Max"), ("Min", "Min"), ("Mean", "Mean"), ("L2norm", "Norm"))
    for key, (name, relative) in zip(_STATISTICS, names):
        difference, base = cells[f"NPU {key}"] - cells[f"Bench {key}"], cells[f"Bench {key}"]
        cells[f"{name} diff"] = difference
        cells[f"{relative}RelativeErr"] = f"{abs(difference / base) * 100:.6g}%" if base else "N/A"
    far = apart(ours, theirs)
    consistent = ours.graded == theirs.graded
    cells |= {"Distance": far, "Result": "pass" if far <= 1e-7 else "different"}
    error = "" if consistent else "Requires_grad inconsistent."
    return {**cells, "Requires_grad Consistent": consistent, "Err_message": error}


def as_page(outcome: Outcome) -> str:
    """A page with the parting, and a chart of each printed number and of the distance of the outputs."""
    from migrator.report.views.page import page_environment

    distances = [(step, far) for step, far in outcome.ranks[0].distances if math.isfinite(far)]
    charts = [(each.name, _curve_said(each), _chart(each.values, each.parts)) for each in outcome.curves]
    if distances:
        name = _("Distance of the model's outputs, by step")
        values = tuple((0.0, far) for _step, far in distances)
        charts.append((name, "", _chart(values, None)))
    template = page_environment(_=_).get_template("compare.html.j2")
    return template.render(
        language=language(),
        outcome=outcome,
        parting=outcome.parting and outcome.parting.parting,
        head=head,
        charts=charts,
        text=as_text(outcome),
    )


def _chart(values: tuple[tuple[float, float], ...], parts: Optional[int]) -> dict[str, Any]:
    """The points of both lines in a field of 640 by 160, the mark, and the ends of the scale."""
    flat = [each for pair in values for each in pair if math.isfinite(each)] or [0.0]
    low, high = min(flat), max(flat)
    across, up = 640 / max(1, len(values) - 1), 150 / (high - low or 1.0)
    sides = (
        " ".join(
            f"{place * across:.1f},{155 - (y - low) * up:.1f}"
            for place, y in enumerate(side)
            if math.isfinite(y)
        )
        for side in zip(*values)
    )
    mark = None if parts is None else f"{parts * across:.1f}"
    return {"lines": list(sides), "mark": mark, "low": f"{low:.4g}", "high": f"{high:.4g}"}
