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
    data_parallel,
    float64_collective,
    int_device,
    tensor_type_default,
)

HANDLERS: Mapping[str, Callable[[FileContext, Rule], Iterator[Found]]] = {
    "api-verdicts": api_verdicts.find,
    "autocast-setters": autocast_setters.find,
    "capability": capability.find_calls,
    "cuda-definition": cuda_definition.find,
    "data-parallel": data_parallel.find,
    "device-properties": capability.find_properties,
    "float64-collective": float64_collective.find,
    "int-device": int_device.find,
    "tensor-type-default": tensor_type_default.find,
}
