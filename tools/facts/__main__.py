"""Derive the tables of api_db from a folder of facts: ``python -m tools.facts --facts DIR``."""

from __future__ import annotations

import argparse
from pathlib import Path

from migrator.data_folders import data_folder
from tools.facts import custom_ops, kernels, source_names, support
from tools.releases import npu_names


def main() -> None:
    """Write what comes from the facts; ``python -m tools.releases`` adds the releases afterwards."""
    parser = argparse.ArgumentParser(prog="python -m tools.facts", description=__doc__)
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
