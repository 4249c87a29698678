"""Where a step's time and memory go, and what is said about it."""

from __future__ import annotations

import ast
import gzip
import importlib.util
import json
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from migrator.data_folders import reports_yaml
from migrator.profile.model import Advice, Profile
from migrator.profile.read import insight_rows, read_profile, read_snapshot
from migrator.profile.report import as_json, as_text, compared, seen_at
from migrator.profile.streams import ProfileError, events
from tests.profile import made

OUTPUT = "ASCEND_PROFILER_OUTPUT"


@pytest.fixture
def npu(tmp_path: Path) -> Path:
    return made.npu_profile(tmp_path)


def told(profile: Profile) -> dict[str, Advice]:
    return {one.sign: one for one in profile.advice}


def ms(parts: dict[str, float]) -> dict[str, float]:
    return {part: round(time / 1000, 3) for part, time in parts.items()}


def test_a_step_is_divided_by_tables_and_trace(npu: Path) -> None:
    profile = read_profile(npu)
    assert (profile.steps, profile.step, profile.rank) == (2, 100000, "3")
    parts = {"compute": 50, "communication": 10, "bubble": 0, "data": 15, "fallback": 12, "host": 13}
    assert ms(profile.parts) == parts
    assert profile.communication == 15000
    assert profile.notes == []


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_alone_divides_the_step_in_the_same_way(npu: Path, tmp_path: Path, packed: bool) -> None:
    file = tmp_path / ("trace.json.gz" if packed else "trace.json")
    data = (npu / OUTPUT / "trace_view.json").read_bytes()
    file.write_bytes(gzip.compress(data) if packed else data)
    profile = read_profile(file)
    assert ms(profile.parts) == {
        "compute": 50,
        "communication": 10,
        "bubble": 0,
        "data": 15,
        "fallback": 12,
        "host": 13,
    }
    assert (profile.device, profile.steps, profile.communication) == ("NPU", 2, 15000)


def test_what_costs_most_is_named_with_its_line(npu: Path) -> None:
    profile = read_profile(npu)
    kernel = profile.kernels["MatMulV2 AI_CORE"]
    assert (kernel.calls, kernel.device) == (1, 30000)
    assert "hcom_allReduce_ HCCL" not in profile.kernels
    operator = profile.operators["aten::addmm"]
    assert (operator.device, operator.place) == (30000, "/home/me/proj/model.py:41 forward")


def test_signs_have_what_to_change_and_a_gain(npu: Path) -> None:
    found = told(read_profile(npu))
    assert round(found["data"].gain) == 15000
    assert found["fallback"].what.endswith("aten::unique_dim")
    assert found["fallback"].places == ["/home/me/proj/model.py:41 forward"]
    assert round(found["fallback"].gain) == 10800
    assert found["ai-cpu"].what.endswith(": TopK")
    assert round(found["float32-products"].gain) == 15000
    assert round(found["cast"].gain) == 4800
    assert round(found["slow-rank"].gain) == 7200  # 12 of 15 ms
    assert found["host-sync"].places == ["/home/me/proj/model.py:52 forward"]
    assert round(found["garbage"].gain) == 4000
    assert not {"layout", "bubble", "blocking"} & set(found)
    text = as_text(read_profile(npu), [], None, markdown=False)
    gains = [float(said) for said in re.findall(r"up to ([\d.]+) ms", text)]
    assert len(gains) > 5
    assert gains == sorted(gains, reverse=True)


def test_settings_are_signs_too(tmp_path: Path) -> None:
    given = {"ASCEND_LAUNCH_BLOCKING": "1", "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True"}
    found = told(read_profile(made.npu_profile(tmp_path, **given)))
    assert round(found["blocking"].gain) == 13000
    assert {"still-fragmented", "fragmented"} & set(found) == {"still-fragmented"}


def test_memory_is_told_by_peak_and_line(npu: Path) -> None:
    profile = read_profile(npu)
    (memory,) = profile.memory
    mb = 1 << 20
    assert (memory.device, memory.allocated, memory.reserved) == ("NPU:0", 600 * mb, 1536 * mb)
    assert memory.unused == 1036 * mb  # when it reserved most, and not at the peak of what is used
    assert memory.besides == {"APP": 4096 * mb, "WORKSPACE": 400 * mb, "HCCL": 400 * mb}
    (holder,) = memory.holders.values()
    assert (holder.name, holder.device, holder.place) == (
        "aten::empty_strided",
        400 * mb,
        "/home/me/proj/model.py:41 forward",
    )
    found = told(profile)
    assert found["fragmented"].gain == memory.unused
    assert {"workspace", "hccl"} < set(found)
    assert "expandable_segments:True" in found["fragmented"].do


