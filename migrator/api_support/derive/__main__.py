"""Derive the tables of api_db: ``python -m migrator.api_support.derive --facts DIR``."""

from __future__ import annotations

import argparse
from pathlib import Path

from migrator.api_support.derive import custom_ops, kernels, npu_names, source_names, support
from migrator.data_folders import data_folder


def main() -> None:
    """Write what comes from the facts; ``npumigrate db build`` adds the releases afterwards."""
    parser = argparse.ArgumentParser(prog="python -m migrator.api_support.derive", description=__doc__)
    parser.add_argument("--facts", type=Path, required=True, help="folder with the tables of facts")
    parser.add_argument("--api-db", type=Path, default=data_folder("api_db"), help="folder to write into")
    options = parser.parse_args()
    source_names.derive(options.facts, options.api_db)
    # support reads npu_names.csv, so it comes behind it.
    npu_names.derive(options.api_db)
    for table in (support, kernels, custom_ops):
        table.derive(options.facts, options.api_db)


if __name__ == "__main__":
    main()
