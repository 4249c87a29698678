"""The tests in on_npu/, run by a pytest that runs on the emulated NPU."""

from __future__ import annotations

import pytest

from tests.emulator.conftest import HERE

FILES = sorted(path.name for path in (HERE / "on_npu").glob("test_*.py"))


@pytest.mark.parametrize("name", FILES)
def test_file(emulate, name: str) -> None:
    command = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"on_npu/{name}"]
    done = emulate(*command, options=("--devices", "4", "--memory", "2GiB"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
