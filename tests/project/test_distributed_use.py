"""Whether a file shows that its program trains on many cards already."""

from __future__ import annotations

import pytest

from migrator.project.program_files import rows_of


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
