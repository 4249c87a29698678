"""Names of apex that torch has too: which of a file's move, and which stay with what is said of them."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

TORCH = "import torch\n"


def codes(text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in migrate(text).findings]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            "from apex.optimizers import FusedLAMB, FusedAdam\nx = FusedAdam(p, 0.1), FusedLAMB(p)\n",
            "from apex.optimizers import FusedLAMB\nfrom torch.optim import AdamW as FusedAdam\n"
            "x = FusedAdam(p, 0.1, weight_decay=0.0), FusedLAMB(p)\n",
        ),
        (
            "from apex.parallel import DistributedDataParallel as DDP\n"
            "def f(net: DDP, late):\n    return DDP(net, delay_allreduce=late), isinstance(net, DDP)\n",
            "from torch.nn.parallel import DistributedDataParallel as DDP\n"
            "def f(net: DDP, late):\n"
            "    return DDP(net, find_unused_parameters=late, broadcast_buffers=False),"
            " isinstance(net, DDP)\n",
        ),
        (
            "from apex import RNN, parallel\nnet = parallel.convert_syncbn_model(net)\nRNN.f(net)\n",
            "from apex import RNN\nnet = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)\nRNN.f(net)\n",
        ),
        (
            "import os, apex\nnet = apex.parallel.SyncBatchNorm(4, channel_last=False)\n",
            "import os\nnet = torch.nn.SyncBatchNorm(4)\n",
        ),
        (
            "import apex\nnet = apex.parallel.SyncBatchNorm(4)\nprint(apex.amp)\n",
            "import apex\nnet = torch.nn.SyncBatchNorm(4)\nprint(apex.amp)\n",
        ),
        (
            "from apex.normalization import FusedLayerNorm\nNorm = FusedLayerNorm\nx = Norm(4)\n",
            "from torch.nn import LayerNorm as FusedLayerNorm\nNorm = FusedLayerNorm\nx = Norm(4)\n",
        ),
    ],
)
def test_what_moves(text: str, after: str) -> None:
    assert migrated(TORCH + text) == TORCH + after


@pytest.mark.parametrize(
    "text",
    [
        "from apex.optimizers import FusedAdam\nx = FusedAdam(p, bias_correction=False)\n",
        "from apex.optimizers import FusedAdam\nx = FusedAdam(p, 0.1, True)\n",
        "from apex.optimizers import FusedAdam\nx = FusedAdam(p, adam_w_mode=decoupled)\n",
        "from apex.optimizers import FusedAdam\nx = FusedAdam(p, adam_w_mode=False), FusedAdam(p)\n",
        "from apex.optimizers import FusedAdam\nmake = FusedAdam\nx = make(p)\n",
        "from apex.normalization import FusedLayerNorm as Norm\nmake = Norm\n"
        "x = make(4, memory_efficient=True)\n",
        "from apex.normalization import FusedRMSNorm\nlayers(norm=FusedRMSNorm)\n",
        "from apex.parallel import DistributedDataParallel as DDP\nx = DDP(net, **settings)\n",
        "from apex.parallel import DistributedDataParallel as DDP\nx = DDP(net, gradient_average=False)\n",
        "from apex.parallel import convert_syncbn_model\nx = convert_syncbn_model(net, channel_last=True)\n",
        "from apex.parallel import convert_syncbn_model\nSyncBatchNorm = 1\nx = convert_syncbn_model(net)\n",
        "def f():\n    global DDP\n"
        "    from apex.parallel import DistributedDataParallel as DDP\n    DDP(net)\n",
        "if is_apex_available():\n    from apex.optimizers import FusedSGD\n    x = FusedSGD(p, 0.1)\n",
        "try:\n    from apex.optimizers import FusedSGD\n    there = True\n"
        "except ImportError:\n    there = False\n"
        "if there:\n    x = FusedSGD(p, 0.1)\n",
    ],
)
def test_what_stays_is_reported(text: str) -> None:
    assert migrated(TORCH + text) == TORCH + text
    line = next(n for n, each in enumerate(text.split("\n"), 2) if "import " in each)
    assert (line, "NPU645") in codes(TORCH + text)
    assert "NPU601" not in {code for _, code in codes(TORCH + text)}


def test_torch_has_to_be_there_for_what_is_written_in_full() -> None:
    text = "import apex\nnet = apex.parallel.convert_syncbn_model(net)\n"
    assert migrated(text) == text
    assert codes(text) == [(1, "NPU601"), (2, "NPU645")]


def test_an_import_that_goes_is_not_reported() -> None:
    text = TORCH + "import apex\nnet = apex.parallel.convert_syncbn_model(net)\n"
    assert codes(text) == [(2, "NPU645"), (3, "NPU645")]


def test_a_package_of_the_project_stays() -> None:
    text = TORCH + "from .apex.parallel import convert_syncbn_model\nx = convert_syncbn_model(net)\n"
    assert (migrated(text), codes(text)) == (text, [])