def test_a_snapshot_is_told_by_line(tmp_path: Path) -> None:
    profile = read_profile(made.snapshot(tmp_path / "oom.pickle"))
    (memory,), gib = profile.memory, 1 << 30
    assert (memory.allocated, memory.reserved, memory.unused, memory.refused) == (gib, 3 * gib, gib, 2 * gib)
    assert [one.place for one in memory.holders.values()] == ["/home/me/proj/model.py:41 forward"]
    assert [one.sign for one in profile.advice] == ["fragmented", "refused"]
    assert read_profile(tmp_path).advice == profile.advice


class Evil:
    def __reduce__(self):
        return print, ("it ran",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"segments": [Evil()]}),
        pickle.dumps({"segments": 1}),
        pickle.dumps({"segments": [{"total_size": "x"}]}),
        pickle.dumps([1]),
        b"\x80\x04",
        b"",
    ],
)
def test_a_pickle_runs_nothing(tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.pickle"
    file.write_bytes(content)
    with pytest.raises(ProfileError, match=r"s\.pickle: cannot be read: "):
        read_snapshot(file)
    assert capsys.readouterr().out == ""


def test_cuda_is_compared_by_operator(npu: Path, tmp_path: Path) -> None:
    profile = read_profile(npu)
    cuda = read_profile(made.cuda_trace(tmp_path / "host.pt.trace.json.gz"))
    assert (cuda.device, cuda.steps, cuda.step) == ("GPU", 2, 60000)
    assert ms(cuda.parts) == {
        "compute": 6,
        "communication": 4,
        "bubble": 0,
        "data": 0,
        "fallback": 0,
        "host": 50,
    }
    assert cuda.communication == pytest.approx(6000)
    rows = [(row["operator"], row["this"], round(row["other"])) for row in compared(profile, cuda)]
    assert rows == [("aten::addmm", 30000, 5000), ("aten::topk", 12000, 1000)]
    text = as_text(profile, [], cuda, markdown=False)
    assert "step: 100 ms, there 60 ms (1.7 times)" in text
    assert "aten::addmm: 30 ms, there 5 ms (6 times)" in text


def test_a_trace_of_a_gpu_has_signs_and_lines(tmp_path: Path) -> None:
    profile = read_profile(made.torch_trace(tmp_path / "t.json", on_gpu=True))
    assert (profile.device, profile.notes) == ("GPU", [])
    assert {part: time for part, time in ms(profile.parts).items() if time} == {
        "compute": 4,
        "data": 9,
        "host": 7,
    }
    found = {one.sign: one for one in profile.advice}
    assert list(found) == ["data", "host", "host-sync", "optimizer"]
    assert "CUDA graphs" in found["host"].do
    assert found["host"].what.startswith("the GPU is idle")
    assert found["host-sync"].gain == pytest.approx(0.8 * 4000)
    assert found["host-sync"].places == ["train.py:3 <module>"]
    assert "fused=True" in found["optimizer"].do
    addmm, linear = profile.operators["aten::addmm"], profile.operators["aten::linear"]
    assert (addmm.device, addmm.host, addmm.place) == (4000, 500, "net/model.py:12 forward")
    assert (linear.device, linear.host, linear.calls) == (0, 500, 1)
    assert profile.operators["aten::mm"].place == "train.py:3 <module>"
    assert profile.operators["aten::randn"].place == "data.py:9 __getitem__"


def test_a_trace_of_the_cpu_alone_has_lines_and_the_loader(tmp_path: Path) -> None:
    profile = read_profile(made.torch_trace(tmp_path / "t.json", on_gpu=False))
    assert profile.device == "CPU"
    assert profile.notes == ["no kernel was recorded: the work of the device is unknown"]
    (advice,) = profile.advice
    assert (advice.what, advice.gain) == ("the step waits for the data loader", 9000)
    text = as_text(profile, [], None, markdown=False)
    assert "operator aten::_local_scalar_dense: 4 ms of the host, calls: 1  train.py:3 <module>" in text


def test_rows_of_a_recorded_run_stand_at_their_lines(npu: Path, tmp_path: Path) -> None:
    row = {
        "kind": "cpu_fallback",
        "file": "model.py",
        "line": 41,
        "message": "it falls back",
        "advice": "Do.",
    }
    other = {**row, "file": "odel.py", "message": "another file"}
    rows = insight_rows(made.insight(tmp_path / "proj_msft", [row, other, {**row, "line": 4}]))
    (place,) = told(read_profile(npu))["fallback"].places
    assert seen_at(rows, place) == ["model.py:41: it falls back. Do."]
    text = as_text(read_profile(npu), rows, None, markdown=False)
    assert "  30 ms  model.py:41: it falls back. Do.\n" in text
    assert "     model.py:41: it falls back. Do.\n" in text
    assert as_json(read_profile(npu), rows, None)["seen"] == {place: seen_at(rows, place)}
    with pytest.raises(ProfileError, match="no npu_insight"):
        insight_rows(tmp_path)


def test_of_several_ranks_the_slowest_is_told(tmp_path: Path) -> None:
    first = made.npu_profile(tmp_path)
    second = tmp_path / "other_2_20261128021327388_ascend_pt"
    shutil.copytree(first, second)
    step = (90000, 1000, 0, 1000, 9000, 100000, 0, 1000, 0)
    made.table(second / OUTPUT / "step_trace_time.csv", made.STEP_TRACE, (0, 0, *step))
    profile = read_profile(tmp_path)
    assert profile.path == str(second)
    assert profile.notes == ["2 ranks: this one computes longest, 90 ms; the shortest: 50 ms"]


def test_tables_without_a_trace_and_statistics_alone(npu: Path) -> None:
    (npu / OUTPUT / "trace_view.json").unlink()
    (npu / OUTPUT / "kernel_details.csv").unlink()
    row = (0, "MatMulV2", "AI_CORE", 8, 60000, 1, 2, 3, 100)
    made.table(npu / OUTPUT / "op_statistic.csv", made.STATISTIC, row)
    profile = read_profile(npu / OUTPUT)
    assert ms(profile.parts)["host"] == 40
    assert profile.kernels["MatMulV2 AI_CORE"].calls == 4
    assert profile.notes == ["trace_view.json is missing: the reason why the NPU waits is unknown"]


def test_all_that_was_recorded_is_one_step_where_none_is_marked(npu: Path) -> None:
    made.table(
        npu / OUTPUT / "step_trace_time.csv", made.STEP_TRACE, (0, "", 50, 10, 5, 15, 40, 100, 0, 10, 5)
    )
    profile = read_profile(npu)
    assert (profile.steps, profile.marked) == (1, False)
    assert "as no step is marked" in as_text(profile, [], None, markdown=False)


@pytest.mark.parametrize(
    ("text", "count", "said"),
    [
        ('[{"a": 1}, {"b": 2}', 2, "the 2 events before it count"),
        ('[{"a": 1}, {"b": 2', 1, "the 1 events before it count"),
        ('[{"a": 1}, nonsense]', 1, "the 1 events before it count"),
        ('{"x": 1, "traceEvents" : [{"a": 1}], "z": [1]}', 1, ""),
        ("[]", 0, ""),
    ],
)
def test_a_trace_that_breaks_off_gives_what_was_before(
    tmp_path: Path, text: str, count: int, said: str
) -> None:
    file, notes = tmp_path / "t.json", list[str]()
    file.write_text(text)
    assert len(list(events(file, notes))) == count
    assert said in "".join(notes)
    assert len(notes) == bool(said)


@pytest.mark.thorough
def test_a_large_trace_takes_little_memory(tmp_path: Path) -> None:
    """A trace of 60 MB in less than a fifth of that."""
    file = tmp_path / "trace_view.json"
    with file.open("w") as out:
        out.write("[" + json.dumps(made.process("Overlap Analysis", 9)))
        for number in range(50_000):
            event = made.on_npu("Computing", number, number + 0.5)
            event["args"] = {"Call stack": "x" * 1000}
            out.write(", " + json.dumps(event))
        out.write("]")
    program = (
        "import sys, tracemalloc\nfrom pathlib import Path\nfrom migrator.profile.read import read_profile\n"
        "tracemalloc.start()\nprofile = read_profile(Path(sys.argv[1]))\n"
        "print(tracemalloc.get_traced_memory()[1], round(profile.parts['compute']))"
    )
    done = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
    peak, computing = map(int, done.stdout.split())
    assert file.stat().st_size > 55e6
    assert computing == pytest.approx(25e6, rel=1e-6)
    assert peak < 11e6


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("kernel_details.csv", "Device_id,Name\n0,x\n", "kernel_details.csv has no column Duration(us)"),
        ("communication.json", "{", "communication.json: cannot be read: "),
        ("step_trace_time.csv", "\0\0", "step_trace_time.csv has no column Computing"),
        ("trace_view.json", '[{"a": 1}', "trace_view.json: cannot be read: Expecting"),
        ("operator_memory.csv", "Name,Size(KB)\n", "operator_memory.csv has no column Allocation Time(us)"),
    ],
)
def test_a_broken_file_of_several_is_noted(npu: Path, name: str, content: str, said: str) -> None:
    (npu / OUTPUT / name).write_text(content)
    try:
        notes = read_profile(npu).notes
    except ProfileError as error:
        notes = [str(error)]
    assert any(note.startswith(said) for note in notes), notes


