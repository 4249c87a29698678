"""What the page shows of a run, ready for the templates: no number is worked out in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from migrator.findings.finding import SEVERITIES
from migrator.language import _
from migrator.report.rows import CHANGES, cell_in
from migrator.report.views.estimates import Counts, Effort, counts_of, effort_of, minutes_for, readiness
from migrator.report.views.hunks import Hunk, Place, hunks_of, place_of
from migrator.report.views.run import Run
from migrator.report.views.texts import Texts

if TYPE_CHECKING:
    from migrator.matchers.packs import Rule

_STATUSES = ("absent", "unsupported", "fallback", "partial", "unknown")
_BARS = 8
_SAID = 40  # different messages of a group
_PLACES = 40  # of a message, with links
GRAVEST = tuple(reversed(SEVERITIES))


@dataclass(frozen=True)
class Bar:
    """A row of a chart: parts of it are (style, number, start and width in per cent)."""

    label: str
    query: str
    total: int
    parts: tuple[tuple[str, int, float, float], ...]


@dataclass(frozen=True)
class Chart:
    """A bar chart."""

    key: str
    bars: tuple[Bar, ...]
    legend: bool = False
    others: int = 0


@dataclass(frozen=True)
class Said:
    """What a rule says in the same words of several places: these, with their files and lines."""

    message: str
    advice: str
    places: tuple[tuple[str, int], ...]
    more: int


@dataclass(frozen=True)
class Group:
    """What one rule leaves to a person, at one severity."""

    severity: str
    code: str
    title: str
    count: int
    minutes: float
    said: tuple[Said, ...]
    more: int


@dataclass(frozen=True)
class FileView:
    """A file: its hunks, by cell in a notebook, and its numbers."""

    name: str
    anchor: str
    parts: tuple[tuple[str, tuple[Hunk, ...]], ...]
    changes: int
    unsafe: int
    open: Mapping[str, int]

    @property
    def findings(self) -> int:
        """How many places are left to a person."""
        return sum(self.open.values())

    @property
    def severity(self) -> str:
        """The gravest severity of what is left."""
        return next((level for level in GRAVEST if self.open.get(level)), "")


@dataclass(frozen=True)
class RuleView:
    """A rule that did something."""

    code: str
    name: str
    summary: str
    why: str
    advice: str
    references: tuple[str, ...]
    changes: int
    findings: int


@dataclass(frozen=True)
class View:
    """All that a page shows."""

    counts: Counts
    ready: tuple[int, float, float]
    verdict: str
    tone: str
    charts: tuple[Chart, ...]
    groups: tuple[Group, ...]
    files: tuple[FileView, ...]
    rules: tuple[RuleView, ...]
    effort: Effort
    file_efforts: tuple[tuple[str, Effort], ...]


def view_of(run: Run, texts: Texts, rules: Mapping[str, Rule]) -> View:
    """Everything that is shown of a run."""
    counts = counts_of(run)
    ready = readiness(counts)
    total, efforts = effort_of(run)
    verdict, tone = verdict_of(run, counts, texts)
    by_effort = sorted(efforts.items(), key=lambda item: (-item[1].total, item[0]))
    return View(
        counts,
        ready,
        verdict,
        tone,
        _charts(run, texts, rules),
        groups_of(run, rules),
        _files(run),
        _rules(run, rules),
        total,
        tuple((name, effort) for name, effort in by_effort if effort.total),
    )


def verdict_of(run: Run, counts: Counts, texts: Texts) -> tuple[str, str]:
    """The verdict in a sentence, or two where the result was run, and its tone: bad, fair or good."""
    look = counts.unsafe + counts.open["warning"]
    if counts.open["blocker"]:
        said, tone = texts("verdict_blocker", counts.open["blocker"]), "bad"
    elif counts.open["error"]:
        said, tone = texts("verdict_error", counts.open["error"]), "bad"
    elif counts.skipped:
        said, tone = texts("verdict_skipped", counts.skipped), "bad"
    elif look:
        said, tone = texts("verdict_review" if run.kind == "migrate" else "verdict_look", look), "fair"
    elif counts.open["info"]:
        said, tone = texts("verdict_notes", counts.open["info"]), "good"
    elif counts.safe:
        said, tone = texts("verdict_done"), "good"
    else:
        said, tone = texts("verdict_nothing" if run.kind == "migrate" else "verdict_none"), "good"
    if run.verdict:
        outcome = str(run.verdict["verdict"])
        ran = texts("verdict_ran") if outcome == "passed" else texts("verdict_ran_not", outcome=_(outcome))
        said, tone = f"{said} {ran}", tone if outcome == "passed" else "bad"
    return said, tone


def groups_of(run: Run, rules: Mapping[str, Rule]) -> tuple[Group, ...]:
    """What is left to a person, by rule and severity: what has the most effect first."""
    groups = []
    for (severity, code), rows in run.findings.groupby(["severity", "code"], sort=False):
        said: list[Said] = []
        for (message, advice), same in rows.groupby(["message", "advice"], sort=False):
            places = tuple(zip(same["file"], same["line"]))
            said.append(Said(message, advice, places[:_PLACES], max(len(places) - _PLACES, 0)))
        rule, minutes = rules.get(code), minutes_for(code, severity)
        first = rows["api"].nunique()
        groups.append(
            Group(
                severity,
                code,
                rule.summary if rule else said[0].message,
                len(rows),
                first * minutes["first"] + (len(rows) - first) * minutes["again"],
                tuple(sorted(said, key=lambda each: -len(each.places) - each.more))[:_SAID],
                max(len(said) - _SAID, 0),
            )
        )
    return tuple(
        sorted(groups, key=lambda each: (GRAVEST.index(each.severity), -each.minutes, -each.count, each.code))
    )


def _files(run: Run) -> tuple[FileView, ...]:
    parts: dict[str, dict[str, list[Place]]] = {}
    for row in run.places.to_dict("records"):
        name = cell_in(row["file"])[0]
        place = place_of(row, row["table"] == CHANGES)
        parts.setdefault(name, {}).setdefault(row["file"], []).append(place)
    views = []
    anchors: set[str] = set()
    for name, cells in parts.items():
        places = [place for each in cells.values() for place in each]
        views.append(
            FileView(
                name,
                _anchor(name, anchors),
                tuple(
                    (cell, tuple(hunks_of(each, run.lines(cell), run.original(cell))))
                    for cell, each in cells.items()
                ),
                sum(place.change for place in places),
                sum(place.change and place.safety == "unsafe" for place in places),
                Counter(place.severity for place in places if not place.change),
            )
        )
    return tuple(sorted(views, key=lambda view: view.name))


def _anchor(name: str, known: set[str]) -> str:
    plain = "file-" + re.sub(r"[^A-Za-z0-9_./-]+", "-", name)
    others = (f"{plain}-{number}" for number in count(2))
    anchor = plain if plain not in known else next(each for each in others if each not in known)
    known.add(anchor)
    return anchor


def _charts(run: Run, texts: Texts, rules: Mapping[str, Rule]) -> tuple[Chart, ...]:
    severities = run.summary["findings"]["by_severity"]
    statuses = run.findings["status"].value_counts()
    folder = {
        change: Counter(str(name).rpartition("/")[0] for name in rows["file"])
        for change, rows in ((True, run.changes), (False, run.findings))
    }
    levels = [
        (texts.about("severities", level), f"severity={level}", level, severities.get(level, 0))
        for level in GRAVEST
    ]
    api = [(texts.about("statuses", each), "", each, int(statuses.get(each, 0))) for each in _STATUSES]
    named = {code: f"{code} {rule.name}" for code, rule in rules.items()}
    charts = (
        _simple("severity", levels),
        _simple("status", api),
        _stacked("folder", folder, lambda key: f"{key}/" if key else texts("chart_root"), "q"),
        _stacked("rule", _by_rule(run), lambda key: named.get(key, key), "rule"),
    )
    return tuple(chart for chart in charts if chart.bars)


def _by_rule(run: Run) -> dict[bool, Counter[str]]:
    """How often each rule changed something (True), and found something (False)."""
    return {
        change: Counter({code: each["total"] for code, each in run.summary[key]["by_rule"].items()})
        for change, key in ((True, "changes"), (False, "findings"))
    }


def _simple(key: str, rows: Sequence[tuple[str, str, str, int]]) -> Chart:
    most = max(number for *_, number in rows)
    bars = (
        Bar(label, query, number, ((style, number, 0, 100 * number / most),))
        for label, query, style, number in rows
        if most
    )
    return Chart(key, tuple(bars))


def _stacked(key: str, sides: Mapping[bool, Counter[str]], label: Any, query: str) -> Chart:
    total = sides[True] + sides[False]
    ordered = sorted(total, key=lambda each: (-total[each], each))
    most = total[ordered[0]] if ordered else 0
    bars = []
    for each in ordered[:_BARS]:
        changes, findings = sides[True][each], sides[False][each]
        width = 100 * changes / most
        parts = (("changes", changes, 0.0, width), ("findings", findings, width, 100 * findings / most))
        bars.append(Bar(label(each), f"{query}={each}" if each else "", total[each], parts))
    return Chart(key, tuple(bars), legend=True, others=max(len(ordered) - _BARS, 0))


def _rules(run: Run, rules: Mapping[str, Rule]) -> tuple[RuleView, ...]:
    by_rule = _by_rule(run)
    changes, findings = by_rule[True], by_rule[False]
    views = []
    for code in sorted({*changes, *findings}):
        rule = rules.get(code)
        known = (rule.name, rule.summary, rule.why.strip(), rule.advice, rule.links) if rule else None
        views.append(RuleView(code, *(known or ("", "", "", "", ())), changes[code], findings[code]))
    return tuple(views)
