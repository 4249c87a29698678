"""`npumigrate record` and `npumigrate compare`: the commands themselves."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from migrator.cli import main
from migrator.compare.printed import curves
from tests.warm import warm

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")

PROGRAM = """
import sys
import torch
from torch import nn

torch.manual_seed(0)
device = sys.argv[1]
norm = nn.LayerNorm(8, eps=float(sys.argv[2]))
net = nn.Sequential(nn.Linear(6, 8), norm, nn.Dropout(0.2), nn.Linear(8, 3)).to(device)
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
for step in range(4):
    data, target = torch.randn(5, 6, device=device), torch.arange(5, device=device) % 3
    loss = nn.functional.cross_entropy(net(data), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss: {loss.item():.6f}")
sys.exit(3)
"""


def call(capsys, *arguments: str) -> tuple[int, str, str]:
    code = main.run([*arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def record(
    folder: Path,
    *options: str,
    device: str = "cpu",
    eps: str = "1e-5",
    auto: str = "0",
    program: str = PROGRAM,
) -> str:
    """Record the program into ``folder``; gives what it printed."""
    (folder.parent / "program.py").write_text(program)
    command = [sys.executable, "-m", "migrator", "record", "-o", str(folder), *options]
    command += ["--", sys.executable, str(folder.parent / "program.py"), device, eps]
    env = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": auto, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=warm(env) if auto == "0" else env)
    assert done.returncode == 3, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def traces(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    plain = record(folder / "a", "--same-random")
    assert plain == record(folder / "b", "--same-random", "--steps", "2")
    record(folder / "c", "--same-random", eps="1e-1")
    record(folder / "d", "--level", "L0")
    return folder


def test_runs_that_agree(traces, capsys) -> None:
    code, out, err = call(capsys, "compare", str(traces / "a"), str(traces / "b"))
    assert (code, err) == (0, "")
    assert "No call differs in 2 steps; largest distance of an output: 0." in out
    assert "  loss: 4 values agree, largest difference 0 %" in out
    assert json.loads((traces / "a" / "run.json").read_text())["code"] == 3


def test_runs_that_part(traces, capsys) -> None:
    code, out, err = call(capsys, "compare", str(traces / "a"), str(traces / "c"))
    assert (code, err) == (1, "")
    assert "First difference: step 0, forward: 1 LayerNorm (functional.layer_norm)" in out
    assert "  eps: 1e-05 in A, 0.1 in B" in out
    assert "Likely: changed epsilon." in out
    assert call(capsys, "compare", str(traces / "a"), str(traces / "c"), "--max-loss-diff", "90%")[0] == 0
    assert call(capsys, "compare", str(traces / "a"), str(traces / "c"), "--max-loss-diff", "0.001")[0] == 1


def test_random_numbers_are_told(traces, capsys) -> None:
    """Also with modules alone."""
    code, out, _ = call(capsys, "compare", str(traces / "a"), str(traces / "d"), "--format", "json")
    found = json.loads(out)
    assert (code, found["agrees"], found["parting"]["place"]) == (1, False, "2 Dropout")
    assert found["metrics"][0]["name"] == "loss"
    assert found["metrics"][0]["parts"] == 0


def test_tables_and_pages(traces, capsys, tmp_path) -> None:
    ends = str(traces / "a"), str(traces / "c")
    rows = list(csv.DictReader(io.StringIO(call(capsys, "compare", *ends, "--format", "csv")[1])))
    row = next(each for each in rows if each["Bench Name"] == "Module.1.LayerNorm.forward.0.output.0")
    assert row["NPU Name"] == row["Bench Name"]
    assert (row["NPU Dtype"], row["Bench Tensor Shape"], row["Result"]) == (
        "torch.float32",
        "[5, 8]",
        "different",
    )
    assert any(each["Bench Name"] == "Module.1.LayerNorm.backward.0.input.0" for each in rows)
    assert any(each["Bench Name"] == "Module.0.weight.parameters_grad" for each in rows)
    page = tmp_path / "page.html"
    code, out, err = call(capsys, "compare", *ends, "--format", "html", "-o", str(page))
    assert (code, out, err) == (1, "", f"npumigrate: written: {page}\n")
    assert page.read_text(encoding="utf-8").count("<polyline") == 4


def test_chinese(traces, capsys, monkeypatch) -> None:
    monkeypatch.setattr("migrator.language._catalogue", None)
    monkeypatch.setenv("NPUMIGRATE_LANG", "zh")
    assert "结论：两次运行不一致" in call(capsys, "compare", str(traces / "a"), str(traces / "c"))[1]


def test_wrong_use(traces, capsys, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "run.json").write_text('{"command": ["true"]}')
    a, here, none = str(traces / "a"), str(tmp_path), str(tmp_path / "none")
    for arguments, said in (
        (
            ("compare", a, none),
            f"{none} is not a trace: record one with npumigrate record -o {none} -- python train.py",
        ),
        (("compare", here, a), f"{here} is empty: no process of the run called a torch module"),
        (
            ("compare", a, a, "--max-loss-diff", "much"),
            "--max-loss-diff: 'much' is not a share, such as 2% or 0.02",
        ),
        (("compare", a, a, "--format", "html"), "--format html needs a file: -o compare.html"),
        (("record", "-o", here, "--", "true"), f"{here} contains files other than a trace: file"),
        (("record", "-o", none), "no program: npumigrate record -o TRACE -- python train.py"),
    ):
        assert call(capsys, *arguments) == (2, "", f"npumigrate: {said}\n")
    assert call(capsys, "record", "-o", none, "--", "no-such-program")[0] == 127


def test_a_damaged_trace_is_read_as_far_as_it_goes(traces, capsys, tmp_path) -> None:
    for path in (traces / "a").iterdir():
        data = path.read_bytes()
        (tmp_path / path.name).write_bytes(data if path.name == "run.json" else data[: len(data) // 2])
    code, out, _ = call(capsys, "compare", str(traces / "a"), str(tmp_path))
    assert code == 0
    assert "No call differs in" in out


@pytest.mark.parametrize(
    ("kind", "place", "wrong"),
    [
        ("api", 4, [None]),
        ("api", 4, ["a"]),
        ("module", 5, 10**30),
        ("grad", 1, {"a": 1}),
        ("root", 4, [["x", "y", 3]]),
        ("optimizer", 3, None),
        ("line", 2, "x"),
        ("module", 0, ["module"]),
    ],
)
def test_values_of_wrong_types_end_the_reading(traces, capsys, tmp_path, kind, place, wrong) -> None:
    (tmp_path / "run.json").write_bytes((traces / "a" / "run.json").read_bytes())
    (file,) = (traces / "a").glob("process-*")
    lines = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    next(row for line in lines[1:] for row in line["rows"] if row[0] == kind)[place] = wrong
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (tmp_path / file.name).write_bytes(gzip.compress(text.encode()))
    code, out, _ = call(capsys, "compare", str(traces / "a"), str(tmp_path))
    assert code in (0, 1, 2)
    assert ("is damaged" in out) == (code != 2)  # 2: nothing could be read


def test_curves() -> None:
    ours = "took 1.5 s, loss: 0.4000\nacc 91.5%\n"
    theirs = "took 9.5 s, loss: 0.4300\nacc 91.5%\n"
    loss, acc = curves(ours, theirs, 0.01)
    assert (loss.name, loss.values, loss.parts) == ("loss", ((0.4, 0.43),), 0)
    assert (acc.name, acc.values, acc.parts, acc.largest) == ("acc", ((91.5, 91.5),), None, 0.0)


TWO = """
import sys
import torch
from torch import nn

torch.manual_seed(0)
maker, judge = nn.Sequential(nn.Linear(4, 8)), nn.Sequential(nn.Linear(8, 1))
steps = [torch.optim.Adam(maker.parameters(), eps=float(sys.argv[2])), torch.optim.Adam(judge.parameters())]
for number in range(3):
    noise, real = torch.randn(6, 4), torch.randn(6, 8)
    for optimizer, fake in zip(steps[::-1], (lambda: maker(noise).detach(), lambda: maker(noise))):
        loss = judge(real).mean() - judge(fake()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
with torch.no_grad():
    print("end:", maker(noise).sum().item())
sys.exit(3)
"""


def test_two_optimizers(tmp_path, capsys) -> None:
    """A step is one of both; a model that is called twice before the first of them begins no step."""
    record(tmp_path / "a", eps="1e-8", program=TWO)
    record(tmp_path / "b", eps="1e-2", program=TWO)
    code, out, _ = call(capsys, "compare", str(tmp_path / "a"), str(tmp_path / "a"))
    assert code == 0
    assert "No call differs in 4 steps" in out
    code, out, _ = call(capsys, "compare", str(tmp_path / "a"), str(tmp_path / "b"))
    assert code == 1
    assert ", optimizer: Adam\n  eps: 1e-08 in A, 0.01 in B\n" in out


@pytest.mark.thorough
def test_a_cuda_program_against_an_emulated_npu(tmp_path, capsys) -> None:
    if find_spec("torch_npu") is None:
        pytest.skip("torch_npu is not installed")
    record(tmp_path / "a", "--same-random", "--with", "cpu", device="cuda")
    record(tmp_path / "b", "--same-random", "--with", "emulate", device="npu", auto="1")
    code, out, _ = call(capsys, "compare", str(tmp_path / "a"), str(tmp_path / "b"))
    assert code == 0, out
    assert "device: cpu in A, npu in B" in out
