"""What a hook does for one changed file: counted, as seconds differ from machine to machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = (ROOT / "benchmarks" / "train_script.py.txt").read_text(encoding="utf-8")
# Runs the command line, and says what it took for that.
COUNTING = """\
import json, re, sys
opened, calls, patterns = [], [0], []
compiled = re.compile

def count(frame, event, _):
    if event == "call" and "/migrator/" in frame.f_code.co_filename:
        calls[0] += 1

def compiling(pattern, flags=0):
    if "/migrator/" in sys._getframe(1).f_code.co_filename:
        patterns.append(str(pattern))
    return compiled(pattern, flags)

re.compile = compiling
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
sys.setprofile(count)
from migrator.cli.start import run
code = run()
sys.setprofile(None)
data = [path for path in opened if path.endswith((".csv", ".yaml", ".po"))]
took = {"calls": calls[0], "modules": sorted(sys.modules), "patterns": patterns, "data": data}
print(json.dumps({"code": code, **took}), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def took(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the run took for a script that had changed; the rules and the bytecode were in their caches."""
    folder = tmp_path_factory.mktemp("hook")
    file = folder / "train.py"
    arguments = ["lint", "-v2.6", "--isolated", str(file), "--cache-dir", str(folder / "cache")]
    for program in (["-m", "migrator"], ["-c", COUNTING]):
        file.write_text(f"{SCRIPT}# {program}\n", encoding="utf-8")
        done = subprocess.run(
            [sys.executable, *program, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == (1 if "-m" in program else 0), done.stderr
    answer: dict[str, Any] = json.loads(done.stderr)
    assert answer["code"] == 1
    return answer


def test_each_table_is_read_once(took: dict[str, Any]) -> None:
    assert sorted(took["data"]) == sorted(set(took["data"]))
    tables = {Path(path).name for path in took["data"] if path.endswith(".csv")}
    assert len(tables) <= 13, tables


def test_little_is_imported(took: dict[str, Any]) -> None:
    own = [name for name in took["modules"] if name.partition(".")[0] == "migrator"]
    assert len(own) <= 120, own
    heavy = "datetime hashlib libcst logging multiprocessing shutil sqlite3 subprocess yaml".split()
    assert not set(heavy) & set(took["modules"])


def test_few_patterns_are_compiled(took: dict[str, Any]) -> None:
    assert len(took["patterns"]) <= 76, took["patterns"]


def test_little_is_done(took: dict[str, Any]) -> None:
    """A second pass over the file alone would be a fifth more."""
    assert took["calls"] <= 121_000
