"""Which script of a project the launcher starts."""

from __future__ import annotations

import pytest

from migrator.project.entry import candidate, ranked
from migrator.project.program_files import rows_of

GUARD = "if __name__ == '__main__':\n    main()\n"
TRAINS = "def main():\n    loss.backward()\n    optimizer.step()\n"
OPTIONS = "parser = argparse.ArgumentParser()\n"


def best(files: dict[str, str]) -> list[str]:
    found = [candidate(name, text) for name, text in files.items()]
    return [one.name for one in ranked(one for one in found if one)]


def test_the_script_that_trains_comes_first() -> None:
    files = {
        "main.py": OPTIONS + GUARD,
        "tools/train.py": TRAINS + GUARD,
        "train.py": TRAINS + OPTIONS + GUARD,
        "model.py": "class Model: ...\n",
        "train-all.py": GUARD,
    }
    assert best(files) == ["train.py", "tools/train.py", "main.py", "train-all.py"]


def test_a_script_without_a_main_block() -> None:
    assert best({"mnist.py": "for x, y in loader:\n    loss.backward()\n    optimizer.step()\n"}) == [
        "mnist.py"
    ]


def test_a_script_that_calls_its_trainer() -> None:
    assert best({"mnist.py": f"{TRAINS}trainer = Trainer()\ntrainer.fit()\n"}) == ["mnist.py"]
    assert best({"mnist.py": "model(x).sum().backward()\noptimizer.step()\n"}) == ["mnist.py"]
    assert best({"mnist.py": TRAINS.replace("main", "train_model") + "net = train_model(net)\n"}) == [
        "mnist.py"
    ]


def test_an_example_without_options_that_loads_its_own_data() -> None:
    example = f"def train(net): ...\nloader = DataLoader(data)\n{TRAINS}{GUARD}"
    assert best({"examples/mnist.py": example, "pkg/mnist.py": TRAINS + GUARD}) == ["examples/mnist.py"]


def test_a_script_whose_training_lies_in_its_imports() -> None:
    loop = "for epoch in range(9):\n    trainer.run_one_step()\n"
    assert best({"train.py": f"from trainers import T\ntrainer = T()\n{loop}"}) == ["train.py"]
    assert best({"train.py": "from detectors import D\nmodel = D()\nmodel.fit(rows)\n"}) == ["train.py"]
    assert best({"train_rows.py": "def fit(rows): ...\nARGS = parse_train_args()\n"}) == []
    assert best({"test.py": loop, "loop.py": loop, "train_utils.py": "def f():\n    for x in y: ...\n"}) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("setup.py", GUARD),
        ("evaluate.py", OPTIONS + GUARD),
        ("export_onnx.py", OPTIONS + GUARD),
        ("download_data.py", GUARD),
        ("pkg/loss_scaler.py", TRAINS + GUARD),  # tries itself out
        ("trainer_lib.py", "def fit(loss):\n    loss.backward()\n"),  # only defines
        (
            "wrapper.py",
            "torch.cuda.empty_cache()\nclass Wrapper:\n    def fit(loss):\n        loss.backward()\n",
        ),
        ("notes.txt", TRAINS + GUARD),
        ("tests/test_train.py", TRAINS + GUARD),
    ],
)
def test_what_is_no_training_script(name: str, text: str) -> None:
    assert best({name: text}) == []


def is_distributed(text: str) -> bool:
    rows = rows_of(text)
    return rows is not None and rows.distributed


@pytest.mark.parametrize(
    "text",
    [
        "import torch.distributed as dist\ndist.init_process_group('nccl')\n",
        "from torch import distributed\n\ndef start():\n    distributed.init_process_group('nccl')\n",
        "import torch\ntorch.distributed.init_process_group(backend='nccl')\n",
        "from torch.distributed import init_process_group as start\nstart()\n",
        "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(model)\n",
        "import torch.nn as nn\nmodel = nn.parallel.DistributedDataParallel(model)\n",
        "from accelerate import Accelerator\n",
        "import accelerate\naccelerator = accelerate.Accelerator()\n",
        "import lightning.pytorch as pl\n",
        "from pytorch_lightning import Trainer\n",
        "import horovod.torch as hvd\n",
        "try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\n",
        "from mmengine.runner import Runner\n",
        "from transformers import Trainer\n",
    ],
)
def test_what_sets_ranks_up(text: str) -> None:
    assert is_distributed(text)


@pytest.mark.parametrize(
    "text",
    [
        "model = torch.nn.DataParallel(model)\n",
        "# could be made faster with accelerate, lightning or deepspeed\nloss.backward()\n",
        '"""Not torch.distributed: no init_process_group, no DistributedDataParallel."""\n',
        "print('import horovod.torch as hvd')\n",
        "import torch.distributed as dist\nrank = dist.get_rank() if dist.is_initialized() else 0\n",
        "from torch.nn.parallel import DistributedDataParallel\nisinstance(m, DistributedDataParallel)\n",
        "from .lightning import flash\nlightning = flash()\n",
        "def init_process_group():\n    pass\n\n\ninit_process_group()\n",
        "from accelerate.utils import set_seed\n",
        "from mmengine.config import Config\n",
    ],
)
def test_what_only_looks_like_it(text: str) -> None:
    assert not is_distributed(text)


def test_an_escape_of_the_users_warns_nobody(recwarn: pytest.WarningsRecorder) -> None:
    assert is_distributed('import torch.distributed as dist\nx = "\\d"\ndist.init_process_group("nccl")\n')
    assert not recwarn.list


def test_a_module_that_only_defines_is_no_script() -> None:
    """Neither an indented assignment nor the words of a docstring start anything."""
    module = (
        '"""The trainer:\n\nfor a use see train.py\nwith its options\n"""\n\n\n'
        "def build_trainer(opt):\n    trainer = Trainer(opt)\n    return trainer\n\n\n" + TRAINS
    )
    assert best({"acme/trainer.py": module}) == []
