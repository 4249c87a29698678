"""What the reports show of a run: two estimates by the figures of ``estimates.yaml``, groups, charts, words.

No number is worked out in the templates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import Any, NamedTuple

from migrator.data_folders import reports_yaml
from migrator.findings.finding import SEVERITIES
from migrator.language import _, language
from migrator.matchers.packs import Rule
from migrator.report.csv_tables import CHANGES, cell_in
from migrator.report.views.hunks import Place, hunks_of
from migrator.report.views.run import Run

_DATA = "page/estimates.yaml"
_KINDS = ("automatic", "reviewed", "manual")
_STATUSES = ("absent", "unsupported", "fallback", "partial", "unknown")
_BARS = 8
_SAID = 40  # different messages of a group
_PLACES = 40  # of a message, with links
_GRAVEST = tuple(reversed(SEVERITIES))


class Texts:
    """The texts by their keys, in the language of the run."""

    def __init__(self) -> None:
        self._entries: Mapping[str, Any] = reports_yaml("page/texts.yaml")
        self.language = "en" if language() == "en" else "zh-CN"

    def __call__(self, key: str, n: int | None = None, **values: object) -> str:
        """A text with its values; ``n`` chooses the form for one or for ``other`` numbers, and is a value."""
        entry = self._entries[key]
        if isinstance(entry, Mapping):
            entry = entry["one" if n == 1 and "one" in entry else "other"]
        if n is not None:
            values["n"] = f"{n:,}"
        return _(str(entry).strip()).format(**values)

    def table(self, key: str) -> dict[str, str]:
        """A table of texts: those that the page's script shows, the keys of the keyboard."""
        return {str(name): _(str(text)) for name, text in self._entries[key].items()}

    def about(self, table: str, key: str) -> str:
        """A text of a table of them: the name of a severity, of a status; the key where there is none."""
        return _(str(self._entries[table].get(key, key)))

    def duration(self, *minutes: float) -> str:
        """A time for work, in tenths of an hour; of several parts the sum of what they show."""
        tenths = sum(round(part / 6) for part in minutes)
        return self("hours", hours=f"{tenths / 10:,.1f}" if tenths or not sum(minutes) else "< 0.1")

    def pair(self, minutes: Mapping[str, float]) -> str:
        """What the first place takes and each further one."""
        return self("pair", first=minutes["first"], again=minutes["again"])


class Counts(NamedTuple):
    """What the two figures are made of: changes by safety, findings by severity, files left out."""

    safe: int
    unsafe: int
    open: Mapping[str, int]
    skipped: int


@dataclass
class Effort:
    """Places and minutes of each kind of work: done by the tool, to be reviewed, to be written."""

    places: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0))
    minutes: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_KINDS, 0.0))

    @property
    def total(self) -> float:
        """Minutes of a person."""
        return sum(self.minutes.values())


def counts_of(run: Run) -> Counts:
    """What a run's two figures are made of."""
    changes, severities = run.summary["changes"], run.summary["findings"]["by_severity"]
    return Counts(
        changes["total"] - changes["unsafe"],
        changes["unsafe"],
        {level: severities.get(level, 0) for level in reports_yaml(_DATA)["readiness"]["open"]},
        int((run.skipped["severity"] == "error").sum()),
    )


def readiness(counts: Counts) -> tuple[int, float, float]:
    """Per cent, and the weights of what is done and of what is open. Nothing to do is 100 %."""
    weights = reports_yaml(_DATA)["readiness"]
    done = counts.safe * weights["safe"] + counts.unsafe * weights["unsafe"]
    done += 0 if counts.open["blocker"] else weights["no_blocker"]
    left = counts.unsafe * (1 - weights["unsafe"]) + counts.skipped * weights["skipped"]
    left += sum(weights["open"][level] * count for level, count in counts.open.items())
    # Rounded down: 100 is for nothing open only.
    return int(100 * done / (done + left)) if left else 100, done, left


def minutes_for(code: str, severity: str) -> Mapping[str, float]:
    """What the first and each further place takes that a rule leaves to a person."""
    figures = reports_yaml(_DATA)["effort"]
    own = max((begin for begin in figures["codes"] if code.startswith(begin)), default="")
    minutes: Mapping[str, float] = figures["codes"][own] if own else figures.get(severity, figures["info"])
    return minutes


