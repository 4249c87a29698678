"""The tables hold together: ranges, names, order, duplicates."""

from __future__ import annotations

import csv

import pytest

from migrator.api_support import tables, versions
from migrator.data_folders import data_folder

RANGED = ["npu_names", "api_support", "kernels", "custom_ops", "wheel_names"]
ALL = [*RANGED, "aliases", "env_vars", "versions", "by_hand/npu_names"]


def records(table: str) -> list[dict[str, str]]:
    with open(data_folder("api_db") / f"{table}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def key(table: str, record: dict[str, str]) -> str:
    first = next(iter(record.values()))
    return f"{record['module']}.{record['name']}" if table == "wheel_names" else first


@pytest.mark.parametrize("table", ALL)
def test_every_row_has_every_cell(table: str) -> None:
    assert all(None not in record and None not in record.values() for record in records(table))


@pytest.mark.parametrize("table", RANGED)
def test_ranges_are_ordered_and_do_not_overlap(table: str) -> None:
    known = {version.text for version in versions.known()}
    last_of: dict[str, str] = {}
    for record in records(table):
        name, first, last = key(table, record), record["from"], record["to"]
        assert {first, last} <= known | {""}, name
        if first and last:
            assert tables.as_tuple(first) <= tables.as_tuple(last), name
        if name in last_of:
            # A second row begins behind the end of the one before it.
            assert first, name
            assert last_of[name], name
            assert tables.as_tuple(last_of[name]) < tables.as_tuple(first), name
        last_of[name] = last


@pytest.mark.parametrize("table", ["npu_names"])
def test_rows_of_a_name_cover_every_known_version(table: str) -> None:
    by_name: dict[str, list[dict[str, str]]] = {}
    for record in records(table):
        by_name.setdefault(record["cuda_name"], []).append(record)
    for name, rows in by_name.items():
        for version in versions.known():
            holding = [row for row in rows if tables.covers(row["from"], row["to"], version.tuple)]
            assert len(holding) == 1, f"{name} at {version}"


@pytest.mark.parametrize("table", ["aliases", "env_vars", "versions", "by_hand/npu_names"])
def test_names_are_unique(table: str) -> None:
    names = [key(table, record) for record in records(table)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("table", ["aliases", "api_support", "custom_ops", "env_vars", "npu_names"])
def test_names_are_sorted(table: str) -> None:
    names = [key(table, record) for record in records(table)]
    assert names == sorted(names)


def test_lines_of_the_support_table_are_sorted_as_they_are_searched() -> None:
    names = [line.partition(",")[0] + "," for line in tables.lines("api_support")]
    assert names == sorted(names)


@pytest.mark.parametrize("table", ["api_support", "kernels", "aliases"])
def test_tables_that_are_split_at_commas_have_no_quotes(table: str) -> None:
    assert not [line for line in tables.lines(table) if '"' in line]


def test_npu_names_are_spelled_in_one_way() -> None:
    for record in records("npu_names"):
        name = record["npu_name"]
        assert not name or name.startswith(("torch.npu.", "torch_npu.")) or name == "torch.npu", name
        assert not name.startswith("torch_npu.npu."), f"{name}: the table has attribute forms"


def test_a_name_without_npu_form_has_advice() -> None:
    assert [r["cuda_name"] for r in records("npu_names") if not r["npu_name"] and not r["advice"]] == []


@pytest.mark.parametrize("table", ["npu_names", "api_support", "kernels", "env_vars", "versions"])
def test_every_fact_has_a_source(table: str) -> None:
    assert [key(table, record) for record in records(table) if not record["source"]] == []


def test_words_in_closed_columns() -> None:
    assert {r["status"] for r in records("api_support")} == {"supported", "partial", "unsupported"}
    assert {r["kind"] for r in records("kernels")} == {"kernel", "composite", "none"}
    assert {r["kind"] for r in records("npu_names")} == {"module", "class", "function", "value", "import"}
    assert {r["unchanged"] for r in records("npu_names")} == {"", "works", "no_effect", "raises"}
    assert {r["same_values"] for r in records("env_vars")} == {"", "yes", "no"}


def test_an_env_var_says_whether_values_carry_over_only_where_it_has_a_counterpart() -> None:
    for record in records("env_vars"):
        assert bool(record["npu_name"]) == bool(record["same_values"]), record["name"]
        assert record["npu_name"] or record["advice"], record["name"]


def test_every_table_is_small_enough_to_review() -> None:
    for path in data_folder("api_db").rglob("*.csv"):
        assert path.stat().st_size < 3_000_000, path.name


def test_every_alias_leads_to_an_api() -> None:
    listed = {record["api"] for record in records("api_support")}
    assert {record["api"] for record in records("aliases")} <= listed
