"""The handlers by the names that rules use."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Callable, Optional

from migrator.matchers.context import FileContext, Match
from migrator.matchers.packs import Rule

Handler = Callable[[FileContext, Rule], Iterator[Match]]

# The module and the function of each: a file needs few of them, and only those are loaded.
HANDLERS = {
    "api-verdicts": "api_verdicts.find",
    "autocast-setters": "autocast_setters.find",
    "capability": "capability.find_calls",
    "cuda-definition": "cuda_definition.find",
    "cuda-extension": "cuda_operators.find_builds",
    "cuda-operator-use": "cuda_operators.find_uses",
    "data-loader": "data_loader.find_slow",
    "data-parallel": "data_parallel.find",
    "device-properties": "capability.find_properties",
    "dynamic-batches": "dynamic_shapes.find_batches",
    "dynamic-calls": "dynamic_shapes.find_calls",
    "dynamic-masks": "dynamic_shapes.find_masks",
    "dynamic-sizes": "dynamic_shapes.find_sizes",
    "float64-collective": "float64_collective.find",
    "int-device": "int_device.find",
    "library-function": "library_functions.find",
    "python-kernel": "cuda_operators.find_kernels",
    "last-batch": "data_loader.find_last_batch",
    "random-sizes": "dynamic_shapes.find_random_sizes",
    "tensor-type-default": "tensor_type_default.find",
    "training-settings": "training_step.find_settings",
    "training-step": "training_step.find",
}


@cache
def handler(name: str) -> Optional[Handler]:
    """The function that finds what a rule with this handler is about, None where there is no such handler."""
    if name not in HANDLERS:
        return None
    module, _, function = HANDLERS[name].partition(".")
    found: Handler = getattr(import_module(f"migrator.matchers.structural.{module}"), function)
    return found
