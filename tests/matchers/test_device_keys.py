"""Values that one file keeps under a name and another reads as a device or a backend."""

from __future__ import annotations

from dataclasses import replace

from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import migrate_text
from tests.matchers.migrating import engine, migrate, migrated

LIGHTNING = "from lightning.pytorch import Trainer\nfrom example import more\nTrainer(**more)\n"


def test_a_word_of_a_library_that_another_file_imports() -> None:
    text = 'more = {"accelerator": "cuda", "device": "cuda"}\n'
    result = migrate(text, others=(LIGHTNING,))
    assert result.text == text.replace('"device": "cuda"', '"device": "npu"')
    assert not [each for each in result.findings if each.code == "NPU123"]
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


def test_the_words_of_a_library_are_migrated_with_it() -> None:
    facts = [scan_file("src/lightning/choose.py", CONNECTOR), scan_file("examples/train.py", LIGHTNING)]
    for package, left in (("src/lightning", 0), ("src/lightning_tools", 3)):
        project = replace(merge_facts(facts), packages=frozenset({package}))
        result = migrate_text(engine("2.6"), "src/lightning/choose.py", CONNECTOR, project)
        assert result.text is not None
        assert result.text.count('"cuda"') == left


def test_advice_fits_the_lightning_that_a_program_is_written_for() -> None:
    old = "import pytorch_lightning as pl\npl.Trainer(gpus=2, distributed_backend='ddp')\n"
    unknown = "import pytorch_lightning as pl\npl.Trainer(max_epochs=1)\n"
    for text, beginning in ((old, "Lightning 1 supports GPUs"), (unknown, "Pass it your own Accelerator")):
        (advice,) = [each.advice for each in migrate(text).findings if each.code == "NPU616"]
        assert advice.startswith(beginning)
        assert "Lightning 2" in advice


def test_a_word_of_lightning_is_no_device_to_be_written() -> None:
    text = "import pytorch_lightning as pl\npl.Trainer(accelerator='cuda', devices=1)\n"
    assert not [each for each in migrate(text).findings if each.code == "NPU123"]
