"""The device that this program runs on: an NPU, a CUDA GPU, or the CPU.

Made by npumigrate --keep-cuda for versions of torch before 2.6, which have no torch.accelerator.
What is not written here is that of torch.npu on NPUs and that of torch.cuda on CUDA devices.
"""

# npumigrate: skip-file

import contextlib
import time

import torch

try:
    import torch_npu
except ImportError:
    torch_npu = None

IS_NPU = torch_npu is not None
# What a question for the device compares with, also where there is none.
ACCELERATOR = "npu" if IS_NPU else "cuda"
ACCELERATOR_BACKEND = "hccl" if IS_NPU else "nccl"


class _Event:
    """An event where there is no accelerator: what was started before it is done."""

    def __init__(self, *args, **kwargs):
        self.time = 0.0

    def record(self, stream=None):
        self.time = time.perf_counter()

    def elapsed_time(self, end_event):
        return (end_event.time - self.time) * 1000

    def wait(self, stream=None):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True


_ON_CPU = {
    "Event": _Event,
    "synchronize": lambda device=None: None,
    "set_device": lambda device: None,
    "current_device": lambda: 0,
    "device": lambda device=None: contextlib.nullcontext(),
    "get_device_name": lambda device=None: "cpu",
    "get_rng_state": lambda device=None: torch.get_rng_state(),
    "set_rng_state": lambda state, device=None: torch.set_rng_state(state),
    "reset_peak_memory_stats": lambda device=None: None,
    "ipc_collect": lambda: None,
}


def _module():
    return torch.npu if IS_NPU else torch.cuda


def is_available():
    """Whether there is an accelerator."""
    return _module().is_available()


def device_count():
    """How many there are."""
    return _module().device_count()


def at(device=None):
    """A device by its number; a device stays what it is, and one of CUDA is that of the same number."""
    if device is None:
        return torch.device(_type())
    if isinstance(device, int):
        return torch.device(ACCELERATOR, device) if is_available() else torch.device("cpu")
    device = torch.device(device)
    if device.type != "cuda":
        return device
    return at() if device.index is None else at(device.index)


def move(value, device=None, non_blocking=False):
    """What value.cuda() is for on any device; a class of the program may have a cuda() of its own."""
    own = getattr(type(value), "cuda", None)
    if own is not None and not getattr(own, "__module__", "torch").startswith("torch"):
        return value.cuda() if device is None else value.cuda(device)
    there = at(device)
    if isinstance(value, torch.nn.Module):
        return value.to(there)
    if isinstance(value, torch.Tensor):
        return value.to(there, non_blocking=non_blocking)
    if there.type == "cpu":
        return value.cpu()
    return getattr(value, there.type)(there.index)  # a storage, a packed sequence


def _type():
    return ACCELERATOR if is_available() else "cpu"


def __getattr__(name):
    if name == "TYPE":  # where tensors and modules are put
        return _type()
    if name == "BACKEND":  # of torch.distributed there
        return ACCELERATOR_BACKEND if is_available() else "gloo"
    if name.startswith("__"):
        raise AttributeError(name)
    if not is_available():
        if name in _ON_CPU:
            return _ON_CPU[name]
        return getattr(torch.cuda, name)
    return getattr(_module(), name)
