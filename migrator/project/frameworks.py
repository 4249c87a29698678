"""Which framework a script is written for, where that is not PyTorch: torchrun does not start it."""

from __future__ import annotations

import re

from migrator.language import _

_NAMES = {
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "tf_keras": "Keras",
    "mxnet": "MXNet",
    "mindspore": "MindSpore",
    "paddle": "PaddlePaddle",
    "jax": "JAX",
    "flax": "JAX",
}
_IMPORT = re.compile(rf"^[ \t]*(?:import|from)[ \t]+(?:horovod\.)?({'|'.join(_NAMES)})\b", re.M)
_TORCH = re.compile(r"\btorch\b")


def other_framework(text: str) -> str:
    """The framework that a Python file imports and that is not PyTorch; empty with torch in it."""
    if "torch" in text and _TORCH.search(text):
        return ""
    found = _IMPORT.search(text)
    return _NAMES[found[1]] if found else ""


def why_not_started(file: str, framework: str) -> str:
    """Why there is no launcher for a script of another framework."""
    return _(
        "{file} is a program of {framework}, which torchrun does not start: NPU661 says what it needs",
        file=file,
        framework=framework,
    )
