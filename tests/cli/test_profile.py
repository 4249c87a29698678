"""``npumigrate profile`` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.profile import made

OUTPUT = "ASCEND_PROFILER_OUTPUT"


@pytest.fixture
def npu(tmp_path: Path) -> Path:
    return made.npu_profile(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{}", b"[", b"[1, {", b"\x1f\x8b", b"[nonsense]"])
@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_what_is_no_trace_is_one_line(tmp_path: Path, npumigrate, name: str, content: bytes) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    answer = npumigrate("profile", file)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert "internal" not in answer.err


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda place: None, "no such file or folder"),
        (lambda place: place.mkdir(), "expected a folder …_ascend_pt"),
        (lambda place: (place / "FRAMEWORK").mkdir(parents=True), "is not analysed yet"),
        (lambda place: (place / "a_1_ascend_pt" / "FRAMEWORK").mkdir(parents=True), "is not analysed yet"),
        (lambda place: (place / OUTPUT).mkdir(parents=True), "contains no step times"),
    ],
)
def test_a_folder_without_a_profile_is_one_line(tmp_path: Path, make, said: str, npumigrate) -> None:
    make(tmp_path / "prof")
    answer = npumigrate("profile", tmp_path / "prof")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert said in answer.err


def test_the_formats_say_the_same(npu: Path, tmp_path: Path, npumigrate) -> None:
    text = npumigrate("profile", npu).out
    markdown = npumigrate("profile", npu, "--format", "md").out
    content = json.loads(npumigrate("profile", npu, "--format", "json").out)
    for said in ("50.0%       50 ms  computing", "13.0%       13 ms  waiting for the host"):
        assert said in text
        assert said in markdown
    assert "  kernel MatMulV2 AI_CORE: 30 ms, calls: 1\n" in text
    assert "  operator aten::addmm: 30 ms, calls: 1  /home/me/proj/model.py:41 forward\n" in text
    assert "## What to change\n\n- 1. up to 15 ms (15%): " in markdown
    assert (content["schema"], content["step"], content["emulated"]) == (1, 100000, False)
    assert content["advice"][0]["gain"] == 15000
    against = npumigrate(
        "profile", npu, "--against", made.cuda_trace(tmp_path / "c.json.gz"), "--format", "json"
    )
    assert json.loads(against.out)["against"]["operators"][0]["operator"] == "aten::addmm"


def test_it_speaks_chinese(npu: Path, npumigrate, monkeypatch: pytest.MonkeyPatch) -> None:
    from migrator import language

    monkeypatch.setenv("NPUMIGRATE_LANG", "zh")
    monkeypatch.setattr(language, "_catalogue", None)
    out = npumigrate("profile", npu).out
    assert "等待主机" in out
    assert "waiting for" not in out
