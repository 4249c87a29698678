"""Programs of Lightning: the module by which it finds NPUs, and the import of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.reading import python_files, rows

MODEL = "import pytorch_lightning as pl\n\n\nclass Net(pl.LightningModule):\n    pass\n"
TRAIN = (
    "import hydra\nfrom lightning import LightningModule, Trainer\nfrom acme.net import Net\n\n\n"
    "def main(cfg):\n    trainer: Trainer = hydra.utils.instantiate(cfg.trainer)\n    trainer.fit(Net())\n"
)
SETTINGS = "trainer:\n  _target_: lightning.Trainer\n  accelerator: gpu\n  devices: 2\n"
FILES = {"acme/__init__.py": "", "acme/net.py": MODEL, "train.py": TRAIN, "conf/trainer.yaml": SETTINGS}
IMPORT = "import ascend_lightning\n"
TRAINER = "import torch\nfrom lightning import Trainer\ntrainer = Trainer(accelerator='gpu')\n"


def rules_in(result: Path, table: str) -> list[str]:
    return [row["Rule"] for row in rows(result, table)]


def test_the_file_with_the_trainer_imports_the_module(result_of) -> None:
    result = result_of(FILES)
    assert (result / "train.py").read_text() == TRAIN.replace("Net\n\n\ndef", f"Net\n{IMPORT}\n\ndef", 1)
    assert (result / "acme/net.py").read_text() == MODEL
    assert (result / "conf/trainer.yaml").read_text() == SETTINGS
    assert [path.name for path in result.rglob("ascend_lightning.py")] == ["ascend_lightning.py"]
    assert (result / "ascend_lightning.py").is_file()
    assert rules_in(result, "change_list") == ["NPU616"]
    assert not {"NPU429", "NPU616"} & {
        *rules_in(result, "unsupported_api"),
        *rules_in(result, "manual_review"),
    }


def test_in_a_package_the_module_lies_beside_what_is_imported(result_of) -> None:
    text = "import pytorch_lightning as pl\nfrom . import data\n\ntrainer = pl.Trainer(accelerator='gpu')\n"
    result = result_of({"acme/__init__.py": "", "acme/data.py": "", "acme/run.py": text})
    assert "from . import ascend_lightning\n" in (result / "acme/run.py").read_text()
    assert (result / "acme/ascend_lightning.py").is_file()


def test_a_second_migration_changes_nothing(result_of) -> None:
    first = result_of(FILES)
    files = python_files(first)
    second = result_of(files, name="again")
    assert python_files(second) == files
    assert rules_in(second, "change_list") == []


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ({}, ("--safe-only",)),
        ({}, ("--ignore", "NPU616")),
        ({}, ("--mode", "transfer")),
        ({"requirements.txt": "pytorch-lightning==1.9.5\n"}, ()),
        ({"old.py": "from lightning import Trainer\ntrainer = Trainer(gpus=1)\n"}, ()),
        ({"ascend_lightning.py": "mine = 1\n"}, ()),
    ],
)
def test_where_it_does_not_help_nothing_is_added(
    result_of, more: Mapping[str, str], options: tuple[str, ...]
) -> None:
    result = result_of({**FILES, **more}, *options)
    assert IMPORT not in (result / "train.py").read_text()
    added = result / "ascend_lightning.py"
    assert not added.exists() or added.read_text() == "mine = 1\n"
    reads_settings = "transfer" not in options
    assert ("NPU429" in rules_in(result, "unsupported_api")) == reads_settings


def test_a_file_for_lightning_1_does_not_count_where_version_2_is_wanted(result_of) -> None:
    old = {"old.py": "from lightning import Trainer\ntrainer = Trainer(gpus=1)\n"}
    result = result_of({**FILES, **old, "requirements.txt": "lightning==2.5.0\n"})
    assert IMPORT in (result / "train.py").read_text()


def test_what_uses_no_trainer_gets_nothing(result_of) -> None:
    result = result_of({"net.py": MODEL, "run.py": "import net\n"})
    assert not (result / "ascend_lightning.py").exists()


def test_a_notebook_alone_gets_the_module(result_of) -> None:
    cell = {"cell_type": "code", "source": TRAINER, "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    result = result_of({"train.ipynb": json.dumps(notebook)})
    assert "import ascend_lightning" in (result / "train.ipynb").read_text()
    assert (result / "ascend_lightning.py").is_file()
