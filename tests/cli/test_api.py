"""``npumigrate api`` as a user sees it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def test_a_page(npumigrate) -> None:
    answer = npumigrate("api", "torch.cuda.nvtx.range_push")
    assert answer.code == 0
    for said in ("no NPU equivalent", "mstx", "the CUDA name raises", "unsupported", "Sources"):
        assert said in answer.out
    assert "\x1b" not in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


def test_at_a_version(npumigrate) -> None:
    answer = npumigrate("api", "torch.cdist", "-v", "2.4")
    assert answer.out.splitlines()[0] == "torch.cdist  at torch 2.4.0, torch_npu 2.4.0.post4"
    assert "unsupported (the documents of torch 2.1.0 and 2.6.0)" in answer.out
    assert "2.7.1" not in answer.out


def test_the_verdict_is_one_word_for_each_range_of_versions(npumigrate) -> None:
    lines = [line.split() for line in npumigrate("api", "torch.cdist").out.splitlines()]
    first = lines.index(["Verdict", "up", "to", "2.0.1", "supported"])
    assert ["2.1.0", "–", "2.6.0", "unsupported"] in lines[first:]


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("torch.cuda.nvtx.range_push", "absent"),
        ("torch.cuda.synchronize", "supported"),
        ("torch.nn.LSTM", "partial"),
        ("torch.nn.Conv2d", "supported"),  # its limits are remarks
        ("torch.cdist", "unsupported"),
        ("torch.Tensor.heaviside", "fallback"),
        ("torch.nn.FractionalMaxPool2d", "fallback"),
    ],
)
def test_the_verdict_at_a_version(npumigrate, name, verdict) -> None:
    assert f"Verdict      {verdict}" in npumigrate("api", name, "-v", "2.6").out.splitlines()


@pytest.mark.parametrize(
    ("name", "version", "said"),
    [
        ("torch.compile", "1.11", "absent: first in torch 2.0"),
        ("torch.amp.GradScaler", "2.2", "absent: first in torch 2.3"),
        ("torch.nn.Module.compile", "1.11", "absent: first in torch 2.1"),
        ("torch._six", "2.6", "absent: last in torch 1.13"),
        ("torchvision.transforms.v2", "1.11", "absent: first in torch 2.0"),
    ],
)
def test_a_name_that_the_torch_lacks(npumigrate, name, version, said) -> None:
    answer = npumigrate("api", name, "-v", version)
    assert answer.code == 0
    assert f"Verdict      {said}" in answer.out.splitlines()
    assert answer.out.splitlines()[1].startswith("Not in torch ")
    at = json.loads(npumigrate("api", name, "-v", version, "--json").out)["answers"][0]["at"]
    assert f"{at['verdict']}: {at['absence']}" == said


def test_since_when_a_name_is_there(npumigrate) -> None:
    lines = npumigrate("api", "torch.compile").out.splitlines()
    assert lines[3:5] == ["In torch     from 2.0.1 on", "Verdict      up to 1.11.0     absent"]
    # A name that every version has needs no such line.
    assert "In torch" not in npumigrate("api", "torch.nn.Linear").out


def test_a_torch_without_torch_npu(npumigrate) -> None:
    answer = npumigrate("api", "torch.add", "-v", "1.12")
    assert answer.code == 2
    assert "torch_npu has no release for torch 1.12: choose the nearest, 1.11.0 and 2.0.1" in answer.err


def test_an_unknown_name_of_a_module_without_npu_form_may_be_a_slip(npumigrate) -> None:
    answer = npumigrate("api", "torch.cuda.nvtx.rangepush")
    said = " ".join(answer.out.split())
    assert answer.code == 0
    assert "the following holds for all of torch.cuda.nvtx; did you mean torch.cuda.nvtx.range_push?" in said
    assert "not known" not in npumigrate("api", "torch.cuda.Event.query").out


def test_limits_are_in_words(npumigrate) -> None:
    answer = npumigrate("api", "torch.concat", "-v", "2.7.1")
    assert "not on 950DT: complex64" in answer.out
    assert "dtype_hw" not in answer.out


@pytest.mark.parametrize(
    "name", ["nn.functional.scaled_dot_product_attention", "CUDA_VISIBLE_DEVICES", "torch.cuda.CUDAGraph"]
)
def test_every_page_fits_into_80_columns(npumigrate, name) -> None:
    assert max(map(len, npumigrate("api", name).out.splitlines())) <= 80


def test_a_pattern(npumigrate) -> None:
    answer = npumigrate("api", "torch.cuda.nvtx.*", "-v", "2.6")
    lines = answer.out.splitlines()
    assert lines[0].split() == ["torch.cuda.nvtx.mark", "torch.npu.mstx.mark"]
    assert "torch.cuda.nvtx.range_pop    no NPU equivalent" in lines
    assert lines[-1] == "6 names, at torch 2.6.0 with torch_npu 2.6.0.post5"


def test_a_pattern_shows_the_verdicts(npumigrate) -> None:
    lines = npumigrate("api", "torch.nn.*MaxPool2d", "-v", "2.6").out.splitlines()
    # Of this one only old documents speak.
    assert lines[1].split() == ["torch.nn.FractionalMaxPool2d", "fallback"]
    assert lines[-1].startswith("3 names and 6 other spellings, at torch 2.6.0")


def test_json(npumigrate) -> None:
    answer = npumigrate("api", "torch.cdist", "-v", "2.7.1", "--json")
    content = json.loads(answer.out)
    assert content["torch"] == "2.7.1"
    assert content["answers"][0]["at"]["dtypes"] == ["bf16+fp16+fp32"]
    assert content["answers"][0]["registered"][0]["kind"] == "kernel"
    assert len(json.loads(npumigrate("api", "torch.cuda.nvtx.*", "--json").out)["answers"]) == 6


@pytest.mark.parametrize("arguments", [[], ["-v", "2.6"]])
def test_an_unknown_name_is_exit_1(npumigrate, arguments) -> None:
    answer = npumigrate("api", "torch.cuda.sychronize", *arguments)
    assert (answer.code, answer.out) == (1, "")
    assert "torch.cuda.synchronize" in answer.err
    assert len(answer.err.splitlines()) == 1
    answer = npumigrate("api", "torch.cuda.sychronize", "--json", *arguments)
    assert answer.code == 1
    assert json.loads(answer.out)["nearest"][0] == "torch.cuda.synchronize"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(["--json"], "NAME"), (["torch.add", "-v", "0.1"], "0.1"), (["torch.add", "torch.mul"], "torch.mul")],
)
def test_wrong_use(npumigrate, arguments, named) -> None:
    answer = npumigrate("api", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert named in answer.err
    assert len(answer.err.splitlines()) == 1


def test_nothing_heavy_is_imported() -> None:
    heavy = ["pandas", "jedi", "libcst", "torch", "numpy", "yaml", "rich"]
    code = (
        "import sys; from migrator.cli.main import run; run(['api', 'torch.cdist']);"
        f"print([name for name in {heavy} if name in sys.modules], file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stderr.strip() == "[]"
