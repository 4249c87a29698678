"""api_db/mentioned_names.csv: names of torch_npu whose absence from a release without a wheel is no fact.

    python -m tools.mentioned_names CLONE

Such a release is read from its branch in a clone of torch_npu's repository. What no table has of it, and its
sources speak of all the same, may be there: an operator of a submodule, a function that is put there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from migrator.api_support import npu_names, tables
from migrator.api_support.versions import TorchVersion, known
from migrator.data_folders import data_folder
from tools.releases import writing


def main(clone: str) -> None:
    """Write the table."""
    versions = [version for version in known() if "wheel" not in version.evidence]
    found: dict[str, list[str]] = {}
    for version in versions:
        for name in _mentioned(clone, version):
            found.setdefault(name, []).append(version.text)
    rows = sorted((name, " ".join(inside)) for name, inside in found.items())
    writing.write_in(data_folder("api_db"), "mentioned_names", rows)


def _mentioned(clone: str, version: TorchVersion) -> Iterator[str]:
    branch = f"v{version.text}"
    words = set(_git(clone, "grep", "-hoE", r"[A-Za-z_]\w*", branch, "--", "torch_npu", "*.yaml").split())
    words |= set(re.findall(r"\w+", _git(clone, "ls-tree", "-r", "--name-only", branch, "torch_npu")))
    bound = (f"{row[0]}.{row[1]}" for row in tables.rows("wheel_names") if row[0].startswith("torch_npu"))
    for name in sorted({*tables.grouped("custom_ops"), *bound}):
        if "._" not in name and name.rpartition(".")[2] in words:
            if version.text not in npu_names.releases_with(name):
                yield name


def _git(clone: str, *words: str) -> str:
    done = subprocess.run(["git", "-C", clone, *words], stdout=subprocess.PIPE, check=True)
    return done.stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    main(sys.argv[1])
