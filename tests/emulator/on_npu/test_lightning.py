"""The module by which Lightning finds NPUs: with stand-ins for its parts, and with Lightning itself."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec

import pytest
import torch
import torch_npu  # noqa: F401

from migrator.data_folders import data_folder

FILES = {
    "__init__.py": "__version__ = '{version}'\n",
    "accelerators/__init__.py": "",
    "accelerators/cuda.py": (
        "def num_cuda_devices():\n    return 0\n\n\nclass CUDAAccelerator:\n"
        "    def setup_device(self, device):\n        raise ValueError\n\n"
        "    @staticmethod\n    def is_available():\n        return num_cuda_devices() > 0\n"
    ),
    "plugins/__init__.py": "",
    "plugins/precision/__init__.py": "",
    "plugins/precision/amp.py": (
        "import torch\n\n\nclass MixedPrecision:\n    def __init__(self, precision, device, scaler=None):\n"
        "        if scaler is None and precision == '16-mixed':\n"
        "            scaler = torch.cuda.amp.GradScaler()\n"
        "        self.precision, self.device, self.scaler = precision, device, scaler\n"
    ),
    "strategies.py": ("class DDPStrategy:\n    def determine_ddp_device_ids(self):\n        return [0]\n"),
    "utilities/__init__.py": "",
    "utilities/distributed.py": (
        "def _get_default_process_group_backend_for_device(device):\n    return 'gloo'\n\n\n"
        "def _init_dist_connection(backend, **kwargs):\n    return backend, kwargs\n\n\n"
        "def _sync_ddp(result, group=None, reduce_op=None):\n"
        "    return result * 6 if reduce_op == 'sum' else None\n"
    ),
    "other.py": "from .accelerators.cuda import num_cuda_devices\n",
}


@pytest.fixture
def lightning(tmp_path, monkeypatch):
    """Give a function that makes stand-ins of a version and imports the module beside them."""

    def imported(version):
        for package in ("lightning_fabric", "pytorch_lightning"):
            for name, text in FILES.items():
                (tmp_path / package / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / package / name).write_text(text.replace("{version}", version))
        text = (data_folder("reports") / "modules" / "ascend_lightning.py").read_text()
        (tmp_path / "ascend_lightning.py").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        importlib.import_module("pytorch_lightning.other")
        return importlib.import_module("ascend_lightning")

    def forget():
        for name in [*sys.modules]:
            if name.partition(".")[0] in ("lightning_fabric", "pytorch_lightning", "ascend_lightning"):
                del sys.modules[name]

    forget()
    yield imported
    forget()


@pytest.mark.skipif(find_spec("pytorch_lightning") is not None, reason="Lightning itself is installed")
def test_what_asks_for_cuda_finds_npus(lightning, monkeypatch):
    lightning("2.6.0")
    part = importlib.import_module("pytorch_lightning.accelerators.cuda").CUDAAccelerator
    devices = part.get_parallel_devices([0, 1])
    assert devices == [torch.device("npu:0"), torch.device("npu:1")]
    assert part.is_available()
    part().setup_device(devices[1])
    assert torch.npu.current_device() == 1
    torch.npu.set_device(0)
    counted = importlib.import_module("pytorch_lightning.other").num_cuda_devices
    assert counted() == torch.npu.device_count()
    mixed = importlib.import_module("pytorch_lightning.plugins.precision.amp").MixedPrecision
    half, short = mixed("16-mixed", "cuda"), mixed("bf16-mixed", "cuda")
    assert half.device == short.device == "npu"
    assert half.scaler.is_enabled()
    assert short.scaler is None
    off = torch.amp.GradScaler("npu", enabled=False)
    assert mixed("16-mixed", "cuda", off).scaler is off
    strategy = importlib.import_module("lightning_fabric.strategies").DDPStrategy
    assert strategy().determine_ddp_device_ids() is None
    choose = importlib.import_module("lightning_fabric.utilities.distributed")
    backends = map(choose._get_default_process_group_backend_for_device, (devices[0], torch.device("cpu")))
    assert [*backends] == ["hccl", "gloo"]
    assert choose._init_dist_connection("hccl", device_id=devices[0], timeout=1) == ("hccl", {"timeout": 1})
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda group: 4)
    whole = torch.tensor(3)
    assert choose._sync_ddp(whole, reduce_op="mean") == choose._sync_ddp(whole, None, "ReduceOp.AVG") == 4
    assert choose._sync_ddp(whole, reduce_op="sum") == 18
    assert choose._sync_ddp(whole.float(), reduce_op="mean") is None


@pytest.mark.skipif(find_spec("pytorch_lightning") is not None, reason="Lightning itself is installed")
def test_an_old_lightning_stays_as_it_is(lightning):
    with pytest.warns(UserWarning, match="before 2.0 does not find NPUs"):
        lightning("1.9.5")
    assert not importlib.import_module("pytorch_lightning.accelerators.cuda").CUDAAccelerator.is_available()


@pytest.mark.skipif(find_spec("pytorch_lightning") is None, reason="Lightning is not installed")
@pytest.mark.parametrize("precision", ["32", "16-mixed", "bf16-mixed"])
def test_a_model_is_trained_on_an_npu(tmp_path, monkeypatch, precision):
    text = (data_folder("reports") / "modules" / "ascend_lightning.py").read_text()
    (tmp_path / "ascend_lightning.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import pytorch_lightning as pl

    importlib.import_module("ascend_lightning")

    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, batch_idx):
            assert batch.is_npu
            return self.layer(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    trainer = pl.Trainer(
        accelerator="auto", devices=1, max_steps=2, precision=precision, logger=False, barebones=True
    )
    net = Net()
    trainer.fit(net, torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=2))
    assert trainer.global_step == 2
