"""What a file's name tells of it."""

from __future__ import annotations

import pytest

from migrator.files.document import is_of_ci


@pytest.mark.parametrize(
    "name",
    [".github/workflows/test.yml", "app/.circleci/config.yml", ".gitlab-ci.yml", "ci/azure-pipelines.yml"],
)
def test_files_of_ci_systems(name: str) -> None:
    assert is_of_ci(name)


@pytest.mark.parametrize("name", ["conf/train.yaml", "github/workflows/test.yml", "docker-compose.yml"])
def test_files_of_programs(name: str) -> None:
    assert not is_of_ci(name)
