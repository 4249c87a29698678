"""The hooks, the GitHub action and the GitLab job, as far as they can be run here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.reading import write

ROOT = Path(__file__).parents[2]
CUDA = "import torch\n\ntorch.cuda.synchronize()\n"


def git(folder: Path, *arguments: str) -> str:
    identity = {f"GIT_{who}_{what}": "me" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **identity}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This project in a git repository of its own, as pre-commit wants it."""
    repository = tmp_path_factory.mktemp("hooks") / "npumigrate"
    repository.mkdir()
    for name in ("migrator", "rules", "api_db", "reports"):
        shutil.copytree(ROOT / name, repository / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, repository)
    git(repository, "init", "-q")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "all")
    return repository


def test_pre_commit(hooks: Path, tmp_path: Path) -> None:
    pytest.importorskip("pre_commit")
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    used = [{"id": "npumigrate-lint", "args": ["--version=2.6"]}, {"id": "npumigrate-fix"}]
    ours = {"repo": str(hooks), "rev": git(hooks, "rev-parse", "HEAD").strip(), "hooks": used}
    files = {
        ".pre-commit-config.yaml": yaml.safe_dump({"repos": [ours]}),
        "npumigrate.toml": 'exclude = ["left_out/"]\n',
        "clean.py": "x = 1\n",
    }
    write(project, {**files, **dict.fromkeys(("train.py", "left_out/old.py", "notes.txt"), CUDA)})
    git(project, "add", "-A")
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home"), "PIP_NO_COMPILE": "1"}
    environment.pop("PYTHONPATH", None)

    def run(hook: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", "run", hook, "--all-files", "--color=never"]
        return subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, timeout=900
        )

    linted = run("npumigrate-lint")
    assert linted.returncode == 1, linted.stderr
    assert "train.py:3:1" in linted.stdout
    assert "old.py" not in linted.stdout
    assert (project / "train.py").read_text() == CUDA
    fixed = run("npumigrate-fix")
    assert fixed.returncode == 1  # files were changed, as pre-commit says
    assert (project / "train.py").read_text() == "import torch\nimport torch_npu\n\ntorch.npu.synchronize()\n"
    assert (project / "left_out" / "old.py").read_text() == CUDA
    git(project, "add", "-A")
    assert run("npumigrate-lint").returncode == 0
    assert run("npumigrate-fix").returncode == 0


@pytest.fixture
def action(tmp_path: Path):
    """Runs the action's own step in the folder ``work``, with npumigrate as it is in this environment."""
    temp = tmp_path / "temp"
    program = temp / "npumigrate" / "bin" / "npumigrate"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m migrator "$@"\n')
    program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    step = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"][1]

    def run(**inputs: str):
        environment = {
            **os.environ,
            "RUNNER_TEMP": str(temp),
            "GITHUB_WORKSPACE": str(work),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
            "PYTHONPATH": str(ROOT),
        }
        for name, value in step["env"].items():
            default = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
            key = re.search(r"inputs\.([\w-]+)", value).group(1)
            environment[name] = inputs.get(key.replace("-", "_"), default[key]["default"])
        # As GitHub does for `shell: bash`.
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(bash, cwd=work, env=environment, capture_output=True, text=True)
        return done, (tmp_path / "output").read_text(), (tmp_path / "summary").read_text()

    return work, run


def test_github_action(action) -> None:
    work, run = action
    write(work, {"my src/train.py": CUDA, "other.py": CUDA})
    done, output, summary = run(paths="my src\n", torch_version="2.6", args="--select=NPU101\n")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error title=npumigrate (NPU101),file=my src/train.py,line=3,")
    assert output == "findings=1\n"
    assert "### npumigrate" in summary
    assert re.search(r"1\s+NPU101", summary)


def test_github_action_of_a_project_with_its_own_output_format(action) -> None:
    work, run = action
    write(work, {"train.py": CUDA, "npumigrate.toml": 'output-format = "sarif"\n'})
    _, output, summary = run(args="--select=NPU101\n")
    assert output == "findings=1\n"
    assert re.search(r"1\s+NPU101", summary)


def test_github_action_without_findings(action) -> None:
    work, run = action
    write(work, {"a.py": "x = 1\n"})
    done, output, _ = run()
    assert (done.returncode, done.stdout, output) == (0, "", "findings=0\n"), done.stderr


def test_github_action_of_wrong_use_fails(action) -> None:
    work, run = action
    write(work, {"train.py": CUDA})
    done, _, _ = run(torch_version="99")
    assert done.returncode == 2
    assert "unknown torch version '99'" in done.stderr


def test_gitlab_job(tmp_path: Path) -> None:
    """The job of docs/ci.md, without its installation."""
    page = (ROOT / "docs" / "ci.md").read_text()
    block = re.search(r"## GitLab\n\n```yaml\n(.*?)```", page, re.S).group(1)
    job = yaml.safe_load(block)["npumigrate"]
    (tmp_path / "train.py").write_text(CUDA)
    codes = []
    for line in job["script"]:
        if not line.startswith("pip "):
            command = line.replace("npumigrate", f'"{sys.executable}" -m migrator', 1)
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "CI_PROJECT_DIR": str(tmp_path)}
            codes.append(subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment).returncode)
    assert codes == [0, 1]
    report = json.loads((tmp_path / job["artifacts"]["reports"]["codequality"]).read_text())
    assert {item["location"]["path"] for item in report} == {"train.py"}


def test_the_hooks_of_the_page_exist() -> None:
    known = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    page = (ROOT / "docs" / "ci.md").read_text()
    assert set(re.findall(r"id: ([\w-]+)", page)) <= known == {"npumigrate-lint", "npumigrate-fix"}
