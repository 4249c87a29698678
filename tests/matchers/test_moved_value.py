"""MindSpore's device target and backend: where a string is one, and where it is something else."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrated

HEAD = "import mindspore as ms\n"


@pytest.mark.parametrize(
    "text",
    [
        'ms.set_context(device_target="GPU" if fast else "CPU")',
        'config = {"device_target": "GPU"}',
        'config["device_target"] = "GPU"',
        'def run(device_target="GPU", *, n=1): pass',
        'target = os.getenv("DEVICE_TARGET", "GPU")',
        'if args.device_target in ("GPU", "CPU"): pass',
        'if config["device_target"] != "GPU": pass',
        'if ms.get_context("device_target").upper() == "GPU": pass',
        'parser.set_defaults(device_target="GPU")',
        'flags.DEFINE_enum("device_target", "GPU", ["GPU", "CPU"], "where")',
        'init_dist(backend="nccl")',
    ],
)
def test_values_that_move(text: str) -> None:
    after = text.replace("GPU", "ASCEND" if ".upper()" in text else "Ascend").replace("nccl", "hccl")
    assert migrated(f"{HEAD}{text}\n") == f"{HEAD}{after}\n"


@pytest.mark.parametrize(
    "text",
    [
        'print("GPU")',
        'names = ["GPU", "CPU"]',
        'parser.add_argument("--note", default="GPU")',
        'parser.add_argument("--device_target", help="GPU")',
        'if args.device_target in ("Ascend", "GPU"): pass',
        'if kind == "GPU": pass',
        'log.info("GPU", device_target)',
        'ms.set_context(mode="GPU")',
        'size = {"GPU": 1}[name]',
        'if target == "Ascend":\n    init()\nelse:\n    assert target == "GPU"\n    init("nccl")',
    ],
)
def test_values_that_stay(text: str) -> None:
    assert migrated(f"{HEAD}{text}\n") == f"{HEAD}{text}\n"


def test_a_file_of_pytorch_is_one_in_every_project() -> None:
    text = "import torch\nx = torch.ones(1).cuda()\n"
    assert migrated(text, others=(HEAD,)) == migrated(text)


def test_a_program_of_pytorch_keeps_such_names() -> None:
    text = 'import torch\nconfig = {"device_target": "GPU"}\n'
    assert migrated(text) == text