def effort_of(run: Run) -> tuple[Effort, dict[str, Effort]]:
    """The work on all of a project, and on each of its files."""
    figures = reports_yaml(_DATA)["effort"]
    total = Effort()
    files: dict[str, Effort] = {}
    known: set[tuple[str, ...]] = set()

    def add(file: str, kind: str, minutes: float) -> None:
        for effort in (total, files.setdefault(file, Effort())):
            effort.places[kind] += 1
            effort.minutes[kind] += minutes

    columns = ["table", "file", "code", "severity", "api", "safety"]
    for table, file, code, severity, api, safety in run.places[columns].itertuples(index=False):
        kind, minutes = "manual", minutes_for(code, severity)
        if table == CHANGES:
            unsafe = safety == "unsafe"
            kind, minutes = ("reviewed", figures["unsafe"]) if unsafe else ("automatic", figures["safe"])
        key = kind, severity if kind == "manual" else "", code, api
        add(file, kind, minutes["again" if key in known else "first"])
        known.add(key)
    for file in run.skipped[run.skipped["severity"] == "error"]["file"]:
        add(file, "manual", figures["skipped"]["first"])
    return total, files


def view_of(run: Run, texts: Texts, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Everything that a page shows of a run, under the names that its templates have for it."""
    counts = counts_of(run)
    total, efforts = effort_of(run)
    verdict, tone = verdict_of(run, counts, texts)
    by_effort = sorted(efforts.items(), key=lambda item: (-item[1].total, item[0]))
    return {
        "counts": counts,
        "ready": readiness(counts),
        "verdict": verdict,
        "tone": tone,
        "charts": _charts(run, texts, rules),
        "groups": groups_of(run, rules),
        "files": _files(run),
        "rules": _rules(run, rules),
        "effort": total,
        "file_efforts": [(name, effort) for name, effort in by_effort if effort.total],
    }


def verdict_of(run: Run, counts: Counts, texts: Texts) -> tuple[str, str]:
    """The verdict in a sentence, or two where the result was run, and its tone: bad, fair or good."""
    migrates = run.kind == "migrate"
    look = counts.unsafe + counts.open["warning"]
    grounds = (
        ("verdict_blocker", counts.open["blocker"], "bad"),
        ("verdict_error", counts.open["error"], "bad"),
        ("verdict_skipped", counts.skipped, "bad"),
        ("verdict_review" if migrates else "verdict_look", look, "fair"),
        ("verdict_notes", counts.open["info"], "good"),
    )
    clean = "verdict_done" if counts.safe else "verdict_nothing" if migrates else "verdict_none"
    found = ((texts(key, number), tone) for key, number, tone in grounds if number)
    said, tone = next(found, (texts(clean), "good"))
    if run.verdict:
        outcome = str(run.verdict["verdict"])
        ran = texts("verdict_ran") if outcome == "passed" else texts("verdict_ran_not", outcome=_(outcome))
        said, tone = f"{said} {ran}", tone if outcome.startswith("passed") else "bad"
    return said, tone


def groups_of(run: Run, rules: Mapping[str, Rule]) -> list[dict[str, Any]]:
    """What is left to a person, by rule and severity: what has the most effect first.

    What a rule says in the same words of several places, ``said``, has these with their files and lines.
    """
    groups = []
    for (severity, code), rows in run.findings.groupby(["severity", "code"], sort=False):
        said = []
        for (message, advice), same in rows.groupby(["message", "advice"], sort=False):
            places = tuple(zip(same["file"], same["line"]))
            about = {"message": message, "advice": advice, "places": places[:_PLACES]}
            said.append({**about, "count": len(places), "more": max(len(places) - _PLACES, 0)})
        minutes, first = minutes_for(code, severity), rows["api"].nunique()
        group = {
            "severity": severity,
            "code": code,
            "title": rules[code].summary if code in rules else said[0]["message"],
            "count": len(rows),
            "minutes": first * minutes["first"] + (len(rows) - first) * minutes["again"],
            "said": sorted(said, key=lambda each: -each["count"])[:_SAID],
            "more": max(len(said) - _SAID, 0),
        }
        order = _GRAVEST.index(severity), -group["minutes"], -len(rows), code
        groups.append((order, group))
    return [group for _order, group in sorted(groups, key=lambda each: each[0])]


def _files(run: Run) -> list[dict[str, Any]]:
    """The files: their hunks, by cell in a notebook, their numbers, and the gravest of what is left."""
    parts: dict[str, dict[str, list[Place]]] = {}
    for row in run.places.assign(mark=run.marks()).to_dict("records"):
        place = Place(row["table"] == CHANGES, *(row[name] for name in Place._fields[1:]))
        parts.setdefault(cell_in(row["file"])[0], {}).setdefault(row["file"], []).append(place)
    views = []
    anchors: set[str] = set()
    for name, cells in parts.items():
        places = [place for each in cells.values() for place in each]
        anchor = plain = "file-" + re.sub(r"[^A-Za-z0-9_./-]+", "-", name)
        numbers = count(2)
        while anchor in anchors:
            anchor = f"{plain}-{next(numbers)}"
        anchors.add(anchor)
        left = {place.severity for place in places if not place.change}
        view = {
            "name": name,
            "anchor": anchor,
            "folder": name.rpartition("/")[0] or ".",
            "parts": {c: hunks_of(each, run.lines(c), run.original(c)) for c, each in cells.items()},
            "changes": sum(place.change for place in places),
            "unsafe": sum(place.change and place.safety == "unsafe" for place in places),
            "findings": sum(not place.change for place in places),
            "severity": next((level for level in _GRAVEST if level in left), ""),
        }
        views.append(view)
    return sorted(views, key=lambda view: str(view["name"]))


def _charts(run: Run, texts: Texts, rules: Mapping[str, Rule]) -> list[dict[str, Any]]:
    """The bar charts that have bars: label, query and numbers by style of each bar, and how many are left."""
    severities = run.summary["findings"]["by_severity"]
    statuses = run.findings["status"].value_counts()
    name = texts.about
    levels = [(name("severities", n), f"severity={n}", {n: severities.get(n, 0)}) for n in map(str, _GRAVEST)]
    api = [(name("statuses", n), "", {n: int(statuses.get(n, 0))}) for n in _STATUSES]
    files = (run.changes["file"], run.findings["file"])
    folders, more = _stacked(*(Counter(str(f).rpartition("/")[0] or "." for f in each) for each in files))
    by_rule, more_rules = _stacked(*_by_rule(run))
    named = {code: f"{code} {rule.name}" for code, rule in rules.items()}
    root = texts("chart_root")
    charts: tuple[tuple[str, Sequence[tuple[str, str, Mapping[str, int]]], tuple[int, int] | None], ...] = (
        ("severity", levels, None),
        ("status", api, None),
        ("folder", [(root if k == "." else f"{k}/", f"folder={k}", n) for k, n in folders], more),
        ("rule", [(named.get(key, key), f"rule={key}", n) for key, n in by_rule], more_rules),
    )
    views = []
    for key, rows, others in charts:
        most, bars = max((sum(numbers.values()) for *_, numbers in rows), default=0), []
        for label, query, numbers in rows if most else ():
            # The parts of a bar: style, number, start and width in per cent.
            starts = accumulate((100 * number / most for number in numbers.values()), initial=0.0)
            parts = [(style, n, start, 100 * n / most) for (style, n), start in zip(numbers.items(), starts)]
            bars.append({"label": label, "query": query, "total": sum(numbers.values()), "parts": parts})
        if bars:
            views.append({"key": key, "bars": bars, "legend": others is not None, "others": others})
    return views


def _by_rule(run: Run) -> list[Counter[str]]:
    """How often each rule changed something, and found something."""
    return [
        Counter({code: each["total"] for code, each in run.summary[key]["by_rule"].items()})
        for key in ("changes", "findings")
    ]


def _stacked(
    changes: Counter[str], findings: Counter[str]
) -> tuple[list[tuple[str, dict[str, int]]], tuple[int, int]]:
    """The largest rows of a chart of changes and findings; how many more there are, and the sum of these."""
    total = changes + findings
    ordered = sorted(total, key=lambda each: (-total[each], each))
    rows = [(each, {"changes": changes[each], "findings": findings[each]}) for each in ordered[:_BARS]]
    return rows, (len(ordered[_BARS:]), sum(total[each] for each in ordered[_BARS:]))


def _rules(run: Run, rules: Mapping[str, Rule]) -> list[dict[str, Any]]:
    """The rules that did something, with their texts."""
    changes, findings = _by_rule(run)
    views = []
    for code in sorted({*changes, *findings}):
        rule = rules.get(code)
        known = {name: getattr(rule, name, "") for name in ("name", "summary", "why", "advice")}
        numbers = {"changes": changes[code], "findings": findings[code]}
        views.append({"code": code, **known, "references": rule.links if rule else (), **numbers})
    return views
