"""How ready a project is, and how long a person needs for the rest: by the figures of ``estimates.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrator.data_folders import reports_yaml
from migrator.report.views.run import Run

_DATA = "page/estimates.yaml"
KINDS = ("automatic", "reviewed", "manual")


@dataclass(frozen=True)
class Counts:
    """What the two figures are made of: changes by safety, findings by severity, files left out."""

    safe: int
    unsafe: int
    open: Mapping[str, int]
    skipped: int


@dataclass
class Effort:
    """Places and minutes of each kind of work: done by the tool, to be reviewed, to be written."""

    places: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    minutes: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))

    def add(self, kind: str, minutes: float) -> None:
        """Count one place."""
        self.places[kind] += 1
        self.minutes[kind] += minutes

    @property
    def total(self) -> float:
        """Minutes of a person."""
        return sum(self.minutes.values())


def counts_of(run: Run) -> Counts:
    """What a run's two figures are made of."""
    # The tables say once what a line has several times; the summary, as the terminal, counts each.
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
    known: set[tuple[str, str, str]] = set()
    columns = ["table", "file", "code", "severity", "api", "safety"]
    changed = set(run.changes.index)
    for index, (_, file, code, severity, api, safety) in zip(
        run.places.index, run.places[columns].itertuples(index=False)
    ):
        level, kind = "", "manual"
        if index in changed:
            level, kind = ("unsafe", "reviewed") if safety == "unsafe" else ("safe", "automatic")
        key = (kind, code, api)
        word = "again" if key in known else "first"
        known.add(key)
        minutes = figures[level] if level else minutes_for(code, severity)
        for effort in (total, files.setdefault(file, Effort())):
            effort.add(kind, minutes[word])
    for file in run.skipped[run.skipped["severity"] == "error"]["file"]:
        for effort in (total, files.setdefault(file, Effort())):
            effort.add("manual", figures["skipped"]["first"])
    return total, files
