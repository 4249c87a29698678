"""Made by npumigrate: PyTorch Lightning computes on NPUs where it is asked for "gpu", "cuda" or "auto".

Lightning 2 has no accelerator for NPUs. With this module, what it has for CUDA finds NPUs: devices, the
group of the ranks, and mixed precision. Without an NPU nothing is changed. Import it before the Trainer, or
the Fabric, is made.
"""

# npumigrate: skip-file

import importlib
import importlib.util
import sys
import warnings

import torch
import torch_npu  # noqa: F401

_PACKAGES = (
    ("lightning_fabric", "pytorch_lightning"),
    ("lightning.fabric", "lightning.pytorch"),
    ("lightning_fabric", ""),
)


def _setup_device(self, device):
    torch.npu.set_device(device)


def _get_parallel_devices(devices):
    return [torch.device("npu", index) for index in devices]


def _get_device_stats(self, device):
    return torch.npu.memory_stats(device)


def _without_device_ids(self):
    return None  # with some, DistributedDataParallel is made on a stream of CUDA


def _nothing(*args, **kwargs):
    return None


def _for_npus(start):
    """Give ``__init__`` of mixed precision an NPU instead of CUDA."""

    def start_on_npu(self, precision, device, scaler=None):
        start(self, precision, device.replace("cuda", "npu"), scaler)
        own = getattr(self, "scaler", None) if scaler is None else None
        if own is not None and not own.is_enabled():  # Lightning before 2.4 asks for one of CUDA
            self.scaler = torch.npu.amp.GradScaler()

    return start_on_npu


def _backend_of(choose):
    """What chooses the backend for a device, with HCCL for NPUs."""
    return lambda device: "hccl" if device.type == "npu" else choose(device)


def _without_device(connect):
    """What makes the group of the ranks, bound to no device: gloo's group has no backend for an NPU."""

    def connect_ranks(*args, **kwargs):
        kwargs.pop("device_id", None)
        return connect(*args, **kwargs)

    return connect_ranks


def _sync_with(sync):
    """What reduces over the ranks, with means of whole numbers, which HCCL does not take."""

    def sync_on_npu(result, group=None, reduce_op=None):
        is_mean = str(reduce_op).lower().rpartition(".")[2] in ("avg", "mean")
        if not is_mean or result.is_floating_point() or result.is_complex():
            return sync(result, group=group, reduce_op=reduce_op)
        total = sync(result, group=group, reduce_op="sum")
        return total.div_(torch.distributed.get_world_size(group), rounding_mode="trunc")

    return sync_on_npu


def _replace(name, new):
    """Put a function in the place of Lightning's, where its modules have imported it as well."""
    for module in list(sys.modules.values()):
        package = getattr(module, "__name__", "").partition(".")[0]
        if package in ("lightning", "lightning_fabric", "pytorch_lightning") and name in vars(module):
            setattr(module, name, new)


def _adapt(parts):
    for part in parts:
        accelerator = importlib.import_module(f"{part}.accelerators.cuda").CUDAAccelerator
        accelerator.setup_device = _setup_device
        accelerator.get_parallel_devices = staticmethod(_get_parallel_devices)
        accelerator.get_device_stats = _get_device_stats
        if hasattr(accelerator, "_set_nvidia_flags"):
            accelerator._set_nvidia_flags = staticmethod(_nothing)
        amp = importlib.import_module(f"{part}.plugins.precision.amp")
        precision = getattr(amp, "MixedPrecision", None) or amp.MixedPrecisionPlugin
        precision.__init__ = _for_npus(precision.__init__)
        strategy = importlib.import_module(f"{part}.strategies").DDPStrategy
        for name in ("determine_ddp_device_ids", "_determine_ddp_device_ids"):
            if hasattr(strategy, name):
                setattr(strategy, name, _without_device_ids)
    distributed = importlib.import_module(f"{parts[0]}.utilities.distributed")
    choose = distributed._get_default_process_group_backend_for_device
    _replace("_get_default_process_group_backend_for_device", _backend_of(choose))
    if hasattr(distributed, "_init_dist_connection"):
        _replace("_init_dist_connection", _without_device(distributed._init_dist_connection))
    _replace("_sync_ddp", _sync_with(distributed._sync_ddp))
    _replace("num_cuda_devices", torch.npu.device_count)
    _replace("is_cuda_available", torch.npu.is_available)
    _replace("_clear_cuda_memory", torch.npu.empty_cache)


def _is_installed(package):
    return importlib.util.find_spec(package.partition(".")[0]) is not None


def _start():
    adapted = set()
    for fabric, lightning in _PACKAGES:
        parts = [part for part in (fabric, lightning) if part]
        if fabric in adapted or not all(map(_is_installed, parts)):
            continue
        if int(importlib.import_module(parts[-1].partition(".")[0]).__version__.partition(".")[0]) < 2:
            warnings.warn(f"{parts[-1]} before 2.0 does not find NPUs", stacklevel=2)
            continue
        adapted.add(fabric)
        _adapt(parts)


if torch.npu.is_available():
    _start()
