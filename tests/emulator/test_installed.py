"""Which versions of torch the emulator takes, and what it says of others."""

from __future__ import annotations

import pytest

from migrator.cli import main
from migrator.emulator.installed import SUPPORTED, is_supported, pair_trouble


@pytest.mark.parametrize(
    ("torch", "torch_npu", "supported"),
    [
        ("2.13.0+cpu", "2.13.0", True),
        ("2.6.0", "2.6.0.post5", True),
        ("2.4.0+cu121", "2.4.0.post4", True),
        ("2.4.0", "2.6.0", False),
        ("2.1.0", "2.1.0.post17", False),
        (None, "2.6.0", False),
    ],
)
def test_both_are_of_one_release_that_was_run(torch, torch_npu, supported):
    assert is_supported(torch, torch_npu) is supported
    assert (pair_trouble(torch, torch_npu) is None) is supported


def test_another_version_is_told_which_ones_can():
    said = pair_trouble("2.1.0", "2.1.0.post17")
    assert said is not None
    assert said.startswith("torch 2.1.0 with torch_npu 2.1.0.post17 is not supported; supported: ")
    assert all(f"torch {version}.* with torch_npu {version}.*" in said for version in SUPPORTED)


def test_versions_are_listed_with_the_pythons_of_their_packages(capsys):
    assert main.run(["emulate", "--versions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines] == [["torch", v, "torch_npu", v] for v in SUPPORTED]
    assert all("3.11" in line for line in lines)
    assert not any("3.9" in line for line in lines)  # npumigrate's part of the program wants 3.10
