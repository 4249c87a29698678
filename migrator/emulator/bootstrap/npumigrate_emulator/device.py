"""Takes torch_npu over once it is imported: its operators are computed by the CPU, on the NPU's memory."""

from __future__ import annotations

import atexit
import ctypes
import os
from dataclasses import dataclass

import torch

from npumigrate_emulator import (
    arrangement,
    compute,
    fused,
    insight,
    normalization,
    own_checks,
    patches,
    refusals,
    report,
    rnn,
    sparse,
)

# Kernels of torch_npu that only look after memory: they work as they are.
_KEPT = frozenset(
    """
    _copy_from_and_resize _has_compatible_shallow_copy_type _lazy_clone _local_scalar_dense _pin_memory
    _reshape_alias _to_copy _to_sparse _to_sparse.sparse_dim as_strided as_strided_ contiguous
    copy_memory_ empty.memory_format empty_like empty_strided empty_with_format empty_with_swapped_memory
    flatten_dense_tensors get_storage_size is_pinned is_set_to new_empty_strided record_stream resize_
    resize_as_ set_ set_.source_Storage set_.source_Storage_storage_offset set_.source_Tensor squeeze
    squeeze.dim storage_resize_ unfold unsafe_empty_with_format unsqueeze view view_as_complex
    view_as_real
    """.split()
)
# Made of other operators by torch itself; torch_npu has its own form of them for its memory formats.
_MADE_OF_OTHERS = frozenset(("clone",))


@dataclass(frozen=True)
class Places:
    """Operators of aten, by what is to be done with them."""

    on_cpu: tuple[str, ...]
    composite: tuple[str, ...]
    autograd: tuple[str, ...]
    lacking: tuple[str, ...]  # made for the NPU alone
    native: frozenset[str]  # those that torch_npu itself has a kernel for
    wholes: frozenset[str]  # of these, those that torch makes of other operators


def take_over() -> None:
    """Register the kernels, and cure what cannot work on a CPU."""
    compute.cann().emulator_take_over()
    found = _places()
    kernels, wholes = ("\n".join(sorted(names)).encode() for names in (found.native, found.wholes))
    compute.library().emulator_name_kernels(kernels, wholes)
    compute.register("cpu", "aten", found.on_cpu)
    compute.register("composite", "aten", found.composite)
    compute.register("autograd", "aten", found.autograd)
    fused.register()
    own = (*normalization.register(), *rnn.register())
    compute.register("lacking", "aten", (name for name in found.lacking if name not in own))
    sparse.register()
    arrangement.register()
    own_checks.register()
    refusals.register(torch.__version__)
    patches.apply()
    report.torch_npu_is_here(found.native)
    observer = ctypes.cast(compute.library().emulator_share_cores, ctypes.c_void_p)
    compute.cann().emulator_on_group(observer)
    on_graphs = ctypes.cast(compute.cann().emulator_on_graphs, ctypes.c_void_p)
    compute.library().emulator_record_graphs(on_graphs)
    saturates = ctypes.cast(compute.cann().emulator_saturates, ctypes.c_void_p)
    compute.library().emulator_watch_overflow(saturates)
    profiled = (compute.cann().emulator_profile_time, compute.cann().emulator_profile_task)
    compute.library().emulator_profile(*(ctypes.cast(each, ctypes.c_void_p) for each in profiled))
    if os.environ.get("NPUMIGRATE_EMULATOR_LATE") == "1":
        _raise_late()
    if insight.wanted():
        insight.begin()


def _raise_late() -> None:
    """Raise CANN's errors at the next synchronization; what nobody has waited for by the end is lost."""
    library = compute.library()
    library.emulator_raise_late()
    compute.cann().emulator_on_synchronization(ctypes.cast(library.emulator_surface, ctypes.c_void_p))
    atexit.register(library.emulator_forget_late)


def _places() -> Places:
    registered = torch._C._dispatch_get_registrations_for_dispatch_key  # at once: one by one takes long
    on_npu, with_cpu = set(registered("PrivateUse1")), set(registered("CPU"))
    composite_implicit = set(registered("CompositeImplicitAutograd"))
    composite_explicit = {
        *registered("CompositeExplicitAutograd"),
        *registered("CompositeExplicitAutogradNonFunctional"),
    }
    with_derivative = set(registered("AutogradPrivateUse1"))
    on_cpu, composite, autograd, lacking, native = [], [], [], [], []
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::"):
            continue
        name = full[len("aten::") :]
        npu, cpu = full in on_npu, full in with_cpu
        implicit = full in composite_implicit
        made = implicit or full in composite_explicit
        if npu:
            native.append(full)
        kept = name in _KEPT and implicit  # with the derivative that torch_npu has for it
        if (full in with_derivative or (npu and implicit)) and (cpu or made) and not kept:
            autograd.append(name)
        if name in _KEPT or name in fused.KEPT:
            continue
        if name in _MADE_OF_OTHERS:
            composite.append(name)
        elif (npu and (cpu or made)) or (not npu and cpu and not made):
            on_cpu.append(name)
        elif npu:
            lacking.append(name)
    wholes = frozenset(on_npu & composite_implicit)
    return Places(tuple(on_cpu), tuple(composite), tuple(autograd), tuple(lacking), frozenset(native), wholes)
