"""Losses over vocabularies, also over parts of them, as CANN's documents define them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from npumigrate_emulator.arrangement import pack_bits, unpack_bits
from npumigrate_emulator.routing import refuse


def _largest_and_sum(
    data: Tensor,
    weight: Tensor,
    target: Tensor,
    vocab_start_index: int,
    vocab_end_index: int,
    return_logits: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """aclnnFusedLinearOnlineMaxSum: what a part of the vocabulary gives to the loss."""
    logits = data.float() @ weight.float().t()
    largest = logits.amax(-1)
    apart = logits - largest[:, None]
    elsewhere = (target < vocab_start_index) | (target > vocab_end_index)
    here = torch.where(elsewhere, 0, target - vocab_start_index)
    predicted = torch.where(elsewhere, 0, apart.gather(1, here.long()[:, None])[:, 0])
    mask = pack_bits(elsewhere, first_is_high=True)
    return (
        largest,
        apart.exp().sum(-1),
        predicted,
        mask,
        here.to(target.dtype),
        logits.to(data.dtype) if return_logits else None,
    )


def _loss_of_sums(
    logits_max: Tensor,
    sum_exp_logits: Tensor,
    predicted_logits: Tensor,
    *,
    label_smoothing: Optional[float] = 0.0,
    vocab_parallel_logits: Optional[Tensor] = None,
    **factors: Optional[Tensor],
) -> tuple[Tensor, Tensor | None]:
    """aclnnFusedCrossEntropyLossWithMaxSum."""
    refuse("npu_fused_cross_entropy_loss_with_max_sum", factors, label_smoothing=label_smoothing)
    loss = sum_exp_logits.log() - predicted_logits
    if vocab_parallel_logits is None:
        return loss, None
    return loss, (vocab_parallel_logits.float() - logits_max[:, None]).exp() / sum_exp_logits[:, None]


def _gradients_of_linear(
    grad: Tensor,
    data: Tensor,
    weight: Tensor,
    target_mask: Tensor,
    masked_target: Tensor,
    label_smoothing: float = 0.0,
    logits_max: Optional[Tensor] = None,
    sum_exp_logits: Optional[Tensor] = None,
    softmax: Optional[Tensor] = None,
) -> tuple[Tensor, Tensor]:
    """aclnnFusedLinearCrossEntropyLossGrad, from the softmax or from what makes it."""
    refuse("npu_fused_linear_cross_entropy_loss_with_max_sum_backward", {"label_smoothing": label_smoothing})
    if softmax is None:
        if logits_max is None or sum_exp_logits is None:
            raise RuntimeError("logits_max and sum_exp_logits are needed where softmax is None")
        logits = data.float() @ weight.float().t()
        softmax = (logits - logits_max[:, None]).exp() / sum_exp_logits[:, None]
    here = ~unpack_bits(target_mask, masked_target.numel(), first_is_high=True)
    hot = functional.one_hot(masked_target.long(), softmax.shape[1]) * here[:, None]
    by_logits = (softmax - hot) * grad[:, None]
    return (by_logits @ weight.float()).to(data.dtype), (by_logits.t() @ data.float()).to(weight.dtype)


def _cross_entropy(
    data: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss, the logarithms of the softmax, and what the documents leave to z-loss: nothing yet."""
    refuse(
        "npu_cross_entropy_loss",
        {"lse_square_scale_for_zloss": lse_square_scale_for_zloss, "return_zloss": return_zloss},
    )
    loss = functional.cross_entropy(
        data, target, weight, None, ignore_index, None, reduction, label_smoothing
    )
    empty = data.new_empty(0)
    return loss, data.log_softmax(-1), empty, empty.float()


REFERENCES: dict[str, Callable[..., Any]] = {
    "npu_cross_entropy_loss": _cross_entropy,
    "npu_fused_cross_entropy_loss_with_max_sum": _loss_of_sums,
    "npu_fused_linear_cross_entropy_loss_with_max_sum_backward": _gradients_of_linear,
    "npu_fused_linear_online_max_sum": _largest_and_sum,
}
