"""The tables of a fleet: repositories, findings, what blocks most, what a migration costs; and its page.

The page is made by ``reports/page/fleet.html.j2``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from migrator.files.replacing import replace_file
from migrator.findings.finding import SEVERITIES
from migrator.fleet.job import Outcome, Task
from migrator.language import N_, _, language
from migrator.report.views.page import page_environment

REPOSITORIES = "repositories.parquet"
FINDINGS = "findings.parquet"
RUNS = "runs.csv"
PAGE = "index.html"
_RUNS_SHOWN = 20
_SHOWN = 1000  # repositories on the page: the tables have all
_TOP = 40

_STATES = (N_("done"), N_("failed"), N_("timeout"), N_("not obtained"))  # as job.py names them
# As they stand in the table; the figures are those of report.json.
COLUMNS = (
    *("name", "source", "revision", "state", "reason", "framework", "readiness", "minutes", "files"),
    *SEVERITIES[::-1],
    *("bytes", "seconds", "cpu_seconds", "known", "key"),
)
_NUMBERS = ("readiness", "minutes", "files", *SEVERITIES, "bytes", "seconds", "cpu_seconds")
_NAMED = 3  # names of one repository that are shown of a rule
_OF_FINDINGS = ("name", "code", "api", "severity", "status", "safety", "count")


def repositories(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One row a repository, the readiest first; what could not be examined stands at the end."""
    table = pd.DataFrame(outcomes).reindex(columns=list(COLUMNS))
    for name in _NUMBERS:
        table[name] = pd.to_numeric(table[name], errors="coerce")
    for name in ("source", "revision", "reason", "framework", "key"):
        table[name] = table[name].astype(object).fillna("").astype(str)
    table["left"] = table["state"] != "done"
    order = ["left", "readiness", "blocker", "error", "warning", "name"]
    upwards = [name != "readiness" for name in order]
    return table.sort_values(order, ascending=upwards, ignore_index=True).drop(columns="left")


def findings(outcomes: Sequence[Outcome]) -> pd.DataFrame:
    """One row for each rule, API and severity of a repository, with how often."""
    rows = [(outcome["name"], *row) for outcome in outcomes for row in outcome.get("findings", ())]
    return pd.DataFrame(rows, columns=list(_OF_FINDINGS))


def blocking(found: pd.DataFrame) -> pd.DataFrame:
    """The APIs that stop most repositories, by blockers and errors that no fix removes.

    Where a rule has many names that stop one repository only, such as its own kernels, they share a row; so
    do many that stop the same repositories, such as copies of one kernel.
    """
    grave = found["severity"].isin(["blocker", "error"])
    left = found[grave & (found["safety"] == "")].copy()
    stopped = left.groupby(["api", "code"])["name"].transform(lambda names: "\0".join(sorted(set(names))))
    together = stopped.map(lambda names: names if "\0" in names else "")
    for _key, rows in left.groupby([left["code"], together]):
        names = rows.groupby("api")["count"].sum().sort_values(ascending=False, kind="stable").index
        if len(names) > _NAMED:
            left.loc[rows.index, "api"] = ", ".join(names[:_NAMED]) + f" (+{len(names) - _NAMED})"
    return _ranked(left, ["api", "code"])


def _ranked(found: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    groups = found.groupby(by, sort=False)
    table = groups.agg(repositories=("name", "nunique"), places=("count", "sum")).reset_index()
    order = ["repositories", "places", *by]
    return table.sort_values(order, ascending=[False, False, *(True for _ in by)], ignore_index=True)


def cost(table: pd.DataFrame) -> dict[str, float] | None:
    """A line through what was measured; None for fewer than ten repositories.

    Processor seconds of ``each`` repository and ``per_megabyte`` of its Python, the typical ``error`` in %,
    and processor ``hours`` of 100,000 repositories like these.
    """
    import numpy

    measured = table[(table["state"] == "done") & table["cpu_seconds"].notna() & table["bytes"].notna()]
    if len(measured) < 10:
        return None
    size = measured["bytes"].to_numpy(float) / 1e6
    taken = measured["cpu_seconds"].to_numpy(float)
    (each, slope), *_ = numpy.linalg.lstsq(
        numpy.column_stack([numpy.ones_like(size), size]), taken, rcond=None
    )
    said = each + slope * size
    error = float(numpy.median(numpy.abs(said - taken) / numpy.maximum(taken, 1e-9))) * 100
    hours = 100_000 * (each + slope * size.mean()) / 3600
    return {"each": float(each), "per_megabyte": float(slope), "error": error, "hours": float(hours)}


def write(folder: Path, outcomes: Sequence[Outcome]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Write both tables, and give them."""
    table, found = repositories(outcomes), findings(outcomes)
    table.to_parquet(folder / REPOSITORIES, index=False)
    found.to_parquet(folder / FINDINGS, index=False)
    return table, found


def with_this_run(folder: Path, task: Task, table: pd.DataFrame, date: str) -> pd.DataFrame:
    """The figures of the runs in a folder, which are written down. Raises CannotWrite.

    This run is the last one, unless it found what the last one of its command had found.
    """
    figures: dict[str, object] = {
        "date": date,
        "command": task.command,
        "torch": task.version,
        "repositories": len(table),
        "examined": (table["state"] == "done").sum(),
        "blocked": (table["blocker"] > 0).sum(),
        **{level: table[level].sum() for level in SEVERITIES[::-1]},
        "minutes": table["minutes"].sum(),
        "readiness": table["readiness"].mean(),
    }
    runs = pd.DataFrame([figures])
    with suppress(OSError, ValueError, KeyError):  # there is none yet, or what stands there is none
        before = pd.read_csv(folder / RUNS, dtype={"torch": str})[[*figures]]
        last = before[before["command"] == task.command].tail(1)
        runs = (
            before
            if _text(last).partition(",")[2] == _text(runs).partition(",")[2]
            else pd.concat([before, runs])
        )
    text = f"{','.join(figures)}\n{_text(runs)}"
    replace_file(folder / RUNS, text.encode("utf-8", "backslashreplace"))
    return runs.reset_index(drop=True)


def _text(runs: pd.DataFrame) -> str:
    return str(runs.to_csv(index=False, header=False, lineterminator="\n", float_format="%.1f"))


def write_page(
    folder: Path,
    task: Task,
    table: pd.DataFrame,
    found: pd.DataFrame,
    summaries: Mapping[str, str],
    runs: pd.DataFrame,
) -> Path:
    """Write the page; ``summaries`` are those of the rules by code. Raises CannotWrite."""
    template = page_environment(_=_).get_template("fleet.html.j2")
    text = template.render(
        language=language(),
        task=task,
        total=len(table),
        states=table["state"].value_counts().to_dict(),
        said={state: _(state) for state in _STATES},
        blocked=int((table["blocker"].fillna(0) > 0).sum()),
        table=table.head(_SHOWN).astype(object).where(table.head(_SHOWN).notna(), None).to_dict("records"),
        blocking=blocking(found).head(_TOP).to_dict("records"),
        firing=_ranked(found, ["code"]).head(_TOP).to_dict("records"),
        summaries=summaries,
        runs=runs.tail(_RUNS_SHOWN).astype(object).where(runs.notna(), None).to_dict("records"),
        cost=cost(table),
    )
    file = folder / PAGE
    replace_file(file, text.encode("utf-8", "backslashreplace"))
    return file
