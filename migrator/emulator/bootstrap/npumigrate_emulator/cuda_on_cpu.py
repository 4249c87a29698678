"""Lets a CUDA program run on the CPU, to compare its numbers: CUDA devices are the CPU, NCCL is Gloo.

Tensors that are asked for on CUDA are made on the CPU; ``torch.cuda`` answers as one device type that works
at once and uses no memory. It is for the original of a migrated project, in a process without torch_npu.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Optional

import torch
from torch import distributed
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from npumigrate_emulator import leaving, patches

calls = 0  # how often something stood in
_MEMORY = 64 << 30


def forget() -> None:
    """Begin anew in a forked process."""
    global calls
    calls = 0


def on_cpu(device: Any) -> Any:
    """Return the CPU for a CUDA device, by name or as an object, and anything else as it is."""
    global calls
    if isinstance(device, str) and device.split(":")[0] == "cuda":
        calls += 1
        return "cpu"
    if isinstance(device, torch.device) and device.type == "cuda":
        calls += 1
        return torch.device("cpu")
    return device


class _OnCpu(TorchFunctionMode):  # type: ignore[misc]  # torch has no types here
    """Sees each call of torch's functions and of tensors' methods in its thread."""

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        arguments: tuple[Any, ...] = (),
        options: Optional[dict[str, Any]] = None,
    ) -> Any:
        global calls
        if function in _AS_THEY_ARE:
            calls += 1
            return arguments[0]
        if function is _IS_CUDA:
            calls += 1
            return True
        options = options or {}
        if function in _BY_NAME:
            arguments = (*arguments[: _BY_NAME[function]], *map(_renamed, arguments[_BY_NAME[function] :]))
        elif any(isinstance(value, torch.device) for value in arguments):
            arguments = tuple(map(on_cpu, arguments))
        if "device" in options:
            options = {**options, "device": _numbered(options["device"])}
        return function(*arguments, **options)


_AS_THEY_ARE = (torch.Tensor.cuda, torch.Tensor.pin_memory)
_IS_CUDA = torch.Tensor.is_cuda.__get__
# What takes a device, or a type by its name, from this argument on.
_BY_NAME = {torch.Tensor.to: 1, torch.Tensor.type: 1, torch._C._nn._parse_to: 0}


def _renamed(value: Any) -> Any:
    if isinstance(value, str):
        value = value.replace("torch.cuda.", "torch.")
    return _numbered(value)


def _numbered(device: Any) -> Any:
    """A number alone means a CUDA device."""
    return "cpu" if isinstance(device, int) and not isinstance(device, bool) else on_cpu(device)


class Stream:
    """A stream whose work is done at once."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device = torch.device("cpu")
        self.cuda_stream = 0

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Return that the work is done."""
        return True

    def record_event(self, event: Optional[Event] = None) -> Event:
        """Return an event of now."""
        event = event or Event()
        event.record()
        return event


class Event:
    """A moment."""

    def __init__(self, enable_timing: bool = False, **options: Any) -> None:
        self._time = 0.0

    def record(self, stream: Any = None) -> None:
        """Note the time."""
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def query(self) -> bool:
        """Return that it has happened."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds to a later event."""
        return (end._time - self._time) * 1000


