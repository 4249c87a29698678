"""The tests in on_npu/, run by a pytest that runs on the emulated NPU.

They share one process, as to load torch and torch_npu takes longer than most of them. One file alone, in
this folder: ``npumigrate emulate --devices 4 --memory 2GiB -- python -m pytest on_npu/test_vision.py``.
"""

from __future__ import annotations

from tests.emulator.conftest import HERE


def test_all_pass(emulate) -> None:
    command = ["python", "-m", "pytest", "-v", "-p", "no:cacheprovider", "on_npu"]
    done = emulate(*command, options=("--devices", "4", "--memory", "2GiB"), timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    for path in sorted((HERE / "on_npu").glob("test_*.py")):
        assert f"on_npu/{path.name}::" in done.stdout, f"nothing of {path.name} was run"
