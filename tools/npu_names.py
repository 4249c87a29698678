"""Derive api_db/npu_names.csv again, after a change by hand: ``python tools/npu_names.py``.

It comes from ``by_hand/npu_names.csv``, the wheels' names and the sources' names, all in api_db.
"""

from __future__ import annotations

import sys

from migrator.data_folders import data_folder
from tools.releases import check, npu_names


def main() -> int:
    """Write the table, and say what is wrong with the tables then; 1 where something is."""
    try:
        npu_names.derive(data_folder("api_db"))
        problems = check.problems(data_folder("api_db"))
    except npu_names.ByHandError as error:
        problems = [str(error)]
    print("\n".join(problems), end="\n" if problems else "")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
