"""Values that one file keeps under a name and another reads as a device or a backend."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

READS = """\
import torch
import torch.distributed as dist
from example import settings, Config, create_hparams
x = torch.ones(2).to(settings["run_on"])
y = torch.zeros(2, device=Config.spot)
d = torch.device(settings.get("where"))
hparams = create_hparams()
dist.init_process_group(backend=hparams.dist_way)
"""
PLAIN = "import torch\nfrom example import settings\nprint(settings['run_on'], torch.ones(2))\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('settings = dict(run_on="cuda")\n', 'settings = dict(run_on="npu")\n'),
        ('settings = {"where": "cuda"}\n', 'settings = {"where": "npu"}\n'),
        ('settings = {}\nsettings["run_on"] = "cuda"\n', 'settings = {}\nsettings["run_on"] = "npu"\n'),
        ('class Config:\n    spot: str = "cuda"\n', 'class Config:\n    spot: str = "npu"\n'),
        ('def make(dist_way="nccl"):\n    pass\n', 'def make(dist_way="hccl"):\n    pass\n'),
    ],
)
def test_what_another_file_reads_as_a_device_is_one(before: str, after: str) -> None:
    assert migrated(before, others=(READS,)) == after
    assert migrated(before, others=(PLAIN,)) == before


def test_other_names_stay() -> None:
    text = 'settings = dict(title="cuda", run_on_text="cuda", mode="cuda")\n'
    assert migrated(text, others=(READS, "import torch\nx = torch.ones(1).to(settings.mode)\n")) == text


SETTINGS = """\
import tensorflow as tf
def create_hparams():
    return tf.contrib.training.HParams(epochs=500, dist_way="nccl", title="cuda")
"""


def test_settings_in_a_class_of_another_framework() -> None:
    result = migrate(SETTINGS, others=(READS,))
    assert result.text == SETTINGS.replace("nccl", "hccl")
    assert "NPU1250" not in {finding.code for finding in result.findings}


def test_a_program_of_another_framework_stays() -> None:
    result = migrate(SETTINGS, others=(PLAIN,))
    assert result.text is None
    assert [finding.code for finding in result.findings] == ["NPU1250"]


TAKES = """\
import torch
from typing import Dict
def evaluate(model, options: Dict[str, int], device="cpu"):
    return model.to(device)
class Trainer:
    def __init__(self, model, device: str = "cpu", *rest):
        self.model = model.to(device)
def every(*models, device="cpu"):
    pass
"""


@pytest.mark.parametrize(
    ("call", "changes"),
    [
        ('evaluate(model, {}, "cuda:1")', True),
        ('Trainer(model, "cuda")', True),
        ('evaluate(model, "cuda")', False),
        ('every(model, "cuda")', False),
        ('other(model, {}, "cuda")', False),
    ],
)
def test_an_argument_that_a_function_elsewhere_takes_as_a_device(call: str, changes: bool) -> None:
    text = f"import torch\nfrom other0 import Trainer, evaluate, every, other\n{call}\n"
    assert migrated(text, others=(TAKES,)).splitlines()[-1] == (
        call.replace("cuda", "npu") if changes else call
    )


def test_a_slice_of_what_is_a_device_by_its_use() -> None:
    text = (
        'def start(options):\n    return int(options.spot[5:]) if options.spot.startswith("cuda") else None\n'
    )
    after = text.replace("[5:]", "[4:]").replace("cuda", "npu")
    assert migrated(text, others=(READS,)) == after
    assert migrated(text, others=(PLAIN,)) == text


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
