"""The words of the reports, from ``reports/page/texts.yaml``: all that is said is said through ``Texts``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrator.data_folders import reports_yaml
from migrator.language import _, language


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

    def duration(self, minutes: float) -> str:
        """A time for work, no more exact than the estimate is: minutes, hours or days."""
        day = 60 * reports_yaml("page/estimates.yaml")["effort"]["hours_a_day"]
        if minutes >= 3 * day:
            return self("days", n=round(minutes / day))
        if minutes >= 90:
            return self("hours", n=round(minutes / 60))
        return self("minutes", n=round(minutes / 5) * 5 if minutes > 20 else round(minutes))

    def pair(self, minutes: Mapping[str, float]) -> str:
        """What the first place takes and each further one."""
        return self("pair", first=minutes["first"], again=minutes["again"])
