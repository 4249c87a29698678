"""What of torch and torch_npu cannot work without an NPU, and is done otherwise here."""

from __future__ import annotations

import sys
from typing import Any

import torch


def apply() -> None:
    """Apply all of it."""
    # torch_npu's threads of the backward pass abort the process if it ends right after one.
    torch.autograd.set_multithreading_enabled(False)
    compile_eagerly()


def compile_eagerly() -> None:
    """Let torch.compile give back what it was given: there is no compiler for an emulated NPU."""
    said = False

    def notice() -> None:
        nonlocal said
        if not said:
            said = True
            print("npumigrate emulate: torch.compile runs eagerly here", file=sys.stderr)

    def compile_nothing(model: Any = None, **options: Any) -> Any:
        notice()
        return (lambda function: function) if model is None else model

    def compile_module(self: torch.nn.Module, *args: Any, **options: Any) -> None:
        notice()

    torch.compile = compile_nothing
    torch.nn.Module.compile = compile_module
