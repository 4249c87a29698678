"""The library that computes: registers its kernels in the place of torch_npu's."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Iterable
from functools import cache
from inspect import signature
from typing import Any


@cache
def library() -> ctypes.CDLL:
    """Load the library (torch must be imported)."""
    loaded = ctypes.CDLL(os.environ["NPUMIGRATE_EMULATOR_COMPUTE"])
    loaded.emulator_work.restype = loaded.emulator_insight.restype = ctypes.c_size_t
    loaded.emulator_overflowed.restype = loaded.emulator_keep_for_later.restype = ctypes.c_bool
    return loaded


@cache
def cann() -> ctypes.CDLL:
    """Return the emulated CANN, which torch_npu has loaded."""
    loaded = ctypes.CDLL("libnpumigrate_cann.so")
    loaded.emulator_collectives.restype = ctypes.c_size_t
    return loaded


def register(kind: str, namespace: str, names: Iterable[str]) -> int:
    """Register kernels of one kind for operators, and return how many."""
    lines = "\n".join(names)
    if not lines:
        return 0
    register_kind = getattr(library(), f"emulator_register_{kind}")
    return int(register_kind(namespace.encode(), lines.encode()))


def implement(
    library: Any, name: str, function: Callable[..., Any], key: str, *, with_keyset: bool = False
) -> None:
    """Put a kernel in the place of another; `with_keyset`: its first argument is the set of keys."""
    keyset = {"with_keyset": True} if with_keyset else {}
    library.impl(name, function, key, **keyset, **_overriding(library.impl.__func__))


def replace_derivative(library: Any, name: str, reference: Callable[..., Any]) -> None:
    """Let what a reference is made of give the derivative; what is traced meets torch_npu's own kernel."""
    import torch

    key = "AutogradPrivateUse1"
    get_kernel: Any = getattr(torch.library, "get_kernel", None)
    # Autocast reaches into no kernel.
    autocast = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def plain(*args: Any, **options: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(autocast):
            return reference(*args, **options)

    if get_kernel is None:  # torch 2.6
        implement(library, name.split("::")[1], plain, key)
        return
    original = get_kernel(name, key)
    mode_of = torch._C._get_dispatch_mode
    modes = torch._C._TorchDispatchModeKey

    def kernel(keys: Any, *args: Any, **options: Any) -> Any:
        if mode_of(modes.FAKE) is not None or mode_of(modes.PROXY) is not None:
            return original.call_boxed(keys, *args, **options)
        return plain(*args, **options)

    implement(library, name.split("::")[1], kernel, key, with_keyset=True)


@cache
def _overriding(implement: Callable[..., Any]) -> dict[str, bool]:
    """What is to be said for that; torch 2.6 wants nothing."""
    return {"allow_override": True} if "allow_override" in signature(implement).parameters else {}


def list_dtypes(operator: str, call: str, arguments: Iterable[str], dtypes: Iterable[str]) -> None:
    """Let an operator take these dtypes alone, in CANN's words, for the named arguments, or for all."""
    named = ",".join(f"DT_{dtype}" for dtype in dtypes)
    library().emulator_list_dtypes(
        operator.encode(), call.encode(), ",".join(arguments).encode(), named.encode()
    )


def note_cpu() -> None:
    """Note from now on what runs on the CPU as well."""
    library().emulator_note_cpu()


def work() -> dict[str, dict[str, Any]]:
    """Return which operators ran on each NPU, and how much it and the CPU computed, forward and backward."""
    return read(library().emulator_work)


def read(write: Any) -> dict[str, Any]:
    """Return what a function of a library writes as JSON."""
    room = 1 << 20
    while True:
        text = ctypes.create_string_buffer(room)
        needed = write(text, ctypes.c_size_t(room))
        if needed <= room:
            result: dict[str, Any] = json.loads(text.value.decode("utf-8", "replace"))
            return result
        room = needed + (1 << 16)


def collectives() -> dict[str, Any]:
    """Return the calls and bytes of each collective."""
    return read(cann().emulator_collectives)


def rank() -> int | None:
    """Return the rank of this process in the largest HCCL group that it was in."""
    found = int(cann().emulator_rank())
    return None if found < 0 else found
