"""The build and its cache, with a compiler that only pretends."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest

from migrator.emulator import build as building
from migrator.emulator.elf import Wanted
from migrator.emulator.installed import EmulatorError, Installed

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the emulator is for Linux")

# Notes each call, and writes the file that it is asked for.
COMPILER = """\
import os, pathlib, sys, time
arguments = sys.argv[2:]
with open(sys.argv[1], "a") as log:
    log.write(arguments[arguments.index("-o") + 1] + "\\n")
time.sleep(0.01)
pathlib.Path(arguments[arguments.index("-o") + 1]).touch()
"""


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Installed:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "wanted_from_cann", lambda *_: Wanted(("libhccl.so",), ("aclInit",), ()))
    monkeypatch.setattr(building, "defined_functions", lambda _: {"aclInit"})
    (tmp_path / "compiler.py").write_text(COMPILER)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libc10.so").touch()
    command = (sys.executable, str(tmp_path / "compiler.py"), str(tmp_path / "log"))
    return Installed("2.13.0", "2.13.0", tmp_path, tmp_path, command, "pretended 1.0")


def linked(tmp_path: Path) -> int:
    return sum(line.endswith("libhccl.so") for line in (tmp_path / "log").read_text().splitlines())


def test_a_build_is_made_once_and_shown(installed, tmp_path):
    said: list[str] = []
    built = building.build(installed, said.append)
    assert sorted(path.name for path in built.libraries.iterdir()) == [
        "libhccl.so",
        building.CORE,
        building.COMPUTE,
    ]
    assert sorted(path.name for path in built.cann.iterdir()) == ["compiler", "opp", "runtime", "tools"]
    helped = subprocess.run([built.tools / "msprof", "--help"], capture_output=True, text=True, check=True)
    assert "--type" in helped.stdout  # what torch_npu asks for before it exports a database
    assert said[0].startswith("building the emulated NPU for torch_npu 2.13.0")
    assert str(built.folder) in said[1]
    assert building.build(installed, said.append) == built == building.built(installed)
    assert len(said) == 2
    assert linked(tmp_path) == 1
    assert sorted(path.name for path in built.folder.parent.iterdir()) == ["lock", built.folder.name]


def test_progress_while_compilers_run(installed):
    seen: list[tuple[str, int, int]] = []
    building.build(installed, lambda _: None, nullcontext(lambda *step: seen.append(step)))
    done, totals = [step[1] for step in seen], {step[2] for step in seen}
    assert (seen[0][:2], len(totals)) == (("compiling", 0), 1)
    assert done == sorted(done)
    assert done[-1] < max(totals)


def test_several_at_once_build_once(installed, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        builds = list(pool.map(lambda _: building.build(installed, lambda _: None), range(4)))
    assert len(set(builds)) == 1
    assert linked(tmp_path) == 1


@pytest.mark.parametrize(
    "change", [{"torch": "2.13.1"}, {"torch_npu": "2.13.1"}, {"compiler_version": "2.0"}]
)
def test_another_version_is_another_build(installed, change):
    from dataclasses import replace

    before = building.build(installed, lambda _: None)
    assert building.built(replace(installed, **change)) is None
    assert building.build(replace(installed, **change), lambda _: None) != before


def test_a_failing_compiler_is_one_line_and_leaves_nothing(installed, tmp_path):
    (tmp_path / "compiler.py").write_text("import sys; sys.exit('a.cpp:1: error: no such header')")
    with pytest.raises(
        EmulatorError, match=r"^pretended 1.0 cannot build \S+: a.cpp:1: error: no such header$"
    ):
        building.build(installed, lambda _: None)
    assert [path.name for path in building.cache_folder().iterdir()] == ["lock"]


def test_a_cache_that_cannot_be_written(installed, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(EmulatorError, match="XDG_CACHE_HOME names another"):
        building.build(installed, lambda _: None)


def test_what_is_missing_says_so_but_not_while_torch_npu_is_loaded():
    register = "_ZN2ge23OperatorCreatorRegisterC1EPKcRKSt8function"
    source = building._stand_ins(["aclSomething", register], ["_ZTVN2ge8OperatorE"])
    assert 'int aclSomething() { return emulator_missing("aclSomething"); }' in source
    assert f"int {register}() {{ return 0; }}" in source
    assert "char _ZTVN2ge8OperatorE[256];" in source
