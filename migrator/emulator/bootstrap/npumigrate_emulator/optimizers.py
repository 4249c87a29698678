"""Optimizers in one call (``out=`` has the variable and its moments), as op-plugin's tests define them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from torch import Tensor

from npumigrate_emulator.routing import refuse

_State = tuple[Tensor, Tensor, Tensor]


def _moments(m: Tensor, v: Tensor, grad: Tensor, beta1: float, beta2: float) -> tuple[Tensor, Tensor]:
    return m + (m - grad) * (beta1 - 1), v + (v - grad * grad) * (beta2 - 1)


def _give(out: _State, var: Tensor, m: Tensor, v: Tensor) -> _State:
    for into, value in zip(out, (var, m, v)):
        into.copy_(value)
    return out


def _adam(
    beta1_power: float,
    beta2_power: float,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensor,
    use_locking: Optional[bool],
    use_nesterov: Optional[bool],
    *,
    out: _State,
) -> _State:
    var = out[0]
    m, v = _moments(out[1], out[2], grad, beta1, beta2)
    rate = grad.new_tensor(lr * (1 - beta2_power) ** 0.5) / (1 - beta1_power)
    step = m * beta1 + grad * (1 - beta1) if use_nesterov else m
    return _give(out, var - rate * step / (v.sqrt() + epsilon), m, v)


def _adam_w(
    beta1_power: float,
    beta2_power: float,
    lr: float,
    weight_decay: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensor,
    max_grad_norm: Optional[Tensor],
    amsgrad: Optional[bool],
    maximize: Optional[bool],
    *,
    out: _State,
) -> _State:
    """The powers are those of the step before."""
    refuse("npu_apply_adam_w", {"amsgrad": amsgrad})
    m, v = _moments(out[1], out[2], -grad if maximize else grad, beta1, beta2)
    deviation = (v / (1 - beta2_power * beta2)).sqrt() + epsilon
    var = out[0] * (1 - lr * weight_decay) - lr * m / (1 - beta1_power * beta1) / deviation
    return _give(out, var, m, v)


def _bert_adam(
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    grad: Tensor,
    max_grad_norm: float,
    global_grad_norm: float,
    weight_decay: float,
    step_size: Optional[float] = None,
    adam_mode: int = 0,
    *,
    out: _State,
) -> _State:
    refuse("npu_bert_apply_adam", {"adam_mode": adam_mode, "step_size": step_size})
    refuse("npu_bert_apply_adam", {"max_grad_norm": max_grad_norm if max_grad_norm > 0 else None})
    m, v = _moments(out[1], out[2], grad, beta1, beta2)
    return _give(out, out[0] - lr * (m / (v.sqrt() + epsilon) + weight_decay * out[0]), m, v)


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_apply_adam.out": _adam,
    "npu_apply_adam_w.out": _adam_w,
    "npu_bert_apply_adam.out": _bert_adam,
}
