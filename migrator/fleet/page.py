"""The page of a fleet, by ``reports/page/fleet.html.j2``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from migrator.files.replacing import replace_file
from migrator.fleet.job import Task
from migrator.fleet.tables import blocking, cost, firing
from migrator.language import N_, _, language
from migrator.report.views.page import page_environment

PAGE = "index.html"
_SHOWN = 1000  # repositories on the page: the tables have all
_TOP = 40

_STATES = (N_("done"), N_("failed"), N_("timeout"), N_("not obtained"))  # as job.py names them


def write_page(
    folder: Path, task: Task, table: pd.DataFrame, found: pd.DataFrame, summaries: Mapping[str, str]
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
        firing=firing(found).head(_TOP).to_dict("records"),
        summaries=summaries,
        cost=cost(table),
    )
    file = folder / PAGE
    replace_file(file, text.encode("utf-8", "backslashreplace"))
    return file
