"""Values that one file keeps under a name and another reads as a device or a backend."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

LIGHTNING = "from lightning.pytorch import Trainer\nfrom example import more\nTrainer(**more)\n"


def test_a_word_of_a_library_that_another_file_imports() -> None:
    text = 'more = {"accelerator": "cuda", "device": "cuda"}\n'
    result = migrate(text, others=(LIGHTNING,))
    assert result.text == text.replace('"device": "cuda"', '"device": "npu"')
    left = [each for each in result.findings if each.code == "NPU123"]
    assert [each.message for each in left if "a library's word here" in each.message]
    assert migrated(text) == text.replace("cuda", "npu")


CONNECTOR = """\
import torch
def choose_gpu_accelerator():
    return "cuda"
class Connector:
    _accelerator_flag = "cuda"
    def device(self):
        if self._accelerator_flag in ("cuda", "gpu", "mps"):
            accelerator_device = "cuda"
        return accelerator_device
"""


def test_a_word_of_a_library_in_longer_names() -> None:
    imported = CONNECTOR.replace("import torch\n", "import torch\nimport torch_npu\n")
    only = imported.replace('accelerator_device = "cuda"', 'accelerator_device = "npu"')
    assert migrate(CONNECTOR, others=(LIGHTNING,)).text == only
    assert migrated(CONNECTOR) == imported.replace("cuda", "npu")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["MODEL.DEVICE", "cuda", "SOLVER.LR", 1]', '["MODEL.DEVICE", "npu", "SOLVER.LR", 1]'),
        ('["SOLVER.LR", 1, "MODEL.DEVICE", "cuda:1"]', '["SOLVER.LR", 1, "MODEL.DEVICE", "npu:1"]'),
        ('["MODEL.NAME", "cuda", "MODEL.DEVICE", "cpu"]', '["MODEL.NAME", "cuda", "MODEL.DEVICE", "cpu"]'),
        ('["model.device", "cuda"]', '["model.device", "cuda"]'),
    ],
)
def test_a_list_of_keys_and_values(before: str, after: str) -> None:
    head = "from detectron2.config import get_cfg\ndef f(cfg):\n    cfg.merge_from_list({})\n"
    assert migrated(head.format(before)).splitlines()[-1] == head.format(after).splitlines()[-1]
