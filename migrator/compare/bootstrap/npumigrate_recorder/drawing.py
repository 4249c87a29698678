"""Random numbers that are drawn on the CPU, so that a GPU and an NPU get the same ones.

All are from the CPU's generator, which a program's seed sets on every machine; a generator of a device is
replaced by one of the CPU with its seed.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Optional

import torch
from torch.nn import functional

_generators: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def _on_cpu(generator: Any) -> Any:
    if generator is None or generator.device.type == "cpu":
        return generator
    if generator not in _generators:
        _generators[generator] = torch.Generator().manual_seed(generator.initial_seed())
    return _generators[generator]


def _made(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Of ``torch.rand`` and the like: drawn on the CPU, then moved."""
    out, device = options.pop("out", None), options.pop("device", None)
    wanted = options.pop("requires_grad", False)
    options.pop("pin_memory", None)
    like = next((each for each in arguments if isinstance(each, torch.Tensor)), None)
    if device is None:
        device = like.device if like is not None else torch.empty(0).device
    arguments = tuple(each.cpu() if isinstance(each, torch.Tensor) else each for each in arguments)
    if "generator" in options:
        options["generator"] = _on_cpu(options["generator"])
    if like is None:
        options["device"] = "cpu"
    result = function(*arguments, **options)
    if out is not None:
        return out.resize_(result.shape).copy_(result)
    return result.to(device).requires_grad_(True) if wanted else result.to(device)


def _filled(function: Callable[..., Any], tensor: Any, *arguments: Any, **options: Any) -> Any:
    """Of ``normal_`` and the like: into a tensor."""
    if "generator" in options:
        options["generator"] = _on_cpu(options["generator"])
    arguments = tuple(each.cpu() if isinstance(each, torch.Tensor) else each for each in arguments)
    drawn = function(torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu"), *arguments, **options)
    tensor.detach().copy_(drawn)
    return tensor


def _mask(shape: Any, p: float, like: Any) -> Any:
    kept = torch.rand(tuple(shape), device="cpu") >= p
    return kept.to(like.device, like.dtype) / (1.0 - p if p < 1 else 1.0)


def _dropped(
    whole: int, _function: Any, values: Any, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """Dropout of values, or of channels of so many dimensions: each is kept or dropped as a whole."""
    if not training or p == 0:
        return values
    # Without a batch the channels come first; dropout2d has no such form.
    first = values.dim() if not whole else 1 if whole != 2 and values.dim() == whole + 1 else 2
    shape = [size if place < first else 1 for place, size in enumerate(values.shape)]
    mask = _mask(shape, p, values)
    return values.mul_(mask) if inplace else values * mask


def _attention(
    function: Callable[..., Any],
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """``scaled_dot_product_attention``: with dropout by its definition, else as it is."""
    given = {"scale": scale, **({"enable_gqa": True} if enable_gqa else {})}
    if not dropout_p:
        return function(query, key, value, attn_mask, dropout_p, is_causal, **given)
    if enable_gqa:
        key, value = (each.repeat_interleave(query.size(-3) // each.size(-3), -3) for each in (key, value))
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    if attn_mask is not None:
        boolean = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if boolean else scores + attn_mask
    scores = scores.softmax(-1)
    return (scores * _mask(scores.shape, dropout_p, scores)) @ value


_NAMES = "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson"
_IN_PLACE = "normal_ uniform_ exponential_ bernoulli_ random_ log_normal_ cauchy_ geometric_"
_INIT = "uniform_ normal_ trunc_normal_ kaiming_uniform_ kaiming_normal_"
_REPLACED: dict[str, Callable[..., Any]] = {
    "dropout": partial(_dropped, 0),
    "dropout1d": partial(_dropped, 1),
    "dropout2d": partial(_dropped, 2),
    "dropout3d": partial(_dropped, 3),
    "scaled_dot_product_attention": _attention,
}
_draws: dict[Any, Callable[..., Any]] = {
    **{getattr(torch, name): _made for name in _NAMES.split()},
    **dict.fromkeys((torch.Tensor.bernoulli, torch.Tensor.multinomial), _made),
    **{getattr(torch.Tensor, name): _filled for name in _IN_PLACE.split()},
    **{getattr(torch.nn.init, name): _filled for name in _INIT.split()},
    **{getattr(functional, name): draw for name, draw in _REPLACED.items()},
    torch.dropout: partial(_dropped, 0),
}


def of(function: Any) -> Optional[Callable[..., Any]]:
    """What draws in place of a function; None for one that draws nothing."""
    return _draws.get(function)


def replace(seen: Callable[[], bool]) -> None:
    """Replace the functions that others of torch call, where the mode does not see them: ``seen`` says it."""

    def replaced(function: Callable[..., Any], draw: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def drawn(*arguments: Any, **options: Any) -> Any:
            if "input" in options:
                arguments = (options.pop("input"), *arguments)
            if seen():
                return function(*arguments, **options)
            return draw(function, *arguments, **options)

        return drawn

    for name, draw in _REPLACED.items():
        drawn = replaced(getattr(functional, name), draw)
        _draws[drawn] = draw
        setattr(functional, name, drawn)
