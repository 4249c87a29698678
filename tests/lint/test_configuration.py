"""Configuration files, files to lint."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from migrator.lint.options import KEYS, Options
from tests.reading import write
from tools.lint_documents import PAGE, SCHEMA, page_text, schema_text

USE = "import torch\ntorch.cuda.init()\nx = torch.zeros(1).cuda()\n"


def found(answer) -> list[tuple[str, str]]:
    return [(Path(item["filename"]).name, item["code"]) for item in answer.json()]


def test_the_nearest_file_wins_and_the_command_line_beats_it(lint, tmp_path) -> None:
    files = {"a/a.py": USE, "b/b.py": USE, "b/c/c.py": USE, "b/c/pyproject.toml": "[tool.other]\n"}
    own = '[tool.npumigrate]\nselect = ["NPU101"]\n'
    write(tmp_path, {**files, "pyproject.toml": own, "b/npumigrate.toml": 'select = ["NPU111"]\n'})
    assert found(lint("--output-format=json")) == [("a.py", "NPU101"), ("b.py", "NPU111"), ("c.py", "NPU111")]
    assert {code for _, code in found(lint("--output-format=json", "--select=NPU101,NPU9"))} == {
        "NPU101",
        "NPU901",
    }
    assert len(found(lint("--output-format=json", "--isolated"))) == 9
    assert len(found(lint("--output-format=json", "--config=select=['NPU1']"))) == 6
    assert len(found(lint("--output-format=json", "--config", "b/npumigrate.toml"))) == 3


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('[tool."npumigrate"]\nselect = ["NPU111"]\n', {"NPU111"}),
        ('[tool]\nnpumigrate.select = ["NPU111"]\n', {"NPU111"}),
        ('\ufeff[tool.npumigrate]\nselect = ["NPU111"]\n', {"NPU111"}),
        ('[project]\nname = "npumigrate"\n[tool.other]\n# tool.npumigrate\n', {"NPU101"}),
    ],
)
def test_the_table_of_a_pyproject_file(lint, tmp_path, text: str, codes: set[str]) -> None:
    files = {"sub/a.py": USE, "npumigrate.toml": 'select = ["NPU101"]\n', "sub/pyproject.toml": text}
    write(tmp_path, files)
    assert {code for _, code in found(lint("--output-format=json"))} == codes


@pytest.mark.parametrize("text", ["tool = 3  # npumigrate", "[[tool]]", "[tool]\nnpumigrate = 3"])
def test_a_pyproject_file_without_the_table(lint, tmp_path, text: str) -> None:
    (tmp_path / "a.py").write_text(USE)
    (tmp_path / "pyproject.toml").write_text(text + "\n")
    answer = lint("--config=pyproject.toml")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.endswith("pyproject.toml [tool.npumigrate]: must be a table\n")
    assert lint("--config=absent.toml").err.count("\n") == 1


def test_a_file_may_build_on_another(lint, tmp_path) -> None:
    ignored = '[tool.npumigrate.per-file-ignores]\n"a/b/*" = ["NPU101"]\n'
    files = {
        "a/a.py": USE,
        "a/b/b.py": USE,
        "pyproject.toml": f'[tool.npumigrate]\nignore = ["NPU9"]\n{ignored}',
        "a/npumigrate.toml": 'extend = "../pyproject.toml"\nseverity = "error"\n',
        "a/b/shared.toml": 'extend = "../npumigrate.toml"\nversion = "2.1"\n',
        "a/b/npumigrate.toml": 'extend = "shared.toml"\n',
    }
    write(tmp_path, files)
    answer = lint("--output-format=json", version="")
    assert found(answer) == [("a.py", "NPU101"), ("a.py", "NPU111"), ("b.py", "NPU111")]
    assert 'version = "2.1.0"\n' in lint("--show-settings", "a/b", version="").out
    (tmp_path / "a" / "b" / "shared.toml").write_text('extend = "npumigrate.toml"\n')
    answer = lint("--output-format=json", "a/b")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "circular extend: " in answer.err
    assert "extend belongs in configuration files" in lint("--config=extend='a/npumigrate.toml'").err


def test_overrides_and_per_file_ignores(lint, tmp_path) -> None:
    write(tmp_path, {"old/a.py": USE, "b.py": USE})
    (tmp_path / "npumigrate.toml").write_text(
        'select = ["NPU1"]\n[per-file-ignores]\n"b.py" = ["NPU101"]\n'
        '[[overrides]]\npaths = ["old/**"]\nselect = ["NPU101"]\n'
    )
    assert found(lint("--output-format=json", version="")) == [("b.py", "NPU111"), ("a.py", "NPU101")]
    more = lint("--output-format=json", "--extend-per-file-ignores=old/*:NPU101,c.py:ALL", version="")
    assert found(more) == [("b.py", "NPU111")]
    instead = lint("--output-format=json", "--per-file-ignores=old/*:NPU101", version="")
    assert found(instead) == [("b.py", "NPU101"), ("b.py", "NPU111")]
    wrong = lint("--extend-per-file-ignores=old/*")
    assert "--extend-per-file-ignores old/*: must be GLOB:RULES" in wrong.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("selct = ['NPU1']", "unknown key 'selct'; did you mean 'select'?"),
        ("select = 'NPU1'", "select is 'NPU1' and must be a list of strings"),
        ("severity = 'grave'", "severity is 'grave' and must be blocker | error | warning | info"),
        ("version = 2.6", "version is 2.6 and must be a string in quotes"),
        ("select = [", "not TOML"),
        ("fix = 'yes'", "fix is 'yes' and must be true or false"),
        ("[[overrides]]\npaths = ['a']\nfix = true", "overrides: unknown key 'fix'"),
        ("[[overrides]]\nselect = ['NPU1']", "overrides.paths"),
        (
            "[tool.npumigrate]\nfix = true",
            "[tool.npumigrate] belongs in pyproject.toml: put its keys at the top level here",
        ),
        ("extend = 'absent.toml'", "absent.toml: no such file or folder"),
        ("extend = ['../a.toml']", "extend is ['../a.toml'] and must be a path"),
        ("baseline = ''", "baseline is '' and must be a path"),
        ("hw = 'a2'", "did you mean 'A2'?"),
        ("select = ['NPU7777']", "unknown rule 'NPU7777'"),
        ("select = ['npu10']", "unknown rule 'npu10'; did you mean NPU10?"),
        ("select = ['all']", "unknown rule 'all'; did you mean ALL?"),
        ("ignore = ['cuda-module']", "unknown rule 'cuda-module'; did you mean NPU101?"),
        ("version = '9.9'", "unknown torch version '9.9'"),
        ("per-file-ignores = {'a.py' = ['NPU7777']}", "unknown rule 'NPU7777'"),
        ("per-file-ignores = {'![z-a]' = ['NPU1']}", "per-file-ignores: [z-a]: bad character range z-a"),
        ("exclude = ['[z-a]']", "exclude: [z-a]: bad character range z-a: correct the pattern"),
        ("[[overrides]]\npaths = ['[z-a]']", "overrides.paths: [z-a]: bad character range z-a"),
    ],
)
def test_bad_configuration_is_one_line_and_the_rest_is_linted(lint, tmp_path, text: str, words: str) -> None:
    write(tmp_path, {"a.py": USE, "bad/b.py": USE, "bad/npumigrate.toml": text + "\n"})
    answer = lint("--output-format=json", version="")
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert words in answer.err
    assert "npumigrate.toml" in answer.err
    assert {name for name, _ in found(answer)} == {"a.py"}


def test_the_file_is_blamed_only_for_what_it_says(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text(USE)
    (tmp_path / "npumigrate.toml").write_text("select = ['NPU7777']\n")
    assert "npumigrate.toml: unknown rule 'NPU7777'" in lint().err
    assert lint("--select=NPU8888").err.startswith("npumigrate: unknown rule 'NPU8888'")
    assert lint(version="9.9").err.startswith("npumigrate: unknown torch version '9.9'")
    (tmp_path / "npumigrate.toml").write_text("version = '9.9'\n")
    assert "npumigrate.toml: unknown torch version '9.9'" in lint("--select=NPU1", version="").err


def test_which_files(lint, tmp_path) -> None:
    names = ("a.py", "b.pyi", "c.txt", "build/d.py", "sub/e.py", "sub/gen/f.py", "env/g.py")
    others = {"n.ipynb": '{"cells": []}', "env/pyvenv.cfg": "", "sub/.gitignore": "gen/\n*.log\n"}
    write(tmp_path, {**dict.fromkeys(names, USE), **others, "script": "#!/usr/bin/env python\n" + USE})

    def listed(*arguments: str) -> list[str]:
        lines = lint("--show-files", *arguments).out.splitlines()
        return [str(Path(line).relative_to(tmp_path)) for line in lines]

    assert listed() == ["a.py", "b.pyi", "n.ipynb", "script", "sub/e.py"]
    assert listed("--no-respect-gitignore")[-1] == "sub/gen/f.py"
    assert listed("--exclude", "*.pyi,sub") == ["a.py", "n.ipynb", "script", "build/d.py"]
    assert listed("--extend-exclude", "*.pyi,sub/") == ["a.py", "n.ipynb", "script"]
    (tmp_path / "npumigrate.toml").write_text('extend-exclude = ["sub"]\n')
    assert listed("--extend-exclude=*.pyi") == ["a.py", "n.ipynb", "script"]
    (tmp_path / "npumigrate.toml").unlink()
    assert listed("--exclude", f"{tmp_path}/sub,*.p*,n*") == ["script"]
    assert listed("build/d.py", "c.txt", "a.py", "./a.py") == ["build/d.py", "c.txt", "a.py"]
    assert listed("build/d.py", "a.py", "--force-exclude") == ["a.py"]


def test_gitignore_of_the_repository_counts_in_subfolders(lint, tmp_path, monkeypatch) -> None:
    (tmp_path / ".git").mkdir()
    names = ("sub/keep.py", "sub/drop.py", "sub/top.py")
    write(tmp_path, {".gitignore": "*.py\n!keep.py\n/sub/top.py\n", **dict.fromkeys(names, USE)})
    monkeypatch.chdir(tmp_path / "sub")
    assert [Path(line).name for line in lint("--show-files").out.splitlines()] == ["keep.py"]


def test_a_gitignore_line_that_is_no_pattern_is_left_out(lint, tmp_path) -> None:
    write(tmp_path, {".gitignore": "!\n[z-a]\n\\\ndrop.py\n", "keep.py": USE, "drop.py": USE})
    assert [Path(line).name for line in lint("--show-files").out.splitlines()] == ["keep.py"]


def test_show_settings(lint, tmp_path) -> None:
    (tmp_path / "a.py").write_text(USE)
    (tmp_path / "npumigrate.toml").write_text('select = ["NPU1"]\n')
    out = lint("--show-settings").out
    assert f"# from {tmp_path / 'npumigrate.toml'}\n" in out
    assert 'version = "2.6.0"\n' in out
    assert 'select = ["NPU1"]\n' in out


def test_the_schema_is_what_the_code_takes() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), "run python tools/lint_documents.py"
    schema = json.loads(schema_text())
    assert set(schema["properties"]) == set(KEYS)
    assert schema["additionalProperties"] is False


def test_every_key_is_in_the_documentation() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [key for key in KEYS if f"`{key}`" not in text] == []
    assert text == page_text(), "run python tools/lint_documents.py"


def test_the_code_holds_what_the_table_of_options_has() -> None:
    held = {name.replace("_", "-") for name in Options._fields}
    told_otherwise = {"extend", "extend-per-file-ignores"}  # they end up in other keys
    assert held - {"root", "origin", "extended", "given", "version-why"} == KEYS.keys() - told_otherwise


@pytest.mark.parametrize(
    ("config", "arguments", "codes"),
    [
        ("", ["--select=NPU101", "--ignore=NPU1"], ["NPU101"]),
        ("", ["--select=NPU1", "--ignore=ALL"], ["NPU111", "NPU101"]),
        ("", ["--select=NPU101", "--ignore=NPU101"], []),
        ("", ["--ignore=NPU1", "--extend-select=NPU111"], ["NPU901", "NPU111"]),
        ("ignore = ['NPU101']", ["--select=NPU101"], ["NPU101"]),
        ("ignore = ['NPU101']", ["--ignore=NPU9"], ["NPU111"]),
        ("ignore = ['NPU101', 'NPU9']", ["--extend-select=NPU1"], ["NPU111", "NPU101"]),
        ("select = ['NPU101', 'NPU111']", ["--ignore=NPU10"], ["NPU111"]),
        ("ignore = ['NPU1']\nextend-select = ['NPU101']", ["--ignore=NPU1"], []),
    ],
)
def test_choices_add_up_as_with_ruff(lint, train, tmp_path, config, arguments, codes) -> None:
    (tmp_path / "npumigrate.toml").write_text(config)
    assert [code for code, _, _ in lint("--output-format=json", *arguments).places()] == codes


LEADING_OUT = [*product(("rules", "baseline"), ("../out", "link")), ("cache-dir", "../out")]


@pytest.mark.parametrize(("key", "place"), LEADING_OUT)
def test_a_configuration_of_the_tree_leads_nowhere_else(lint, tmp_path, key, place) -> None:
    value = json.dumps([place] if key == "rules" else place)
    write(tmp_path / "tree", {"a.py": "import torch\n", "npumigrate.toml": f"{key} = {value}\n"})
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "out")
    answer = lint("tree")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert f"npumigrate.toml: {key}: " in answer.err
    assert "tree: name it on the command line, or name this file with --config" in answer.err
    assert not (tmp_path / "out").exists()


def test_who_names_the_configuration_means_what_it_says(lint, tmp_path) -> None:
    rule = "- {code: ACME101, name: a, summary: s, kind: name, match: torch.zeros, fix: none}\n"
    program = {"tree/a.py": "import torch\ntorch.zeros(1)\n", "own.yaml": rule}
    write(tmp_path, {**program, "tree/npumigrate.toml": 'rules = ["../own.yaml"]\n'})
    assert "ACME101" in lint("tree", "--config=tree/npumigrate.toml", "--output-format=concise").out
    assert "ACME101" not in lint("tree", "--output-format=concise").out
    (tmp_path / ".git").mkdir()  # all of it is one repository
    assert "ACME101" in lint("tree", "--output-format=concise").out


def test_a_project_elsewhere_is_one_of_its_own(lint, tmp_path, monkeypatch) -> None:
    use = (
        "from transformers import HfArgumentParser, TrainingArguments\nHfArgumentParser(TrainingArguments)\n"
    )
    write(tmp_path / "there", {"train.py": use, "requirements.txt": "transformers==4.27.1\n"})
    write(tmp_path / "here", {"other.py": use})
    monkeypatch.chdir(tmp_path / "here")
    given = ("-v", "2.13", "--select=NPU683", "--output-format=json")
    assert found(lint(*given, str(tmp_path / "there"))) == []
    assert not (tmp_path / "there" / ".npumigrate_cache").exists()
    assert found(lint(*given, ".")) == [("other.py", "NPU683")]


def test_an_image_for_cuda_beside_one_for_npus_is_only_told(lint, tmp_path) -> None:
    image = "FROM nvidia/cuda:12.1.0-runtime-ubuntu22.04\n"
    write(tmp_path, {"docker/docker-cuda/Dockerfile": image, "docker/docker-npu/Dockerfile": "FROM cann\n"})
    (finding,) = lint("--output-format=json").json()
    assert (finding["code"], finding["severity"]) == ("NPU456", "info")
