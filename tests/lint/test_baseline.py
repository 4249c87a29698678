"""Known findings, and findings on changed lines."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.lint.conftest import TRAIN
from tests.reading import write


def git(*arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.email=a@b.c", "-c", "user.name=n", *arguments], check=True, capture_output=True
    )


def commit(folder: str = ".") -> None:
    """Commit all of a folder, in a repository of its own."""
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        git("-C", folder, *command)


@pytest.fixture
def repository(tmp_path, lint, train):
    (tmp_path / ".gitignore").write_text(".npumigrate_cache\n")
    commit()
    return tmp_path


def test_baseline_lets_only_new_findings_through(lint, train, tmp_path) -> None:
    assert lint("--write-baseline", "known.json").out == "Wrote 3 findings to known.json.\n"
    answer = lint("--baseline", "known.json")
    assert (answer.code, answer.out) == (
        0,
        "All checks passed!\n3 findings left out (listed in known.json).\n",
    )
    train.write_text("'''moved'''\n\n" + TRAIN.replace("torch.cuda.s", "if x:\n    torch.cuda.s"))
    assert lint("--baseline", "known.json").code == 0
    train.write_text(TRAIN + "torch.cuda.synchronize()\n")
    found = lint("--baseline", "known.json", "--output-format=json")
    assert (found.code, found.places()) == (1, [("NPU101", 5, 1)])


def test_a_baseline_that_is_too_large_is_told(lint, train, tmp_path) -> None:
    other = tmp_path / "other.py"
    other.write_text("import torch\ntorch.cuda.init()\n")
    lint("--write-baseline", "known.json")
    train.write_text(TRAIN.replace("torch.cuda.synchronize()\n", ""))
    assert "1 finding in known.json no longer occurs" in lint("--baseline", "known.json").out
    assert "gone" not in lint("other.py", "--baseline", "known.json").out
    other.unlink()
    assert "3 findings in known.json no longer occur" in lint("--baseline", "known.json").out


def test_what_was_not_looked_for_is_not_gone(lint, train, tmp_path) -> None:
    train.write_text(TRAIN + "torch.backends.cudnn.benchmark = True\n")  # of the severity info
    lint("--write-baseline", "known.json")
    for arguments in (
        ("--severity=error",),
        ("--select=NPU101",),
        ("--ignore=NPU513",),
        ("--per-file-ignores=train.py:NPU5",),
    ):
        assert "gone" not in lint("--baseline=known.json", *arguments).out
    assert "gone" not in lint("--baseline=known.json", "--exclude=train.py").out
    train.write_text(train.read_text() + "def f(:\n")
    assert "gone" not in lint("--baseline=known.json").out
    train.write_text(TRAIN)
    assert "1 finding in known.json no longer occurs" in lint("--baseline=known.json", "--severity=error").out


def test_known_findings_are_not_fixed(lint, train) -> None:
    lint("--write-baseline", "known.json")
    train.write_text(TRAIN + "torch.cuda.empty_cache()\n")
    assert lint("--baseline", "known.json", "--fix").code == 0
    assert "torch.cuda.synchronize()\ntorch.npu.empty_cache()\n" in train.read_text()


def test_bad_baselines(lint, train, tmp_path) -> None:
    for content in ("no json", "[]", '{"format": 7}'):
        (tmp_path / "known.json").write_text(content)
        answer = lint("--baseline", "known.json")
        assert answer.code == 2
        assert answer.err.count("\n") == 1
        assert "--write-baseline" in answer.err
    assert lint("--baseline", "absent.json").code == 2


def test_baseline_from_the_configuration_and_another_folder(lint, train, tmp_path, monkeypatch) -> None:
    lint("--write-baseline", "known.json")
    (tmp_path / "npumigrate.toml").write_text('baseline = "known.json"\n')
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert lint("..").code == 0


def test_diff_base(lint, repository, monkeypatch) -> None:
    train = repository / "train.py"
    assert lint("--diff-base", "HEAD").code == 0
    train.write_text("# a\n" + TRAIN.replace("torch.cuda.s", "y = 1; torch.cuda.s"))
    (repository / "new file.py").write_text("import torch\ntorch.cuda.init()\n")
    found = lint("--diff-base=HEAD", "--output-format=json", "--select=NPU1")
    assert found.places() == [("NPU101", 2, 1), ("NPU101", 5, 8)]
    (repository / "sub").mkdir()
    monkeypatch.chdir(repository / "sub")
    assert len(lint("..", "--diff-base=HEAD", "--output-format=json", "--select=NPU1").json()) == 2


def test_diff_base_knows_renamed_files_and_odd_lines(lint, repository) -> None:
    git("mv", "train.py", "träin.py")
    renamed = repository / "träin.py"
    renamed.write_text(TRAIN + "x = '''\n++ b/train.py\n@@ -1 +1 @@\n'''\ntorch.cuda.init()\n")
    found = lint("--diff-base=HEAD", "--output-format=json")
    assert found.places() == [("NPU101", 9, 1)]


def test_diff_base_calls_new_what_git_does_not_know(lint, repository) -> None:
    (repository / ".gitignore").write_text("ignored.py\n.npumigrate_cache\n")
    (repository / "ignored.py").write_text(TRAIN)
    write(repository, {"inner/other.py": TRAIN})
    commit("inner")
    assert lint("--diff-base=HEAD", "--select=NPU101", "ignored.py").code == 1
    assert lint("--diff-base=HEAD", "--select=NPU101", "inner").code == 1
    assert lint("--diff-base=HEAD", "train.py").code == 0


def test_diff_base_in_a_submodule(lint, repository) -> None:
    write(repository, {"sub/train.py": "x = 1\n" * 9 + TRAIN})
    commit("sub")
    git("add", "sub")
    git("commit", "-qm", "two")
    assert lint("--diff-base=HEAD").code == 0
    (repository / "sub" / "train.py").write_text("x = 1\n" * 9 + TRAIN + "torch.cuda.init()\n")
    found = lint("--diff-base=HEAD", "--output-format=json")
    assert found.places() == [("NPU101", 14, 1)]


def test_diff_base_of_a_new_submodule_and_a_changed_one(lint, repository) -> None:
    for name in ("new", "sub"):
        write(repository, {f"{name}/a.py": "import torch\ntorch.cuda.init()\n"})
        commit(name)
    git("add", "sub")
    git("commit", "-qm", "two")
    (repository / "sub" / "a.py").write_text("import torch\ntorch.cuda.init()\ntorch.cuda.init()\n")
    git("-C", "sub", "commit", "-qam", "more")
    git("add", "sub", "new")
    found = lint("--diff-base=HEAD", "--output-format=json", "--select=NPU101")
    assert [(Path(item["filename"]).parent.name, item["location"]["row"]) for item in found.json()] == [
        ("new", 2),
        ("sub", 3),
    ]


def test_diff_base_runs_nothing_of_the_tree(lint, repository, monkeypatch) -> None:
    write(repository, {"sub/a.py": "import torch\n"})
    for folder in ("sub", "."):
        commit(folder)
        ran = f"touch '{repository / 'ran'}'; cat"
        hook = repository / folder / ".git" / "hooks" / "post-index-change"
        hook.write_text(f"#!/bin/sh\n{ran}\n")
        hook.chmod(0o755)
        more = repository / folder / ".git" / "more"
        git("config", "--file", str(more), "filter.three.x.clean", ran)
        for key in (
            *("core.fsmonitor", "core.pager", "pager.diff", "diff.external", "core.sshCommand"),
            *("filter.one.clean", "filter.one.smudge", "filter.two.process"),
            *("diff.one.command", "diff.one.textconv", "diff.submodule", "core.askPass", "credential.helper"),
        ):
            git("-C", folder, "config", key, ran if key != "diff.submodule" else "diff")
        git("-C", folder, "config", "include.path", "more")
        git("-C", folder, "config", "filter.one.required", "true")
        (repository / folder / ".git" / "info" / "attributes").write_text(
            "a.py filter=one diff=one\ntrain.py filter=two diff=one\nb.py filter=three.x\n"
        )
    text = "import torch\ntorch.cuda.init()\n"
    files = {"b.py": text, "sub/a.py": text, "train.py": TRAIN + "torch.cuda.init()\n"}
    write(repository, {**files, "git": f"#!/bin/sh\n{ran}\n"})
    (repository / "git").chmod(0o755)
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", f".:{path}")
    found = lint("--diff-base=HEAD", "--output-format=json", "--select=NPU101")
    monkeypatch.setenv("PATH", path)
    assert not (repository / "ran").exists()
    assert found.err == ""
    assert len(found.json()) == 3
    git("config", "filter.a=b.clean", ran)
    answer = lint("--diff-base=HEAD")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert not (repository / "ran").exists()


def test_diff_base_fetches_nothing(lint, repository) -> None:
    """A repository that promises to fetch what it lacks, with a command of its own."""
    ran = repository / "ran"
    git("config", "core.repositoryFormatVersion", "1")
    git("config", "extensions.partialClone", "origin")
    git("config", "remote.origin.url", f"ext::touch {ran}")
    git("config", "remote.origin.promisor", "true")
    git("config", "protocol.ext.allow", "always")
    (repository / "train.py").write_text(TRAIN + "torch.cuda.init()\n")
    for file in (repository / ".git" / "objects").rglob("*"):
        name = file.parent.name + file.name
        if file.is_file() and subprocess.check_output(["git", "cat-file", "-t", name]) == b"blob\n":
            file.unlink()
    answer = lint("--diff-base=HEAD")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert not ran.exists()


def test_diff_base_whatever_git_is_told_of_diffs(lint, repository) -> None:
    (repository / "gap.py").write_text(TRAIN + "x = 1\n" + TRAIN)
    commit()
    (repository / "gap.py").write_text("# a\n" + TRAIN + "x = 1\n" + TRAIN + "torch.cuda.init()\n")
    (repository / ".gitattributes").write_text("*.py binary\n")
    for setting in ("diff.interHunkContext=50", "diff.noprefix=true", "color.ui=always"):
        git("config", *setting.split("="))
    found = lint("--diff-base=HEAD", "--output-format=json")
    assert found.places() == [("NPU101", 11, 1)]


def test_only_changed_lines_are_fixed(lint, repository) -> None:
    train = repository / "train.py"
    train.write_text(TRAIN + "torch.cuda.init()\n")
    lint("--diff-base=HEAD", "--fix")
    assert train.read_text().endswith("torch.cuda.synchronize()\ntorch.npu.init()\n")


def test_diff_base_that_cannot_be(lint, repository, monkeypatch) -> None:
    for revision in ("", "nothing", "-x", "HEAD:train.py", "HEAD^{tree}", "HEAD..HEAD", "main...HEAD"):
        answer = lint(f"--diff-base={revision}")
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.count("\n") == 1
    monkeypatch.setenv("PATH", "")
    assert "--diff-base needs git" in lint("--diff-base=HEAD").err
