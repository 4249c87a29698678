"""How often real projects use what an NPU does not have: the list behind docs/replace_unsupported.md.

    python -m tools.api_uses -v 2.6 -v 1.11 FOLDER … > uses.csv

Lints each folder, a project, at each version with the rules that say that an API is unsupported, falls back
to the CPU, or is absent in that torch, and counts their findings by API.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

# Unsupported, fallback, sparse products, operators for CUDA alone, names that this torch does not have yet.
RULES = "NPU501,NPU502,NPU505,NPU179,NPU530"
_SECONDS = 600  # for one project


def main(versions: list[str], folders: list[Path]) -> None:
    """Print a line for each API and version: its uses, and the projects that have some."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(("version", "api", "rule", "uses", "projects"))
    for version in versions:
        uses: Counter[tuple[str, str]] = Counter()
        projects: Counter[tuple[str, str]] = Counter()
        for folder in folders:
            found = Counter(_uses(folder, version))
            uses.update(found)
            projects.update(found.keys())
        for (api, rule), count in sorted(uses.items(), key=lambda item: (-item[1], item[0])):
            table.writerow((version, api, rule, count, projects[api, rule]))


def _uses(folder: Path, version: str) -> Iterator[tuple[str, str]]:
    """The APIs of the findings in a project, each with the rule."""
    command = [sys.executable, "-m", "migrator", "lint", "-v", version, "--select", RULES]
    done = subprocess.run(
        [*command, "--no-cache", "--isolated", "--exit-zero", "--output-format", "json", str(folder)],
        stdout=subprocess.PIPE,
        timeout=_SECONDS,
        check=True,
    )
    for finding in json.loads(done.stdout):
        for api in finding["api"].split(", "):
            yield api, finding["code"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--version", action="append", required=True)
    parser.add_argument("folders", nargs="+", type=Path)
    given = parser.parse_args()
    main(given.version, given.folders)
