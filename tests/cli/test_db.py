"""``npumigrate db`` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.api_support import tables, versions


@pytest.fixture
def afresh(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Tables are looked for anew; nothing of this machine's user is in the way."""
    monkeypatch.delenv(tables.VARIABLE, raising=False)
    for cached in (tables.in_force, versions.known, versions.resolve):
        cached.cache_clear()
    yield monkeypatch
    for cached in (tables.in_force, versions.known, versions.resolve):
        cached.cache_clear()


def test_diff(npumigrate, afresh) -> None:
    answer = npumigrate("db", "diff", "2.12", "2.13")
    assert answer.code == 0
    assert "  - torch.cuda.MemPoolContext  torch.npu.MemPoolContext" in answer.out
    assert "Operators with an NPU kernel: 0 new, 28 removed, 0 changed" in answer.out
    content = json.loads(npumigrate("db", "diff", "2.12", "2.13", "--json").out)
    about = {change["about"] for change in content["changes"]}
    assert about == {"name", "own", "kernel", "document", "torch"}
    assert content["from"] == {"torch": "2.12.0", "torch_npu": "2.12.0.post3"}


def test_diff_shows_the_names_of_torch_that_came_and_went(npumigrate, afresh) -> None:
    told = npumigrate("db", "diff", "1.11", "2.1").out.partition("Names of torch: ")[2].splitlines()
    assert len(told) == 62
    assert told[-1].endswith("more (--json lists all)")
    content = json.loads(npumigrate("db", "diff", "1.11", "2.1", "--json").out)
    names = {change["name"]: change["after"] for change in content["changes"] if change["about"] == "torch"}
    assert names["torch.compile"] == "in torch"
    # What lies in a module that came is not told by itself.
    assert not any(name.startswith("torch.fx.experimental.validator.") for name in names)


def test_diff_of_what_is_not_documented(npumigrate, afresh) -> None:
    answer = npumigrate("db", "diff", "2.13", "2.14")
    assert "torch 2.14.0 has no documents" in answer.out
    assert "Documents: not compared" in answer.out


@pytest.mark.parametrize("arguments", [["2.12"], ["2.12", "0.1"], ["2.12", "2.12.0"]])
def test_diff_wrong_use(npumigrate, afresh, arguments) -> None:
    answer = npumigrate("db", "diff", *arguments)
    assert answer.code == 2
    assert len(answer.err.splitlines()) == 1


def test_a_wrong_variable_is_one_line(npumigrate, tmp_path: Path, afresh) -> None:
    afresh.setenv(tables.VARIABLE, str(tmp_path))
    answer = npumigrate("db", "diff", "2.12", "2.13")
    assert answer.code == 2
    assert len(answer.err.splitlines()) == 1
    assert "NPUMIGRATE_API_DB" in answer.err


def test_releases_that_belong_together_are_shown(npumigrate) -> None:
    answer = npumigrate("db", "releases", "2.6")
    assert answer.code == 0
    head, *rows = (line.split() for line in answer.out.splitlines())
    assert head[:2] == ["torch_npu", "torch"]
    assert ["2.6.0.post3", "2.6.0", "3.9-3.11", "0.21.0", "2.6.0", "8.3.RC1", "0.1+ascend"] in rows
    assert {row[1] for row in rows} == {"2.6.0"}
    shown = json.loads(npumigrate("db", "releases", "--json").out)
    assert {one["torch"] for one in shown} > {"1.8.1", "2.6.0", "2.14.0"}
    unknown = npumigrate("db", "releases", "2.6.5")
    assert (unknown.code, unknown.out) == (1, "")
    assert "2.6.5" in unknown.err
