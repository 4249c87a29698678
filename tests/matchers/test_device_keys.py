"""Values that one file keeps under a name and another reads as a device or a backend."""

from __future__ import annotations

from tests.matchers.migrating import migrate, migrated

LIGHTNING = "from lightning.pytorch import Trainer\nfrom example import more\nTrainer(**more)\n"


def test_a_word_of_a_library_that_another_file_imports() -> None:
    text = 'more = {"accelerator": "cuda", "device": "cuda"}\n'
    result = migrate(text, others=(LIGHTNING,))
    assert result.text == text.replace('"device": "cuda"', '"device": "npu"')
    left = [each for each in result.findings if each.code == "NPU123"]
    assert [each.message for each in left if "a term of that library" in each.message]
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


def test_advice_fits_the_lightning_that_a_program_is_written_for() -> None:
    old = "import pytorch_lightning as pl\npl.Trainer(gpus=2, distributed_backend='ddp')\n"
    unknown = "import pytorch_lightning as pl\npl.Trainer(max_epochs=1)\n"
    for text, beginning in ((old, "Lightning 1 knows GPUs"), (unknown, "Give it an Accelerator of your own")):
        (advice,) = [each.advice for each in migrate(text).findings if each.code == "NPU616"]
        assert advice.startswith(beginning)
        assert "Lightning 2" in advice


def test_a_word_of_lightning_is_no_device_to_be_written() -> None:
    text = "import pytorch_lightning as pl\npl.Trainer(accelerator='cuda', devices=1)\n"
    (found,) = [each for each in migrate(text).findings if each.code == "NPU123"]
    assert "a term of that library" in found.message
    assert "torch device" in found.advice
