"""torchvision: imports beside a CPU build of torch, and its detection operators run on the NPU."""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any

import torch
from torch import Tensor

from npumigrate_emulator import compute

_registered: list[torch.library.Library] = []


def define_operators(spec: ModuleSpec) -> None:
    """Define the operators whose absence stops the import, if torchvision's own library cannot be loaded.

    A torchvision that was built for CUDA cannot, beside a torch that was not.
    """
    folder = os.path.dirname(spec.origin or "")
    own = next((name for name in ("_C_stable.so", "_C.so") if os.path.exists(f"{folder}/{name}")), "_C.so")
    try:
        torch.ops.load_library(os.path.join(folder, own))
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.define(
            "qnms(Tensor dets, Tensor scores, float iou_threshold, float dets_scale, int dets_zero_point)"
            " -> Tensor"
        )
        library.impl("nms", _nms, "CPU")
        _registered.append(library)


def run_on_npu() -> None:
    """Register the operators for the NPU."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("torchvision::")]
    compute.register(
        "cpu",
        "torchvision",
        [name.split("::")[1] for name in names if has(name, "CPU") and not has(name, "PrivateUse1")],
    )
    if _registered:
        boxes: Any = sys.modules["torchvision.ops.boxes"]
        boxes._assert_has_ops = lambda: None
        # Its form in plain torch, which torchvision takes where it can compile it.
        roi_align: Any = sys.modules["torchvision.ops.roi_align"]
        roi_align._roi_align = getattr(roi_align._roi_align, "__wrapped__", roi_align._roi_align)
        roi_align.is_compile_supported = lambda device: True


def _nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Keep the boxes that overlap no better one too much, best first."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    order = scores.argsort(descending=True, stable=True)
    kept = []
    while order.numel() > 0:
        best, rest = order[0], order[1:]
        kept.append(best)
        size = torch.minimum(boxes[best, 2:], boxes[rest, 2:]) - torch.maximum(
            boxes[best, :2], boxes[rest, :2]
        )
        shared = size.clamp(min=0).prod(1)
        order = rest[shared / (areas[best] + areas[rest] - shared) <= iou_threshold]
    return torch.stack(kept) if kept else torch.empty(0, dtype=torch.int64)
