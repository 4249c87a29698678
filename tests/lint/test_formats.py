"""The output formats for other programs."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

# Findings: an import to add (two edits in one fix), a safe fix, an unsafe one, and one without a fix.
SOURCE = """\
import torch
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
s = "é", torch.zeros(2).cuda()
torch.cuda.temperature("a, b: c%")
"""
PEOPLE = ("short", "full", "concise", "grouped")
PROGRAMS = ("json", "json-lines", "sarif", "github", "gitlab", "junit", "azure", "pylint", "rdjson")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "my dir" / "train é.py"
    file.parent.mkdir()
    file.write_text(SOURCE, encoding="utf-8")
    return file


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    code = {"source": ["import torch\n", "torch.cuda.synchronize()"], "outputs": [], "execution_count": None}
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# torch.cuda"]},
        {"cell_type": "code", "metadata": {}, **code},
    ]
    file = tmp_path / "notes.ipynb"
    file.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return file


def expected(lint) -> list[dict[str, Any]]:
    """The same findings by the format json, of which test_findings.py says that they are right."""
    found: list[dict[str, Any]] = lint("--output-format", "json", ".").json()
    assert len(found) >= 4
    return found


def place(item: dict[str, Any]) -> tuple[int, int, int, int]:
    start, end = item["location"], item["end_location"]
    return start["row"], start["column"], end["row"], end["column"]


def test_sarif(lint, source):
    wanted = expected(lint)
    log = lint("--output-format", "sarif", ".").json()
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len(run["results"]) == len(wanted)
    for result, item in zip(run["results"], wanted):
        assert (result["ruleId"], rules[result["ruleIndex"]]["id"]) == (item["code"], item["code"])
        assert rules[result["ruleIndex"]]["helpUri"] == item["url"]
        assert result["level"] == (item["severity"].replace("blocker", "error").replace("info", "note"))
        physical = result["locations"][0]["physicalLocation"]
        assert physical["artifactLocation"] == {"uri": "my%20dir/train%20%C3%A9.py", "uriBaseId": "SRCROOT"}
        region = physical["region"]
        assert place(item) == tuple(region[k] for k in ("startLine", "startColumn", "endLine", "endColumn"))
        fixes = result.get("fixes", [])
        assert len(fixes) == (item["fix"] is not None)
        for fix in fixes:
            contents = [r["insertedContent"]["text"] for r in fix["artifactChanges"][0]["replacements"]]
            assert contents == [edit["content"] for edit in item["fix"]["edits"]]
    prints = [result["partialFingerprints"]["npumigrate/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)
    for rule in rules:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["text"]
        assert rule["help"]["markdown"]


def test_sarif_is_what_the_standard_describes(lint, source, notebook):
    sarif_pydantic = pytest.importorskip("sarif_pydantic")
    for arguments in ((".",), (str(notebook),), ("--select", "NPU302", str(source))):
        log = sarif_pydantic.Sarif.model_validate_json(lint("--output-format", "sarif", *arguments).out)
        assert log.version == "2.1.0"
        assert unknown_properties(log) == []


def unknown_properties(model: Any, path: str = "") -> list[str]:
    """Properties that the standard does not know, below ``model``; the models lack two that it does."""
    if isinstance(model, (list, tuple)):
        return [name for i, part in enumerate(model) for name in unknown_properties(part, f"{path}[{i}]")]
    if not hasattr(model, "model_extra"):
        return []
    found = [f"{path}.{name}" for name in model.model_extra or () if not path.endswith(".properties")]
    for name in type(model).model_fields:
        found += unknown_properties(getattr(model, name), f"{path}.{name}")
    return [name for name in found if name not in (".$schema", ".runs[0].columnKind")]


def test_names_that_are_no_utf8(lint, tmp_path):
    try:
        (tmp_path / os.fsdecode(b"\xff.py")).write_text(SOURCE, encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    for name in PROGRAMS:
        answer = lint("--output-format", name, ".")
        assert (answer.code, answer.err) == (1, "")
    (run,) = lint("--output-format", "sarif", ".").json()["runs"]
    location = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == "%FF.py"


def test_fingerprints_stay_when_lines_move(lint, source):
    def prints() -> list[str]:
        found = lint("--output-format", "gitlab", ".").json()
        return [item["fingerprint"] for item in found if item["check_name"] != "NPU901"]

    before = prints()
    assert len(set(before)) == len(before) > 2
    source.write_text(SOURCE.replace("import argparse\n", "import argparse\n\n# more\n\n"), encoding="utf-8")
    assert prints() == before


def test_equal_lines_have_fingerprints_of_their_own(lint, source):
    source.write_text("import torch\n\ntorch.cuda.synchronize()\ntorch.cuda.synchronize()\n")
    found = lint("--output-format", "gitlab", "--select", "NPU101", ".").json()
    assert len(found) == len({item["fingerprint"] for item in found}) == 2


def test_gitlab(lint, source, tmp_path, monkeypatch):
    wanted = expected(lint)
    found = lint("--output-format", "gitlab", ".").json()
    assert [item["check_name"] for item in found] == [item["code"] for item in wanted]
    for entry, item in zip(found, wanted):
        assert entry["severity"] == item["severity"].replace("error", "major").replace("warning", "minor")
        begin, end = (entry["location"]["positions"][side] for side in ("begin", "end"))
        assert place(item) == (begin["line"], begin["column"], end["line"], end["column"])
        assert entry["location"]["path"] == "my dir/train é.py"
        assert entry["description"].startswith(f"{item['code']}: ")
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path))
    monkeypatch.chdir(source.parent)
    assert lint("--output-format", "gitlab", ".").json()[0]["location"]["path"] == "my dir/train é.py"


def test_github(lint, source, tmp_path, monkeypatch):
    wanted = expected(lint)
    lines = lint("--output-format", "github", ".").out.splitlines()
    assert len(lines) == len(wanted)
    for line, item in zip(lines, wanted):
        match = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line)
        assert match
        assert match[1] == item["severity"].replace("blocker", "error").replace("info", "notice")
        properties = dict(part.split("=", 1) for part in match[2].split(","))
        assert properties["file"] == "my dir/train é.py"
        row, column, end_row, end_column = map(str, place(item))
        assert (properties["line"], properties["endLine"]) == (row, end_row)
        assert (properties["col"], properties["endColumn"]) == (column, end_column)
        assert item["code"] in match[3]
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(source.parent)
    assert "file=my dir/train é.py," in lint("--output-format", "github", ".").out


def test_github_escapes_what_it_reads_itself(lint, tmp_path):
    (tmp_path / "a,b:c%.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    line = lint("--output-format", "github", "--select", "NPU101", ".").out
    assert "file=a%2Cb%3Ac%25.py,line=2" in line


def test_junit(lint, source):
    wanted = expected(lint)
    root = ElementTree.fromstring(lint("--output-format", "junit", ".").out.encode())
    assert (root.get("tests"), root.get("failures")) == (str(len(wanted)),) * 2
    (suite,) = root
    assert suite.get("name") == "my dir/train é.py"
    assert [case.get("name") for case in suite] == [
        f"{item['code']} line {item['location']['row']}" for item in wanted
    ]
    assert all(case.find("failure").get("message") for case in suite)


def test_azure(lint, source):
    wanted = expected(lint)
    lines = lint("--output-format", "azure", ".").out.splitlines()
    for line, item in zip(lines, wanted):
        kind = "error" if item["severity"] in ("blocker", "error") else "warning"
        start = item["location"]
        assert line.startswith(
            f"##vso[task.logissue type={kind};sourcepath=my dir/train é.py;linenumber={start['row']};"
            f"columnnumber={start['column']};code={item['code']};]"
        )
    assert len(lines) == len(wanted)


def test_pylint(lint, source):
    wanted = expected(lint)
    lines = lint("--output-format", "pylint", ".").out.splitlines()
    assert [re.match(r"my dir/train é\.py:(\d+): \[(\w+)\] .", line).groups() for line in lines] == [
        (str(item["location"]["row"]), item["code"]) for item in wanted
    ]


def test_rdjson(lint, source):
    wanted = expected(lint)
    found = lint("--output-format", "rdjson", ".").json()
    assert found["source"]["name"] == "npumigrate"
    for entry, item in zip(found["diagnostics"], wanted):
        start, end = (entry["location"]["range"][side] for side in ("start", "end"))
        assert place(item) == (start["line"], start["column"], end["line"], end["column"])
        assert entry["severity"] == item["severity"].upper().replace("BLOCKER", "ERROR")
        edits = item["fix"]["edits"] if item["fix"] else []
        texts = [suggestion["text"] for suggestion in entry.get("suggestions", [])]
        assert texts == ([edits[0]["content"]] if len(edits) == 1 else [])
    assert len(found["diagnostics"]) == len(wanted)


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_found(lint, tmp_path, name):
    (tmp_path / "a.py").write_text("x = 1\n")
    answer = lint("--output-format", name, ".")
    assert (answer.code, answer.err) == (0, "")
    if name in ("json", "gitlab"):
        assert answer.json() == []
    elif name == "sarif":
        assert answer.json()["runs"][0]["results"] == []
    elif name == "rdjson":
        assert answer.json()["diagnostics"] == []
    elif name == "junit":
        (suite,) = ElementTree.fromstring(answer.out.encode())
        assert suite.get("failures") == "0"
    else:
        assert answer.out == ""


@pytest.mark.parametrize("name", [*PEOPLE, *PROGRAMS])
def test_notebooks(lint, notebook, name):
    answer = lint("--output-format", name, str(notebook))
    assert answer.code == 1
    assert "NPU101" in answer.out
    assert re.search(r"cell\W{0,5}2|\"cell\": ?2", answer.out)
    if name == "gitlab":  # its rows are those of the file, not of the cell
        assert {item["location"]["positions"]["begin"]["line"] for item in answer.json()} == {1}


@pytest.mark.parametrize("name", [*PEOPLE, *PROGRAMS])
def test_into_a_file(lint, source, tmp_path, name):
    printed = lint("--output-format", name, ".").out
    answer = lint("--output-format", name, "-o", tmp_path / "out.txt", ".")
    assert (answer.code, answer.out) == (1, "")
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == printed


@pytest.mark.parametrize("name", [*PEOPLE, *PROGRAMS])
def test_names_control_no_terminal_and_no_log(lint, tmp_path, name):
    (tmp_path / "a\x1b[31m\u202eb.py").write_text("import torch\ntorch.cuda.init()\n")
    out = lint(f"--output-format={name}").out
    assert "NPU101" in out
    assert not {"\x1b", "\u202e"} & set(out)
