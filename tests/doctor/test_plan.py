"""What goes together, from the tables: versions, install commands and what cannot be met."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from migrator.api_support.companions import companions, of_torch_npu, order
from migrator.doctor.plan import make_plan
from migrator.language import MessageError

SET_ENV = "/usr/local/Ascend/ascend-toolkit/set_env.sh"


def plan(wishes: str, arch: str = "x86_64") -> dict[str, Any]:
    return make_plan(wishes, arch, SET_ENV)


def versions(wishes: str) -> dict[str, str]:
    return {part["name"]: part["version"] for part in plan(wishes)["parts"]}


def commands(found: dict[str, Any]) -> list[str]:
    return [line for step in found["steps"] for line in step["lines"] if not line.startswith("#")]


@pytest.mark.parametrize(
    ("wishes", "expected"),
    [
        ("torch 2.8, vllm-ascend", "vllm-ascend 0.13.0 torch_npu 2.8.0.post2 CANN 8.5.0 triton-ascend 3.2.0"),
        ("vllm", "vllm-ascend 0.23.0 torch 2.10.0 torch_npu 2.10.0.post4 CANN 9.1.0 triton-ascend 3.2.2"),
        ("vllm-ascend 0.18", "vllm-ascend 0.18.0 torch_npu 2.9.0 CANN 8.5.1"),  # not the CANN of torch_npu
        ("vllm-ascend==0.18.0rc1", "vllm-ascend 0.18.0rc1"),
        ("torch 2.6", "torch_npu 2.6.0.post5 torchvision 0.21.0 CANN 8.5.0 Python 3.11"),
        ("torch 2.8", "torch_npu 2.8.0.post4"),  # no table names the CANN of post5
        ("torch 2.13, python 3.12", "torch_npu 2.13.0 Python 3.12 CANN "),
        ("mindspeed-llm", "mindspeed 26.1.0_core_r0.12.1 torch_npu 2.7.1.post8 triton-ascend 3.2.2"),
        ("mindspeed, cann 8.5", "mindspeed 26.1.0_core_r0.12.1 torch_npu 2.7.1.post2 CANN 8.5.0"),
        ("triton-ascend 3.2.0", "torch_npu 2.9.0 CANN 8.5.0"),
        ("mx_driving", "mx_driving 26.2.0.post2 torch 2.8.0"),
        ("drivingsdk, torch 2.1", "mx_driving 26.2.0.post1"),
        ("apex, torch 2.7", "apex 0.1+ascend Python 3.10"),
        ("torchair, torch 2.6", "torch_npu 2.6.0.post5"),
        ("driver 24.1, torch 2.6", "CANN 8.2.RC1 torch_npu 2.6.0"),  # 8.5.0 does not work with it
        ("deepspeed, torch 2.9", "deepspeed 0.19.8 torch_npu 2.9.0.post6"),
    ],
)
def test_what_is_chosen(wishes: str, expected: str) -> None:
    words = f"{expected} ".split(" ")
    found = versions(wishes)
    assert {name: found[name] for name in words[:-1:2]} == dict(zip(words[::2], words[1::2]))
    assert plan(wishes)["unmet"] == []


def test_commands_of_a_plan() -> None:
    assert commands(plan("torch 2.8, vllm-ascend")) == [
        f"source {SET_ENV}",
        "python3.11 -m venv npu",
        ". npu/bin/activate",
        "pip install vllm==0.13.0",
        "pip uninstall -y triton",
        "pip install vllm-ascend==0.13.0 --extra-index-url https://download.pytorch.org/whl/cpu",
    ]
    assert commands(plan("torch 2.6, torchaudio"))[-2:] == [
        "pip install torch==2.6.0 torchvision==0.21.0 torchaudio==2.6.0"
        " --index-url https://download.pytorch.org/whl/cpu",
        "pip install torch_npu==2.6.0.post5",
    ]
    # mindspeed is needed by mindspeed-llm, and goes first.
    clones = [line.split("/")[-1] for line in commands(plan("mindspeed-llm")) if line.startswith("git clone")]
    assert clones == ["MindSpeed.git", "Megatron-LM.git", "MindSpeed-LLM.git"]


def test_each_part_says_why() -> None:
    why = {part["name"]: part["why"] for part in plan("torch 2.8, vllm-ascend")["parts"]}
    assert why["torch"] == "as wished"
    assert why["torch_npu"] == why["CANN"] == "vllm-ascend 0.13.0 requires it"
    assert "versioning policy" in why["vllm-ascend"]
    assert "CANN 8.5.0 works with 25.0.X" in why["Ascend HDK"]


def test_images_are_for_the_architecture() -> None:
    assert plan("mindspeed 26.0", "aarch64")["images"] == [
        "mindspeed-core:26.0.0_core_r0.12.1-910b-openeuler24.03-py3.11-aarch64"
    ]
    assert plan("mindspeed 26.0", "x86_64")["images"] == []
    assert plan("torch 2.12, arm64")["arch"] == "aarch64"
    assert plan("torch 2.12")["images"] == [
        "quay.io/ascend/torch-npu:2.12.0-cann9.1.0-910b-ubuntu22.04-py3.12"
    ]


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        (
            "torch 2.7, vllm-ascend 0.18",
            [
                "vllm-ascend 0.18 is not available; the nearest is vllm-ascend 0.11.0",
                "vllm-ascend 0.18.0 requires torch 2.9.0; CANN 8.5.1, 9.0.0; Python 3.10, 3.11",
            ],
        ),
        ("torch 3.0", ["torch 3.0 is not available; the nearest is torch 2.14.0"]),
        ("python 3.6", ["Python 3.6 is not available; the nearest is Python 3.7"]),
        ("cann 99", ["CANN 99 is not available; the nearest is CANN 9.1.0"]),
        ("driver 10", ["Ascend HDK 10 is not available; the nearest is Ascend HDK 24.1.RC"]),
        (
            "torch 2.8, mindspeed, python 3.12",  # a wished package is not left out for a version
            [
                "torch 2.8 is not available; the nearest is torch 2.7.1",
                "Python 3.12 is not available; the nearest is Python 3.11",
                "mindspeed 26.1.0_core_r0.12.1 requires torch 2.7.1; CANN 9.1.0, 9.0.0, 8.5.0, 8.3.RC1;"
                " Python 3.10, 3.11",
            ],
        ),
        (
            "mindspeed-llm 2.2, vllm 0.23",
            ["vllm-ascend 0.23 is not available; the nearest is vllm-ascend 0.11"],
        ),
        ("mindie, torch 2.1", ["mindie-torch is left out: its releases are not published as a table"]),
    ],
)
def test_what_cannot_be_met_is_said(wishes: str, said: list[str]) -> None:
    found = plan(wishes)["unmet"]
    assert [each for each, line in zip(said, found) if not line.startswith(each)] == [], found
    assert len(found) >= len(said)


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ("", "give 1 to 8 requirements"),
        (",".join(["torch"] * 2), "torch is given twice"),
        ("torch 2.8 vllm", "'torch 2.8 vllm' is not a requirement"),
        ("2.8", "'2.8' is not a requirement"),
        ("vlm-ascend", "the release tables do not contain vlm-ascend (they contain torch, "),
        ("aarch64", "give 1 to 8 requirements"),
    ],
)
def test_bad_wishes_are_one_line(wishes: str, said: str) -> None:
    with pytest.raises(MessageError) as error:
        plan(wishes)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_every_release_can_be_planned_or_is_refused_by_a_line() -> None:
    for row in companions():
        if row.package != "torch_npu":
            found = plan(f"{row.package} {row.version}".strip())
            # What names a torch_npu that is on no index is not planned.
            on_index = any(".dev" not in each and of_torch_npu(each) for each in row.torch_npu)
            assert bool(found["unmet"]) == (row.torch_npu != () and not on_index), row


def test_the_lines_are_a_script() -> None:
    lines = [line for step in plan("apex, deepspeed, mx_driving")["steps"] for line in step["lines"]]
    assert subprocess.run(["bash", "-n"], input="\n".join(lines), text=True).returncode == 0


def test_versions_are_sorted() -> None:
    given = "2.1.0rc1 2.1.0 2.1.0.post4 2.1.0.post10 2.2.0 8.2.RC1 8.2.0 25.0.X 25.0.rc1.1 25.0.0 25.5.0"
    assert sorted(given.split(), key=order) == given.split()
