"""The handlers by the names that rules use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Callable

from migrator.engine.context import FileContext, Found
from migrator.engine.packs import Rule
from migrator.engine.structural import (
    api_verdicts,
    autocast_setters,
    capability,
    cuda_definition,
    cuda_operators,
    data_parallel,
    float64_collective,
    int_device,
    library_functions,
    tensor_type_default,
)

HANDLERS: Mapping[str, Callable[[FileContext, Rule], Iterator[Found]]] = {
    "api-verdicts": api_verdicts.find,
    "autocast-setters": autocast_setters.find,
    "capability": capability.find_calls,
    "cuda-definition": cuda_definition.find,
    "cuda-extension": cuda_operators.find_builds,
    "cuda-operator-use": cuda_operators.find_uses,
    "data-parallel": data_parallel.find,
    "device-properties": capability.find_properties,
    "float64-collective": float64_collective.find,
    "int-device": int_device.find,
    "library-function": library_functions.find,
    "python-kernel": cuda_operators.find_kernels,
    "tensor-type-default": tensor_type_default.find,
}
