"""What of torch and torch_npu cannot work without an NPU, and is done otherwise here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import torch


def apply() -> None:
    """Apply all of it."""
    # torch_npu's threads of the backward pass abort the process if it ends right after one.
    torch.autograd.set_multithreading_enabled(False)
    compile_eagerly()
    _say_what_is_profiled()


def _once(line: str) -> Callable[[], None]:
    """Return a function that says it the first time that it is called."""

    @cache
    def say() -> None:
        print(f"npumigrate emulate: {line}", file=sys.stderr)

    return say


def compile_eagerly() -> None:
    """Let torch.compile give back what it was given: there is no compiler for an emulated NPU."""
    notice = _once("torch.compile runs eagerly here")

    def compile_nothing(model: Any = None, **options: Any) -> Any:
        notice()
        return (lambda function: function) if model is None else model

    def compile_module(self: torch.nn.Module, *args: Any, **options: Any) -> None:
        notice()

    torch.compile = compile_nothing
    torch.nn.Module.compile = compile_module


def _say_what_is_profiled() -> None:
    notice = _once("torch.profiler measures the host, and nothing of an NPU")
    kineto: Any = torch.profiler.profiler._KinetoProfile
    start_trace = kineto.start_trace

    def start_with_notice(self: Any) -> None:
        notice()
        start_trace(self)

    kineto.start_trace = start_with_notice
