"""The workflows: what they use is pinned, they may do little, and a wrong release is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reading import write

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def workflow(name: str) -> Any:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_and_rights_are_given_job_by_job(file: Path) -> None:
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert content["permissions"] == {}
    steps = [step for job in content["jobs"].values() for step in job["steps"]]
    assert steps
    used = [step["uses"] for step in steps if "uses" in step]
    assert [use for use in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", use)] == []
    # An expression in a script would put what a tag or a branch is called into it.
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []


def test_only_a_tag_is_published_after_all_checks() -> None:
    jobs = workflow("release.yml")["jobs"]
    assert jobs["publish"]["if"] == "github.ref_type == 'tag'"
    assert jobs["publish"]["needs"] == ["build", "try"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert [name for name, job in jobs.items() if "id-token" in job.get("permissions", {})] == ["publish"]


def test_each_python_of_the_classifiers_is_tried() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    declared = set(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text))
    assert declared
    assert declared <= set(workflow("release.yml")["jobs"]["try"]["strategy"]["matrix"]["python"])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of a checkout as the release script looks at before it builds."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "release", tmp_path / ".ci")
    files = {"migrator/__init__.py": '__version__ = "1.2.3"\n', ".gitignore": "__pycache__/\n"}
    write(tmp_path, {**files, "CHANGELOG.md": "# Changelog\n\n## [1.2.2]\n"})
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for arguments in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.skipif(shutil.which("bash") is None, reason="the script is for bash")
@pytest.mark.parametrize(
    ("tag", "said"),
    [
        ("v1.2.4", "the tag v1.2.4 is not the version 1.2.3"),
        ("v1.2.3", "CHANGELOG.md has no part 1.2.3"),
        ("", "the checkout has changes that are not committed"),
    ],
)
def test_a_release_of_something_else_is_refused(checkout: Path, tag: str, said: str) -> None:
    if not tag:
        (checkout / "new.py").write_text("")
    command = ["bash", ".ci/release", *([tag] if tag else [])]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=900)
    assert (done.returncode, done.stderr) == (1, f"{said}\n")
    assert not (checkout / "dist").exists()
