"""``python -m migrator``: the command line."""

from __future__ import annotations

import sys

from migrator.cli.start import run

if __name__ == "__main__":
    sys.exit(run())
