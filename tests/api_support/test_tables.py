"""The tables hold together, and the check of that notices what does not."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from migrator.api_support import tables, versions
from migrator.data_folders import data_folder
from tools.releases import check


def test_the_tables_hold_together() -> None:
    assert check.problems(data_folder("api_db")) == []


@pytest.mark.parametrize(
    ("table", "before", "after", "said"),
    [
        ("api_support", "api,from,to,", "api,since,to,", "the columns are api,since,to,"),
        (
            "api_support",
            "torch.cdist,2.6.0,2.6.0,",
            "torch.cdist,2.6.0,2.6.9,",
            "2.6.9 is not in versions.csv",
        ),
        ("api_support", "torch.cdist,2.6.0,2.6.0,", "torch.cdist,2.6.0,2.1.0,", "ends before it begins"),
        ("api_support", "torch.cdist,2.6.0,2.6.0,", "torch.cdist,2.6.0,2.7.1,", "two ranges overlap"),
        (
            "api_support",
            "torch.cdist,2.6.0,2.6.0,uns",
            "torch.cdist,2.6.0,2.6.0,un-s",
            "status is 'un-supported'",
        ),
        ("api_support", "torch.cdist,2.6.0,2.6.0,", "torch.zdist,2.6.0,2.6.0,", "not in its place"),
        ("api_support", ",A2 A3 950DT,", ",A2 A9,", "hardware 'A2 A9' is not known"),
        ("api_support", ",infer_only,", ",inferonly,", "inferonly is not in limits.csv"),
        ("api_support", "torch.cdist,2.6.0", '"torch.cdist",2.6.0', "lines without quotes"),
        (
            "aliases",
            ",torch.nn.Linear\n",
            ",torch.nn.Liner\n",
            "torch.nn.Liner, which api_support.csv has not",
        ),
        ("env_vars", "\nCUDACXX,", "\nCUDA_VISIBLE_DEVICES,", "CUDA_VISIBLE_DEVICES is there twice"),
        ("kernels", ",kernel,torch_npu operator lists\n", ",kernel,\n", "has no source"),
        ("npu_names", ",torch.npu.synchronize,", ",torch_npu.npu.synchronize,", "no attribute form"),
        ("versions", "2.6.0,2.6.0.post5,docs wheel,", "2.6.0,2.6.0.post5,docs,", "evidence and npu_wheel"),
        ("versions", "\n2.2.0,", "\n2.2,", "'2.2' is no torch version"),
        ("custom_ops", "\n", "\n\n", "cells, not 8"),
        ("releases", "\n2.6.0,2.6.0,", "\n2.6.0,2.6.1,", "2.6.0 is not for torch 2.6.1"),
        ("releases", ",8.2.RC1,", ",CANN 8.2,", "cann is 'CANN 8.2'"),
        ("releases", "\n2.4.0.post2,", "\n2.4.0.post5,", "2.4.0.post4 is not in the order of versions"),
        ("releases", "\n2.4.0.post4,2.4.0,3.8 ", "\n2.4.0.post4,2.4.0,", "differ from those of torch 2.4.0"),
        (
            "releases",
            " V100R001C20 V100R001C21,",
            " V100R001C21,",
            "the driver differs from that of CANN 8.1.RC1",
        ),
        (
            "by_hand/npu_names",
            "\ntorch.profiler.itt,,,",
            "\ntorch.profiler.itt,2.6.9,,",
            "torch.profiler.itt: torch 2.6.9 is not in versions.csv",
        ),
        (
            "by_hand/npu_names",
            "\ntorch.profiler.itt,,,",
            "\ntorch.profiler.itt,2.6.0,2.1.0,",
            "ends before it begins",
        ),
        (
            "by_hand/npu_names",
            "\ntorch.profiler.itt,,,",
            "\ntorch.profiler.itt,2.6.0,,",
            "torch.profiler.itt is not what it is derived from gives: run tools/npu_names.py",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, table: str, before: str, after: str, said: str) -> None:
    folder = tmp_path / "api_db"
    shutil.copytree(data_folder("api_db"), folder)
    path = folder / f"{table}.csv"
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8", newline="")
    found = check.problems(folder)
    assert any(said in line for line in found), found[:5]
    assert all(re.match(r"[\w/]+\.csv", line) for line in found)


def test_a_missing_table(tmp_path: Path) -> None:
    folder = tmp_path / "api_db"
    shutil.copytree(data_folder("api_db"), folder)
    (folder / "kernels.csv").unlink()
    assert check.problems(folder) == ["kernels.csv cannot be read: No such file or directory"]


def test_rows_of_a_name_cover_every_known_version() -> None:
    by_name: dict[str, list[list[str]]] = {}
    for row in tables.rows("npu_names"):
        by_name.setdefault(row[0], []).append(row)
    for name, rows in by_name.items():
        for version in versions.known():
            holding = [row for row in rows if tables.covers(row[1], row[2], version.tuple)]
            assert len(holding) == 1, f"{name} at {version}"


@pytest.mark.parametrize("table", ["api_support", "kernels", "aliases"])
def test_lines_are_found_by_their_beginning(table: str) -> None:
    lines = tables.lines(table)
    for line in (lines[0], lines[len(lines) // 3], lines[-1]):
        start = line.partition(",")[0] + ","
        assert tables.starting(table, start) == [other for other in lines if other.startswith(start)]
    assert tables.starting(table, "") == lines
    for nothing in ("zzz,", "!,", "torch.no_such_api,", "\u20ac,"):
        assert tables.starting(table, nothing) == []


def test_the_folder_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = tmp_path / "site-packages" / "migrator" / "data" / "api_db"
    packaged.mkdir(parents=True)
    monkeypatch.setattr(tables, "data_folder", lambda name: packaged)
    monkeypatch.delenv(tables.VARIABLE, raising=False)
    in_force = tables.in_force.__wrapped__
    assert in_force() == packaged
    monkeypatch.setenv(tables.VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"NPUMIGRATE_API_DB=.*not a folder of tables"):
        in_force()
