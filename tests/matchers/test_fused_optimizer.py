"""A fused optimizer, and a GradScaler of another file."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrated

MODEL = """\
import torch
def configure(net, device_type):
    extra = dict(fused=True) if device_type == "cpu" else dict()
    return torch.optim.AdamW(net.parameters(), lr=1e-3, **extra)
"""


@pytest.mark.parametrize(
    "train",
    [
        "import torch\nscaler = torch.cuda.amp.GradScaler(enabled=half)\n",
        "from torch.cuda import amp\nscaler = amp.GradScaler()\n",
        "from torch.cuda.amp import autocast, GradScaler\nscaler = GradScaler()\n",
    ],
)
def test_a_scaler_of_another_file_counts(train: str) -> None:
    assert migrated(MODEL, others=(train,)) == MODEL.replace("fused=True", "fused=False")


@pytest.mark.parametrize(
    "train",
    [
        'import torch\nscaler = torch.amp.GradScaler("cuda")\n',
        "import torch\nfrom torch.cuda.amp import autocast\n",
        "from fairscale.optim import ShardedGradScaler\n",
    ],
)
def test_no_other_does(train: str) -> None:
    assert migrated(MODEL, others=(train,)) == MODEL