class DataParallel(torch.nn.Module):  # type: ignore[misc]
    """Runs the module on the one CPU, on one part of the input after the other, as replicas do on devices."""

    def __init__(
        self, module: torch.nn.Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module, self.dim, self.output_device = module, dim, output_device
        self.device_ids = list(range(torch.cuda.device_count()) if device_ids is None else device_ids)

    def forward(self, *args: Any, **options: Any) -> Any:
        """Run the module; only the first replica keeps what it changes in its buffers."""
        leaves, form = tree_flatten((args, options))
        parts = [
            each.chunk(len(self.device_ids), self.dim)
            if isinstance(each, torch.Tensor) and each.dim()
            else None
            for each in leaves
        ]
        results = []
        for place in range(max((len(each) for each in parts if each is not None), default=1)):
            given = [whole if each is None else each[place] for whole, each in zip(leaves, parts)]
            own_args, own_options = tree_unflatten(given, form)
            kept = {name: buffer.clone() for name, buffer in self.module.named_buffers()} if place else {}
            results.append(tree_flatten(self.module(*own_args, **own_options)))
            for name, buffer in self.module.named_buffers() if place else ():
                buffer.data.copy_(kept[name])
        if len(results) == 1:
            return tree_unflatten(*results[0])
        together = [self._gathered(each) for each in zip(*(values for values, _form in results))]
        return tree_unflatten(together, results[0][1])

    def _gathered(self, values: Sequence[Any]) -> Any:
        if not isinstance(values[0], torch.Tensor):
            return values[0]
        return torch.cat(values, self.dim) if values[0].dim() else torch.stack(values)


def apply(devices: int) -> None:
    """Let this process run as if it had CUDA devices."""
    _answer_for_cuda(devices)
    _map_arguments()
    _use_gloo()
    patches.compile_eagerly()
    torch.nn.DataParallel = torch.nn.parallel.DataParallel = DataParallel
    _OnCpu().__enter__()


def _answer_for_cuda(devices: int) -> None:
    cuda: Any = torch.cuda
    properties = SimpleNamespace(
        name=os.environ["NPUMIGRATE_EMULATOR_SOC"],  # as the migrated run prints it
        total_memory=_MEMORY,
        major=8,
        minor=0,
        multi_processor_count=1,
        warp_size=32,
    )
    answers: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": True,
        "device_count": devices,
        "current_device": 0,
        "get_device_name": properties.name,
        "get_device_properties": properties,
        "get_device_capability": (8, 0),
        "get_arch_list": [],
        "mem_get_info": (_MEMORY, _MEMORY),
        "memory_stats": {},
        "memory_summary": "",
        "get_rng_state_all": [],
        "ipc_collect": None,
    }
    zero = (
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "max_memory_reserved",
        "utilization",
    )
    nothing = (
        "init synchronize empty_cache set_device reset_peak_memory_stats reset_max_memory_allocated"
        " reset_max_memory_cached set_per_process_memory_fraction set_rng_state_all set_stream"
    ).split()
    answers.update(dict.fromkeys(zero, 0))
    answers.update(dict.fromkeys(nothing))
    for name, answer in answers.items():
        setattr(cuda, name, _answering(answer))
    for name in ("device", "device_of", "stream"):
        setattr(cuda, name, lambda *_: nullcontext())
    cuda.Stream, cuda.Event = Stream, Event
    for stand_in, abstract in ((Stream, "_StreamBase"), (Event, "_EventBase")):
        base: Any = getattr(getattr(torch, "_streambase", None), abstract, None)
        if hasattr(base, "register"):  # torch 2.4: Dynamo wants them to be of these abstract classes
            base.register(stand_in)
    cuda.current_stream = cuda.default_stream = Stream
    tensor: Any = torch.Tensor
    tensor.record_stream = _answering(None)
    cuda.manual_seed = cuda.manual_seed_all = cuda.seed = cuda.seed_all = _answering(None)
    cuda.get_rng_state = lambda *_: torch.get_rng_state()
    cuda.set_rng_state = lambda state, *_: torch.set_rng_state(state)
    for name in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(cuda.nvtx, name, _answering(None))
    for kind in ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"):
        setattr(cuda, f"{kind}Tensor", getattr(torch, f"{kind}Tensor"))


def _answering(answer: Any) -> Callable[..., Any]:
    def stand_in(*_: Any, **options: Any) -> Any:
        global calls
        calls += 1
        return answer

    return stand_in


def _map_arguments() -> None:
    changed: Any = torch
    autocast = changed.amp.autocast_mode.autocast
    begin = autocast.__init__

    def autocast_on_cpu(self: Any, device_type: str, dtype: Any = None, *args: Any, **options: Any) -> None:
        if on_cpu(device_type) != device_type:
            device_type, dtype = "cpu", dtype or torch.float16
        begin(self, device_type, dtype, *args, **options)

    autocast.__init__ = autocast_on_cpu
    load, default_device, default_type = torch.load, torch.set_default_device, torch.set_default_tensor_type
    load_script = torch.jit.load

    def load_on_cpu(file: Any, map_location: Any = None, *args: Any, **options: Any) -> Any:
        if isinstance(map_location, dict):
            map_location = {on_cpu(key): on_cpu(value) for key, value in map_location.items()}
        return load(file, "cpu" if map_location is None else _numbered(map_location), *args, **options)

    def load_script_on_cpu(file: Any, map_location: Any = None, *args: Any, **options: Any) -> Any:
        return load_script(file, on_cpu(map_location), *args, **options)

    changed.load = load_on_cpu
    changed.jit.load = load_script_on_cpu
    changed.set_default_device = lambda device: default_device(on_cpu(device))
    changed.set_default_tensor_type = lambda kind: default_type(
        kind.replace(".cuda.", ".") if isinstance(kind, str) else kind
    )

    class Generator(torch._C.Generator):  # type: ignore[misc]
        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, on_cpu(device))

    changed.Generator = Generator


def _use_gloo() -> None:
    if not distributed.is_available():
        return
    c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
    init, new_group, barrier = c10d.init_process_group, c10d.new_group, c10d.barrier
    wrapper = torch.nn.parallel.DistributedDataParallel
    begin: Any = wrapper.__init__

    def init_with_gloo(backend: Optional[str] = None, *args: Any, **options: Any) -> None:
        options.pop("device_id", None)
        init(_gloo(backend), *args, **options)
        leaving.keep(c10d.group.WORLD)

    def group_with_gloo(
        ranks: Any = None, timeout: Any = None, backend: Optional[str] = None, *args: Any, **options: Any
    ) -> Any:
        options.pop("device_id", None)
        group = new_group(ranks, timeout, _gloo(backend) if backend else None, *args, **options)
        leaving.keep(group)
        return group

    def barrier_of_gloo(*args: Any, device_ids: Any = None, **options: Any) -> Any:
        return barrier(*args, **options)

    def begin_on_cpu(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **options: Any
    ) -> None:
        begin(self, module, None, None, *args, **options)

    for place in (c10d, distributed):
        place.init_process_group = init_with_gloo
        place.new_group = group_with_gloo
        place.barrier = barrier_of_gloo
        place.is_nccl_available = _answering(True)
    wrapper.__init__ = begin_on_cpu


def _gloo(backend: Optional[str]) -> str:
    global calls
    if backend is None or "nccl" in backend.lower():
        calls += 1
        return "gloo"
    return backend
