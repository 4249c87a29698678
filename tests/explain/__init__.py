"""What explain says of texts."""

from __future__ import annotations

from typing import Optional

from migrator.explain.judge import Explanation, explain
from migrator.explain.logs import Log
from migrator.explain.scan import Scan
from migrator.explain.table import known


def explain_text(text: str) -> Optional[Explanation]:
    """What failed first in a text."""
    scan = Scan(known())
    scan.read(Log("", ""), enumerate(text.encode().split(b"\n"), 1))
    return explain(scan)
