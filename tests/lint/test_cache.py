"""The cache: never a stale answer, and never a reason to fail."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.lint import CHANGED
from migrator.data_folders import data_folder
from migrator.lint import file
from migrator.matchers import packs
from migrator.matchers.packs import Rule
from migrator.run import cache, loading
from tests.lint.conftest import TRAIN
from tests.reading import write

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(cache.__file__).parents[2])}
OWN = "- {{code: ACME101, name: a, summary: s, kind: name, match: {}, fix: none}}\n"
# As npumigrate names what lies in its cache.
PLACES = (
    *(".npumigrate_cache", ".npumigrate_cache/.gitignore", ".npumigrate_cache/CACHEDIR.TAG"),
    *(".npumigrate_cache/lint-{}.sqlite", ".npumigrate_cache/lint-{}.sqlite-journal", "linked"),
)


@pytest.fixture
def looked_at(monkeypatch) -> list[str]:
    """The names of the files that the engine was asked about."""
    names: list[str] = []
    original = file.check

    def noted(document, *rest, **named):
        names.append(document.name)
        return original(document, *rest, **named)

    monkeypatch.setattr(file, "check", noted)
    return names


def test_a_second_run_asks_no_engine(lint, train, looked_at) -> None:
    first = lint("--output-format=json")
    assert looked_at == ["train.py"]
    assert lint("--output-format=json") == first
    assert looked_at == ["train.py"]
    lint("--no-cache")
    assert looked_at == ["train.py"] * 2


def test_what_decides_a_finding_is_in_the_key(lint, train, looked_at, tmp_path) -> None:
    def again(*arguments: str, **options) -> bool:
        before = len(looked_at)
        lint(*arguments, **options)
        return len(looked_at) > before

    assert again()
    assert not again()
    assert again(version="2.1")
    assert again("--select=NPU1")
    assert again("--per-file-ignores=train.py:NPU1")
    assert again("--ignore-noqa")
    train.write_text(TRAIN + "\n")
    os.utime(train, ns=(0, 0))
    assert again()
    write(tmp_path, {"own.yaml": OWN.format("acme.cuda.*")})
    assert again("--rules=own.yaml")
    assert not again("--rules=own.yaml")
    write(tmp_path, {"own.yaml": OWN.format("torch.zeros")})
    assert "ACME101" in lint("--rules=own.yaml", "--output-format=concise").out


def test_another_file_that_decides_is_in_the_key(lint, tmp_path) -> None:
    (tmp_path / "use.py").write_text("from box import Box\n\n\ndef f(box: Box):\n    return box.cuda()\n")
    (tmp_path / "box.py").write_text("class Box:\n    pass\n")
    assert "NPU111 [*]" in lint("--output-format=concise").out
    (tmp_path / "box.py").write_text("class Box:\n    def cuda(self):\n        return 'a label'\n")
    cached = lint("--output-format=concise").out
    assert cached == lint("--output-format=concise", "--no-cache").out
    assert "NPU111 [*]" not in cached


def test_a_package_of_the_project_is_in_the_key(lint, tmp_path) -> None:
    (tmp_path / "use.py").write_text("import flash_attn\n")
    assert [item["code"] for item in lint("--output-format=json").json()] == ["NPU603"]
    write(tmp_path, {"flash_attn/__init__.py": ""})
    assert lint("--output-format=json").json() == []


def test_a_file_that_changes_while_it_is_looked_at(lint, train, monkeypatch) -> None:
    expected = lint("--output-format=json", "--no-cache").out
    read = loading.Loader.key

    def changed(self):
        key = read(self)
        train.write_text("x = 1\n")
        return key

    monkeypatch.setattr(loading.Loader, "key", changed)
    assert lint("--output-format=json").json() == []
    monkeypatch.setattr(loading.Loader, "key", read)
    train.write_text(TRAIN)
    assert lint("--output-format=json").out == expected
    train.write_text("x = 1\n")
    assert lint("--output-format=json").json() == []


def test_a_file_that_changes_while_it_tells_the_others(lint, tmp_path, monkeypatch) -> None:
    (tmp_path / "use.py").write_text("from own import Runner\n\nimport torch\n\nRunner().cuda()\n")
    own, plain = tmp_path / "own.py", "class Runner:\n    def cuda(self):\n        return 1\n"
    own.write_text(plain)
    expected = lint("--output-format=json", "--no-cache").out
    spread = loading.spread

    def changed(*arguments):
        own.write_text("class Runner:\n    def cuda(self):\n        return torch.ones(1)\n")
        return spread(*arguments)

    monkeypatch.setattr(loading, "spread", changed)
    assert lint("--output-format=json").out != expected
    monkeypatch.setattr(loading, "spread", spread)
    own.write_text(plain)
    assert lint("--output-format=json").out == expected


def test_another_version_of_the_tool_does_not_see_it(lint, train, looked_at, monkeypatch) -> None:
    lint()
    monkeypatch.setattr(cache, "__version__", "99")
    lint()
    assert looked_at == ["train.py"] * 2


def test_broken_locked_and_missing_caches(lint, train, tmp_path) -> None:
    expected = lint("--output-format=json").out
    file = next((tmp_path / cache.FOLDER).glob("*.sqlite"))
    for content in (b"", b"nothing of the kind" * 999, file.read_bytes()[:5000]):
        file.write_bytes(content)
        assert lint("--output-format=json").out == expected
        assert lint("--output-format=json").out == expected
    assert (tmp_path / cache.FOLDER / ".gitignore").read_text() == "*\n"
    assert (tmp_path / cache.FOLDER / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789")
    (tmp_path / "file").write_text("")
    assert lint("--output-format=json", "--cache-dir", "file/x").out == expected


def test_runs_at_the_same_time(tmp_path) -> None:
    for number in range(30):
        (tmp_path / f"f{number}.py").write_text(f"import torch\nx{number} = torch.cuda.is_available()\n")
    command = [sys.executable, "-m", "migrator", "lint", "-v2.6", "--output-format=concise", "-j2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    runs = [subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, **pipes) for _ in range(3)]
    answers = {(run.communicate(), run.returncode) for run in runs}
    assert len(answers) == 1
    assert {code for _, code in answers} == {1}


def test_rule_packs_come_from_the_cache(lint, train, looked_at, monkeypatch, tmp_path) -> None:
    def not_again(path: Path) -> list[Rule]:
        raise AssertionError(f"{path} is read as YAML again")

    rule = "- {{code: ACME101, name: a, summary: s, kind: name, match: torch.{}, fix: none, options: {}}}\n"
    own = tmp_path / "own.yaml"
    own.write_text(rule.format("zeros", "{only_called: true, file_has: torch}"))
    lint("--rules=own.yaml")
    monkeypatch.setattr(packs, "load", not_again)
    train.write_text(TRAIN + "\n")
    first = lint("--rules=own.yaml", "--output-format=sarif").out
    assert "ACME101" in first
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert first == lint("--rules=own.yaml", "--output-format=sarif", "--no-cache").out
    own.write_text(rule.format("ones", "{}"))
    assert "ACME101" not in lint("--rules=own.yaml", "--output-format=json").out
    own.write_text(rule.format("zeros", "{since: 2024-05-01}"))
    for text in (TRAIN, TRAIN + "\n\n"):  # a pack that is wrong is not kept
        train.write_text(text)
        assert "own.yaml:1: unknown option 'since'" in lint("--rules=own.yaml").err
    own.write_text("- {code: ACME101}\n")
    assert "own.yaml:1: the field 'name' is missing" in lint("--rules=own.yaml").err


def test_the_tables_in_force_are_in_the_key(tmp_path) -> None:
    file = tmp_path / "file.py"
    file.write_text("import torch\n\nx = torch.heaviside(a, b)\n")
    other = tmp_path / "db"
    shutil.copytree(data_folder("api_db"), other)
    table = other / "api_support.csv"
    rows = table.read_bytes().splitlines(keepends=True)
    table.write_bytes(b"".join(row for row in rows if b"heaviside" not in row))

    def codes(*arguments: str, **variables: str) -> list[str]:
        command = [sys.executable, "-m", "migrator", "lint", "-v2.6", "--output-format=json", *arguments]
        environment = {**ENVIRONMENT, **variables}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
        return [item["code"] for item in json.loads(done.stdout)]

    assert codes() == ["NPU501"]
    assert codes(NPUMIGRATE_API_DB=str(other)) == ["NPU502"] == codes("-n", NPUMIGRATE_API_DB=str(other))
    assert codes() == ["NPU501"]


def test_a_changed_file_needs_no_more_than_the_engine(train, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    heavy = {"yaml", "libcst", "pandas", "jedi", "rich", "logging", "migrator.native.functions"}
    assert loaded_by_lint(heavy) == "['yaml']\n"
    for text in (TRAIN + "\n", CHANGED):  # with an added argument and moved imports
        train.write_text(text)
        assert loaded_by_lint(heavy) == "[]\n"


def test_only_the_standard_library_is_loaded_for_a_warm_run(lint, train) -> None:
    lint()
    heavy = {"yaml", "libcst", "pandas", "jedi", "rich", "migrator.core.rules", "migrator.lint.fixing"}
    assert loaded_by_lint(heavy) == "[]\n"


def loaded_by_lint(modules: set[str]) -> str:
    """Which of the modules a process loads that lints the current folder."""
    code = (
        "import sys; from migrator.cli.start import run; sys.argv[1:] = ['lint', '-v2.6']; run();"
        f"print(sorted({modules} & set(sys.modules)), file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True).stderr


@pytest.mark.parametrize("folder", [".", "sub", "new", ".npumigrate_cache"])
def test_a_cache_has_a_folder_of_its_own(lint, train, looked_at, tmp_path, folder) -> None:
    write(tmp_path, {"sub/b.py": TRAIN, "pyproject.toml": f'[tool.npumigrate]\ncache-dir = "{folder}"\n'})
    answers = [lint().out for _ in range(3)]
    assert answers == answers[:1] * 3
    assert sorted(looked_at) == ["pyproject.toml", "sub/b.py", "train.py"]  # once: there is a cache
    outside = [path for path in tmp_path.rglob("*") if folder != "new" and cache.FOLDER not in path.parts]
    assert sorted(path.name for path in outside) == sorted(
        [] if folder == "new" else ["b.py", "pyproject.toml", "sub", "train.py"]
    )
    if folder == "new":
        assert (tmp_path / "new" / ".gitignore").exists()


@pytest.mark.parametrize("link", PLACES)
@pytest.mark.parametrize("there", [True, False])
def test_no_link_leads_a_cache_out_of_the_project(lint, train, tmp_path, link, there) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    target = outside / "target"
    if there:
        target.mkdir() if "/" not in link else target.write_text("mine")
    place = tmp_path / link.format(cache.tool_digest()[:20])
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(target)
    if link == "linked":
        (tmp_path / "pyproject.toml").write_text('[tool.npumigrate]\ncache-dir = "linked/cache"\n')
    for _ in range(2):
        answer = lint()
        assert (answer.code, answer.err) == (1, "")
        assert [path.name for path in outside.rglob("*")] == (["target"] if there else [])
        assert not target.is_file() or target.read_text() == "mine"


WRONG = ["", "[" * 3000, *'[0] {} 5 null "x" [[]] [[1,2],3] [[[[]],[[]]]] [["NPU1",{}]] no'.split()]


@pytest.mark.parametrize("marked", [True, False])  # as npumigrate writes a row, and as a person edits it
@pytest.mark.parametrize("text", WRONG)
def test_rows_of_a_wrong_shape_are_made_again(lint, train, tmp_path, text, marked) -> None:
    (tmp_path / "box.py").write_text(
        "import torch\nclass Box(Base):\n    def cuda(self):\n        return 1\n"
    )
    first = lint("--output-format=json")
    (store,) = (tmp_path / cache.FOLDER).rglob("*.sqlite")
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        for (key,) in database.execute("SELECT key FROM entry").fetchall():
            value = cache._mark(key, text) + text if marked else text
            database.execute("UPDATE entry SET value = ? WHERE key = ?", (value, key))
    for content in (TRAIN, TRAIN + "\n"):
        train.write_text(content)
        again = lint("--output-format=json")
        assert again.err == first.err
        assert again.code == first.code
        assert json.loads(again.out)
