"""Which imports mean a package of the project itself."""

from __future__ import annotations

import pytest

from migrator.project.module_names import packages_of
from migrator.project.project import Project

FILES = (
    "apex/__init__.py",
    "apex/amp/__init__.py",
    "triton/kernels.py",
    "src/cupy/fft.py",
    "train.py",
    "a/b.txt",
)


def test_packages() -> None:
    assert packages_of(FILES) == {"apex", "triton/kernels", "src/cupy/fft", "train"}


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        ("apex", "train.py", True),
        ("apex.amp", "tools/x.py", True),
        ("triton.kernels", "train.py", True),
        ("triton.kernels.matmul", "tools/deep/x.py", True),
        ("triton", "train.py", False),  # a folder of scripts does not take the place of a library
        ("triton.language", "train.py", False),
        ("cupy.fft", "train.py", True),
        ("cupy.linalg", "train.py", False),
        ("train.model", "tools/x.py", True),
    ],
)
def test_owns(name: str, file: str, expected: bool) -> None:
    assert Project(packages=packages_of(FILES)).owns(name, file) is expected