def test_cells_that_are_no_numbers_count_nothing(npu: Path) -> None:
    row = {"Step Id": 0, "Name": "aclnnX_x", "Type": "N/A", "Accelerator Core": "N/A", "Duration(us)": "nan"}
    made.table(npu / OUTPUT / "kernel_details.csv", made.KERNELS, row)
    assert read_profile(npu).kernels["x N/A"].device == 0


def test_emulated_times_are_said_to_be_the_cpus(npu: Path) -> None:
    row = {
        "Step Id": 0,
        "Name": "aten::mm",
        "Type": "mm",
        "Accelerator Core": "EMULATED_ON_CPU",
        "Duration(us)": 5,
    }
    made.table(npu / OUTPUT / "kernel_details.csv", made.KERNELS, row)
    profile = read_profile(npu)
    assert profile.emulated
    assert as_json(profile, [], None)["emulated"]
    assert "all times are those of the CPU" in as_text(profile, [], None, markdown=False)


WORDS = b'"x" null [] {} -1 1e999 NaN , \n \xff 99999999999999999999'.split(b" ")


def test_damaged_profiles_end_in_a_report_or_one_line(npu: Path, tmp_path: Path) -> None:
    random = Random(7)
    alone = [
        made.snapshot(tmp_path / "s.pickle"),
        made.cuda_trace(tmp_path / "c.json.gz"),
        tmp_path / "c.json",
    ]
    alone[2].write_bytes(gzip.decompress(alone[1].read_bytes()))
    files = [*(file for file in npu.rglob("*") if file.is_file()), *alone]
    said = []
    for _ in range(300):
        file = random.choice(files)
        whole = data = file.read_bytes()
        for _ in range(random.randint(1, 4)):
            start = random.randrange(len(data) + 1)
            data = data[:start] + random.choice(WORDS) + data[start + random.randint(0, 9) :]
        file.write_bytes(data)
        try:
            profile = read_profile(file if file in alone else npu)
            as_text(profile, [], profile, markdown=True)
            json.dumps(as_json(profile, [], profile))
        except ProfileError as error:
            said.append(str(error))
        file.write_bytes(whole)
    assert len(said) > 20
    assert not [line for line in said if "\n" in line]


def test_every_sign_is_told_completely() -> None:
    for sign, text in reports_yaml("profile.yaml")["signs"].items():
        assert {"least", "gain", "what", "do", "source"} <= set(text), sign
        assert 0 <= text["gain"] <= 1, sign


VIEWS = {
    "_operator_view_parser.py": {"OPERATOR_HEADERS": made.OPERATORS},
    "_memory_view_parser.py": {
        "HEADERS_OPERATOR": made.OPERATOR_MEMORY,
        "HEADERS_RECORD": made.MEMORY_RECORD,
    },
    "_trace_step_time_parser.py": {"title": made.STEP_TRACE},
}


@pytest.mark.parametrize("file", VIEWS)
def test_the_headers_are_those_of_the_installed_torch_npu(file: str) -> None:
    found = importlib.util.find_spec("torch_npu")
    if found is None or not found.submodule_search_locations:
        pytest.skip("needs torch_npu")
    source = Path(found.submodule_search_locations[0], "profiler/analysis/prof_view", file)
    if not source.is_file():
        pytest.skip("another torch_npu")
    lists = {
        target.id: ast.literal_eval(node.value)
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in VIEWS[file]
    }
    assert lists == VIEWS[file]
