"""What is said of recorded runs, kind by kind."""

from __future__ import annotations

import csv

import pytest

from migrator.insight.kinds import vendor_rows
from migrator.insight.report import find_rows, product_line, recorded_run, step_time, write_reports
from tests.insight.made import GIB, collectives, memory, process, record


def rows_of(folder, kind, version="2.13.0", soc="Ascend910B2"):
    run = recorded_run(folder, version, "2.13.0", soc)
    return [row for row in find_rows(run, folder) if row.kind == kind]


@pytest.mark.parametrize(
    ("soc", "line"),
    [("Ascend910B4", "A2"), ("Ascend910_9391", "A3"), ("Ascend910A", "A1"), ("Ascend950DT_9592", "950DT")],
)
def test_a_chip_is_of_a_product_line(soc, line):
    assert product_line(soc) == line


def test_a_run_without_problems_has_no_row(tmp_path):
    process(tmp_path, record(), of_memory={"0": memory(GIB, GIB // 2, (0, GIB))})
    run = recorded_run(tmp_path, "", "2.13.0", "Ascend910B2")
    assert find_rows(run, tmp_path) == []


def test_the_dispatcher_of_the_installed_torch_npu_says_what_falls_back(tmp_path):
    process(tmp_path, record(1, "aten::nonzero_static"), lacking=("aten::nonzero_static",))
    (row,) = rows_of(tmp_path, "cpu_fallback")
    assert (row.place.line, row.place.function, row.calls, row.per_step, row.bytes) == (2, "f2", 4, 1.0, 4000)
    assert row.more["copies"] == 8
    assert "has no NPU kernel in torch_npu 2.13.0" in row.message


def test_another_version_is_judged_by_the_tables(tmp_path):
    """The installed torch_npu has kernels that older ones lack: nothing in the run itself shows that."""
    newer = record(0, "aten::scatter_reduce.two"), record(1, "aten::relu"), record(2, "aten::acos")
    process(tmp_path, *newer)
    assert rows_of(tmp_path, "cpu_fallback") == rows_of(tmp_path, "cpu_fallback", "2.9.0") == []
    (row,) = rows_of(tmp_path, "cpu_fallback", "2.6.0")
    assert (row.place.line, row.subject) == (1, "torch.scatter_reduce")
    assert "in torch_npu 2.6.0" in row.message
    # What torch makes of other operators needs no kernel.
    process(tmp_path, *newer, composite=("aten::scatter_reduce.two",))
    assert rows_of(tmp_path, "cpu_fallback", "2.6.0") == []
    # What the newest leaves to the CPU, older ones do, too, unless the tables have a kernel.
    lacking = ("aten::_add_relu.Scalar", "aten::relu")
    process(tmp_path, record(0, lacking[0]), record(1, lacking[1]), lacking=lacking)
    assert [row.place.line for row in rows_of(tmp_path, "cpu_fallback", "2.6.0")] == [1]


@pytest.mark.parametrize(
    ("changed", "said", "severity"),
    [
        ({"operator": "aten::erfinv", "types": "Double"}, "torch.erfinv gets float64", "warning"),
        ({"operator": "aten::erfinv", "types": "BFloat16"}, "torch.erfinv gets bfloat16", "info"),
        ({"operator": "aten::topk", "options": "sorted=False"}, "called with sorted=False", "warning"),
        ({"operator": "aten::erfinv", "types": "Float"}, None, None),
        ({"operator": "aten::erfinv", "types": "Double", "phase": "backward"}, None, None),
        ({"operator": "aten::topk", "options": "largest=False"}, None, None),
    ],
)
def test_what_the_documents_do_not_list_is_said(tmp_path, changed, said, severity):
    process(tmp_path, record(2, **changed))
    rows = rows_of(tmp_path, "limits")
    assert [(row.place.line, row.severity) for row in rows] == ([(3, severity)] if said else [])
    assert all(said in row.message for row in rows)


@pytest.mark.parametrize(
    ("changed", "origin"),
    [
        ({"operator": "aten::copy_", "crossing": "to_npu, blocking"}, "from_host"),
        ({"operator": "aten::nonzero"}, "from_values"),
        ({"operator": "aten::index.Tensor", "by_truth": 1}, "from_values"),
        ({}, "from_program"),
    ],
)
def test_new_shapes_have_an_origin(tmp_path, changed, origin):
    late = {"shapes": 3, "new_steps": 2, "origins": 2, "examples": ["8x4>8x4", "7x4>7x4", "6x4>6x4"]}
    follows = {**late, "origins": 0}
    process(tmp_path, record(1, **late, **changed), record(2, **follows))
    (row,) = rows_of(tmp_path, "dynamic_shape")
    assert (row.place.line, row.more["origin"]) == (2, origin)
    assert "new shapes in 2 of 3 later steps (3 in all, 8x4>8x4, then 7x4>7x4)" in row.message
    assert row.message.endswith("later operators that met the same shapes: 1")


def test_a_smaller_last_batch_is_no_row(tmp_path):
    process(tmp_path, record(shapes=2, new_steps=1, origins=1, examples=["8x4>8x4", "3x4>3x4"]))
    assert rows_of(tmp_path, "dynamic_shape") == []


def test_the_vendors_table_has_ranges_by_dimensions(tmp_path):
    examples = ["8x4 4>8", "2x4 4>2", "3x2x4 4>3x2"]
    process(tmp_path, record(1, shapes=3, new_steps=2, origins=2, examples=examples))
    run = recorded_run(tmp_path, "", "2.13.0", "Ascend910B2")
    write_reports(tmp_path / "out", run, find_rows(run, tmp_path))
    table = tmp_path / "out" / "msft_dynamic_shape_analysis_report.csv"
    (row,) = csv.DictReader(table.open(encoding="utf-8-sig", newline=""))
    assert list(row)[:6] == [
        *("Function Name", "File Path", "Line Number", "Call Stack"),
        *("Input Shape Range", "Output Shape Range"),
    ]
    assert row["Function Name"] == "torch.mul"
    assert row["Input Shape Range"] == "[(2, 4)-(8, 4) | (3, 2, 4)-(3, 2, 4)], [(4,)-(4,)]"
    assert row["Output Shape Range"] == "[(2,)-(8,) | (3, 2)-(3, 2)]"


@pytest.mark.parametrize(
    ("changed", "subject"),
    [
        ({"operator": "aten::_local_scalar_dense"}, ".item()"),
        ({"operator": "aten::copy_", "crossing": "to_host, blocking"}, ".cpu()"),
        ({"operator": "aten::copy_", "crossing": "to_npu, blocking"}, ".to()"),
        ({"operator": "aten::nonzero"}, "torch.nonzero"),
        ({"operator": "aten::copy_", "crossing": "to_npu"}, None),
        ({"operator": "aten::index.Tensor", "by_truth": 0}, None),
        # While it warms up, or after the last step: not in the step.
        ({"operator": "aten::_local_scalar_dense", "seen_steps": 1, "later": [2, 8, 0]}, None),
        ({"operator": "aten::_local_scalar_dense", "seen_steps": 0, "later": [0, 0, 0]}, None),
    ],
)
def test_what_the_host_waits_for_in_the_step(tmp_path, changed, subject):
    process(tmp_path, record(1, **changed))
    rows = rows_of(tmp_path, "host_sync")
    assert [(row.place.line, row.subject, row.per_step) for row in rows] == (
        [(2, subject, 1.0)] if subject else []
    )


def test_ranks_in_different_calls(tmp_path):
    collectives(tmp_path, 0, ("AllReduce", 8, 1), ("AllReduce", 8, 2))
    collectives(tmp_path, 1, ("AllReduce", 8, 1), ("Broadcast", 8, 5))
    collectives(tmp_path, 2, ("AllReduce", 8, 1), ("AllReduce", 8, 2))
    # No process wrote a report: all were killed.
    for rank in range(3):
        path = tmp_path / f"collectives-{100 + rank}.txt"
        path.write_text(path.read_text().replace('"size": 2', '"size": 3'))
    (row,) = [row for row in rows_of(tmp_path, "communication") if row.severity == "error"]
    assert row.place.line == 5
    assert "rank 1 Broadcast of 8 B at train.py:5" in row.message


def test_sizes_may_differ_in_all_to_all_only(tmp_path):
    for kind, differs in (("AlltoAllV", False), ("AllReduce", True)):
        for rank in range(2):
            collectives(tmp_path, rank, (kind, 8 * (1 + rank), 3))
        found = [row.severity for row in rows_of(tmp_path, "communication")]
        assert ("error" in found) == differs


def test_a_rank_whose_calls_are_not_known_is_not_missed(tmp_path):
    collectives(tmp_path, 0, ("AllReduce", 8, 1), size=2)
    assert [row.severity for row in rows_of(tmp_path, "communication")] == ["info"]


def test_a_rank_that_makes_no_call_is_waited_for(tmp_path):
    process(tmp_path, rank=0)
    process(tmp_path, rank=1)
    collectives(tmp_path, 0, ("Barrier", 0, 4))
    (row,) = [row for row in rows_of(tmp_path, "communication") if row.severity == "error"]
    assert (row.place.line, row.ranks) == (4, ("0",))
    assert row.message == "rank 0 waits here in Barrier for rank 1, which made no call in the group"


def test_memory_and_how_far_the_batch_can_go(tmp_path):
    copied = record(0, "aten::copy_", crossing="to_npu", examples=["16x3x8x8 16x3x8x8>16x3x8x8"])
    process(tmp_path, copied, of_memory={"0": memory(40 * GIB, 10 * GIB, (1, 30 * GIB), (0, GIB))})
    (row,) = rows_of(tmp_path, "memory")
    assert (row.place.line, row.bytes) == (2, 40 * GIB)
    # 10 GiB stay, 30 come with 16: nine tenths of 32 GiB leave room for 10.
    assert "Reduce the batch size to about 10" in row.advice
    assert rows_of(tmp_path, "memory", soc="Ascend910_9391") == []  # 64 GiB


def test_a_roofline_has_a_range_and_takes_float32_for_slower(tmp_path):
    spans = []
    for types in ("Half Half", "Float Float"):
        process(tmp_path, record(0, "aten::mm", types=types, later=[3, 3, 3 * 10**12]))
        spans.append(step_time(recorded_run(tmp_path, "", "2.13.0", "Ascend910B2"))["seconds"])
    half, single = spans
    assert half["at_best"] == pytest.approx(2e12 / (376e12 * 0.8))
    assert half["at_worst"] == pytest.approx(2e12 / (280e12 * 0.3))
    assert single["at_best"] == pytest.approx(4 * half["at_best"])


def test_a_thousand_places_are_ranked(tmp_path):
    records = [record(i, "aten::_local_scalar_dense", later=[3 * (i + 1), 12, 0]) for i in range(1000)]
    process(tmp_path, *records, places=1000)
    rows = rows_of(tmp_path, "host_sync")
    assert len(rows) == 1000
    assert [row.place.line for row in rows[:3]] == [1000, 999, 998]


def test_the_vendors_table_has_each_row_once(tmp_path):
    changed = {"shapes": 2, "new_steps": 2, "origins": 2, "examples": ["8x4>8x4", "7x4>7x4"]}
    process(tmp_path, record(1, types="Float", **changed), record(1, types="Half", **changed))
    assert len(list(vendor_rows(recorded_run(tmp_path, "", "2.13.0", "Ascend910B2")))) == 1


def test_what_first_comes_in_a_later_step_has_no_new_shapes_by_that(tmp_path):
    comes = {"first": [0, 0, 0], "first_shapes": 0}
    once = record(1, **comes, shapes=1, new_steps=1, origins=1, examples=["8x4>8x4"])
    again = record(2, **comes, shapes=3, new_steps=3, origins=3, examples=["8x4>8x4", "7x4>7x4", "6x4>6x4"])
    process(tmp_path, once, again)
    (row,) = rows_of(tmp_path, "dynamic_shape")
    assert row.place.line == 3
    assert "new shapes in 2 of 3 later steps (3 in all, 8x4>8x4, then 7x4>7x4)" in row.message
