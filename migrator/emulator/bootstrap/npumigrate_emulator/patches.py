"""What of torch and torch_npu cannot work without an NPU, and is done otherwise here."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import torch


def apply() -> None:
    """Apply all of it."""
    # torch_npu's threads of the backward pass abort the process if it ends right after one.
    torch.autograd.set_multithreading_enabled(False)
    if "NPUMIGRATE_EMULATOR_PLACES" in os.environ:  # what Dynamo captures is not seen to run
        compile_eagerly()
    else:
        _compile_with_dynamo()
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


def _compile_with_dynamo() -> None:
    """Let Dynamo capture graphs as for an NPU, and run eagerly those that a compiler for NPUs would get.

    Modes and options are checked by torch, a graph break is an error with ``fullgraph=True``, and a backend
    of the program's own is called.
    """
    notice = _once("graphs of torch.compile run eagerly here")

    def run_eagerly(graph: Any, inputs: Any, **options: Any) -> Any:
        notice()
        return graph.forward

    def run_for_inductor(self: Any, graph: Any, inputs: Any, **options: Any) -> Any:
        return run_eagerly(graph, inputs)

    torch._TorchCompileInductorWrapper.__call__ = run_for_inductor
    dynamo: Any = sys.modules["torch_npu.dynamo"]
    dynamo._get_global_npu_backend = lambda *_, **__: run_eagerly
    dynamo._exec = run_eagerly
    for name in ("npu", "npugraph_ex", "npugraphs"):  # as Dynamo finds them by the entry points of torch_npu
        setattr(dynamo, f"_{name}_backend_entrypoint", run_eagerly)


def _say_what_is_profiled() -> None:
    notice = _once("torch.profiler measures the host, and nothing of an NPU")
    kineto: Any = torch.profiler.profiler._KinetoProfile
    start_trace = kineto.start_trace

    def start_with_notice(self: Any) -> None:
        notice()
        start_trace(self)

    kineto.start_trace = start_with_notice
