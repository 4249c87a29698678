"""Rebuild the tables of api_db: ``python -m migrator.api_support.derive --facts DIR [--wheels DIR]``."""

from __future__ import annotations

import argparse
from pathlib import Path

from migrator.api_support.derive import custom_ops, kernels, npu_names, support, wheel_names
from migrator.data_folders import data_folder


def main() -> None:
    """Read wheels where a folder of them is given, then write every derived table."""
    parser = argparse.ArgumentParser(prog="python -m migrator.api_support.derive", description=__doc__)
    parser.add_argument("--facts", type=Path, required=True, help="folder with the tables of facts")
    parser.add_argument("--wheels", type=Path, help="folder with torch and torch_npu wheels")
    parser.add_argument("--api-db", type=Path, default=data_folder("api_db"), help="folder to write into")
    options = parser.parse_args()
    if options.wheels:
        for line in wheel_names.add_wheels(options.wheels, options.api_db):
            print(line)
    # support reads npu_names.csv, so it comes behind it.
    for table in (npu_names, support, kernels, custom_ops):
        table.derive(options.facts, options.api_db)


if __name__ == "__main__":
    main()
