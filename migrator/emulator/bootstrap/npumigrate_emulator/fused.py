"""Operators of torch_npu's own (``npu::``): plain torch for the common ones, an error for the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor
from torch.nn import functional

from npumigrate_emulator import (
    arrangement,
    attention,
    block_sparse,
    boxes,
    compute,
    deformable,
    derivatives,
    detection,
    dropout,
    gated,
    inference,
    losses,
    normalization,
    norms,
    optimizers,
    products,
    quantization,
    recurrent,
    refusals,
    rotated,
    routing,
    selected,
    workers,
)

_registered: list[torch.library.Library] = []
_TOPICS = (
    *(arrangement, block_sparse, boxes, deformable, derivatives, detection, dropout, gated, inference),
    *(losses, normalization, norms, optimizers, products, quantization, recurrent, rotated),
    *(routing, selected, workers),
)
# Their derivatives are torch_npu's own, whose names programs may look at.
_OWN_DERIVATIVES = frozenset(
    ("_npu_dtype_cast", "npu_block_sparse_attention", "npu_dtype_cast", "npu_ps_roi_pooling")
)
# Made of other operators in op-plugin, whose derivatives they have.
_MADE_OF_OTHERS = frozenset(
    ("_npu_dtype_cast_backward", "dropout_with_byte_mask", "npu_ciou", "npu_dtype_cast_backward")
)
# These look after memory and its formats: torch_npu's own kernels work. A format is a name here: the elements
# keep their order.
KEPT = frozenset(
    """
    _npu_format_cast _npu_format_cast.aclnn _npu_format_cast.input_dtype copy_memory_
    empty_with_swapped_memory get_npu_format get_storage_size npu_change_data_ptr npu_format_cast
    npu_format_cast.Tensor npu_format_cast_ npu_format_cast_.acl_format
    """.split()
)


_PLAIN_FORMATS = frozenset((-1, 0, 1, 2, 27, 30))  # the elements lie as they are counted


def register() -> None:
    """Register the references, and an error for each operator without one."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [name[5:] for name in torch._C._dispatch_get_all_op_names() if name.startswith("npu::")]
    library = torch.library.Library("npu", "IMPL")
    done = set()
    references = dict(REFERENCES)
    for topic in _TOPICS:
        references.update(topic.REFERENCES)
    for name in names:
        reference = references.get(name) or references.get(name.split(".")[0])
        if reference is None:
            continue
        reference = refusals.checked(name, _contiguous(reference))
        if name.endswith(".out") and name not in references:
            reference = _into_given(reference)
        # A reference is made of operators that have derivatives: it replaces torch_npu's derivative, and has
        # none where torch_npu has none.
        own = has(f"npu::{name}", "AutogradPrivateUse1")
        derived = own or name in _MADE_OF_OTHERS
        compute.implement(library, name, reference if derived else torch.no_grad()(reference), "PrivateUse1")
        if own and name not in _OWN_DERIVATIVES:
            compute.replace_derivative(library, f"npu::{name}", reference)
        done.add(name)
    _registered.append(library)
    # What works as it is; a shape function of Python does not make it work.
    registered = (key.split("/") for key in torch.library._impls)
    in_python = {name for space, name, key in registered if space == "npu" and key != "Meta"}
    known = done | KEPT | in_python
    lacking = [name for name in names if name not in known and has(f"npu::{name}", "PrivateUse1")]
    compute.register("lacking", "npu", lacking)


def _contiguous(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Return the reference with results laid out as op-plugin makes them; what was given stays as it is."""

    def kernel(*args: Any, **options: Any) -> Any:
        found = reference(*args, **options)

        def laid_out(result: Any) -> Any:
            own = isinstance(result, Tensor) and not any(
                result is each for each in (*args, *options.values())
            )
            return result.contiguous() if own else result

        if isinstance(found, (tuple, list)):
            return type(found)(map(laid_out, found))
        return laid_out(found)

    return kernel


def _into_given(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Return the reference with its results in the tensors of ``out``, whatever these are called."""

    def kernel(*args: Any, out: Any = None, **options: Any) -> Any:
        names = [name for name in options if name.startswith("out") and name[3:].isdigit()]
        given = out if names == [] else [options.pop(name) for name in names]
        options.pop("workspace", None)
        found = reference(*args, **options)
        into, values = ((given,), (found,)) if isinstance(given, Tensor) else (given, found)
        with torch.no_grad():
            for target, value in zip(into, values):
                target.resize_(value.shape).copy_(value)
        return given if isinstance(given, Tensor) else tuple(given)

    return kernel


_TYPES = (
    *(
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.float32,
        torch.float64,
    ),
    *(torch.complex32, torch.complex64, torch.complex128, torch.bool),
)


def _cast(data: Tensor, dtype: Any, *_: Any) -> Tensor:
    if isinstance(dtype, int):  # torch's number of the type
        dtype = torch.bfloat16 if dtype == 15 else _TYPES[dtype]
    return data.to(dtype)


def _cast_backward(grad: Tensor, dtype: Any, *_: Any) -> Tensor:
    """As op-plugin's: whatever comes in, with ``create_graph`` the result has a derivative of its own."""
    return _cast(grad.requires_grad_(), dtype)


def _cast_in_place(data: Tensor, like: Tensor) -> Tensor:
    data.data = data.to(like.dtype)
    return data


def _rms_norm(data: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    dims = tuple(range(data.dim() - gamma.dim(), data.dim()))
    whole = data.float()
    scale = torch.rsqrt(whole.pow(2).mean(dims, keepdim=True) + epsilon)
    return (whole * scale * gamma.float()).to(data.dtype), scale


def _add_rms_norm(
    one: Tensor, other: Tensor, gamma: Tensor, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    added = one + other
    normed, scale = _rms_norm(added, gamma, epsilon)
    return normed, scale, added


def _gemma_rms_norm(data: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> tuple[Tensor, Tensor]:
    return _rms_norm(data, 1 + gamma.float(), epsilon)


def _swiglu(data: Tensor, dim: int = -1) -> Tensor:
    gate, up = data.chunk(2, dim)
    return functional.silu(gate) * up


def _geglu(
    data: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False
) -> tuple[Tensor, Tensor]:
    left, right = data.chunk(2, dim)
    gate, up = (left, right) if activate_left else (right, left)
    activated = functional.gelu(gate, approximate="tanh" if approximate == 1 else "none")
    return activated * up, activated


def _in_float(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the function computed in float, and rounded once, as its derivative is."""

    def kernel(data: Tensor, *args: Any, **options: Any) -> Tensor:
        return function(data.float(), *args, **options).to(data.dtype)

    return kernel


def _fast_gelu(data: Tensor) -> Tensor:
    return data * torch.sigmoid(1.702 * data)


def _silu_in_place(data: Tensor) -> Tensor:
    return functional.silu(data, inplace=True)


def _rotary_mul(
    data: Tensor, cosine: Tensor, sine: Tensor, rotary_mode: str = "half", rotate: Optional[Tensor] = None
) -> Tensor:
    if rotate is not None:
        turned = data @ rotate.to(data.dtype)
    elif rotary_mode == "interleave":
        turned = torch.stack((-data[..., 1::2], data[..., ::2]), -1).flatten(-2)
    elif rotary_mode == "half":
        first, second = data.chunk(2, -1)
        turned = torch.cat((-second, first), -1)
    else:
        raise NotImplementedError(
            f"npumigrate emulate: the emulator lacks rotary_mode={rotary_mode!r}; an NPU may have it"
        )
    return data * cosine + turned * sine


def _apply_rotary(
    query: Tensor, key: Tensor, cosine: Tensor, sine: Tensor, layout: str = "BSND", rotary_mode: str = "half"
) -> tuple[Tensor, Tensor]:
    """Turn both in place, as on the NPU; there is no derivative."""
    for data in (query, key):
        data.detach().copy_(_rotary_mul(data.detach(), cosine, sine, rotary_mode))
    return query, key


def _scaled_masked_softmax(
    data: Tensor, mask: Tensor, scale: float = 1, fixed_triu_mask: bool = False
) -> Tensor:
    if fixed_triu_mask:
        mask = torch.ones(data.shape[-2:], dtype=torch.bool, device=data.device).triu(1)
    return (data.float() * scale).masked_fill(mask.bool(), -10000.0).softmax(-1).to(data.dtype)


def _confusion_transpose(data: Tensor, perm: list[int], shape: list[int], transpose_first: bool) -> Tensor:
    return (
        data.permute(perm).contiguous().view(shape)
        if transpose_first
        else data.contiguous().view(shape).permute(perm)
    )


def _transpose(data: Tensor, perm: list[int], require_contiguous: bool = True) -> Tensor:
    return data.permute(perm).contiguous()


def _reshape(data: Tensor, shape: list[int], can_refresh: bool = False) -> Tensor:
    return data.reshape(shape)


def _slice(data: Tensor, offsets: list[int], size: list[int]) -> Tensor:
    for dim, (offset, length) in enumerate(zip(offsets, size)):
        data = data.narrow(dim, offset, length if length >= 0 else data.shape[dim] - offset)
    return data.contiguous()


def _convolution(
    data: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    """op-plugin reads one number of the padding for each of the stride, and ignores further ones."""
    padding = padding[: len(stride)]
    return torch.convolution(data, weight, bias, stride, padding, dilation, False, [0] * len(stride), groups)


def _layer_norm(
    data: Tensor,
    shape: list[int],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    eps: float = 1e-5,
) -> Tensor:
    return functional.layer_norm(data, shape, weight, bias, eps)


def _cross_entropy(data: Tensor, labels: Tensor) -> Tensor:
    return -(labels * data.log_softmax(-1)).sum(-1)


def _not_finite(gradients: list[Tensor]) -> bool:
    return any(not bool(torch.isfinite(gradient).all()) for gradient in gradients)


def _new_float_status(data: Tensor) -> Tensor:
    return torch.zeros(8, dtype=torch.float32, device=data.device)


def _float_status(data: Tensor, mode: int = 0) -> Tensor:
    """Whether any operator overflowed since that was forgotten."""
    return torch.full((8,), float(compute.library().emulator_overflowed()), device=data.device)


def _forget_overflow(data: Tensor, mode: int = 0) -> Tensor:
    compute.library().emulator_forget_overflow()
    return _new_float_status(data)


def _convolution_backward(
    data: Tensor,
    grad_output: Tensor,
    weight: Tensor,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
    output_mask: list[bool],
) -> tuple[Tensor, Tensor, Tensor]:
    sizes = [weight.shape[0]] if output_mask[2] else None
    padding = padding[: len(stride)]
    found: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        grad_output,
        data,
        weight,
        sizes,
        stride,
        padding,
        dilation,
        False,
        [0] * len(stride),
        groups,
        output_mask,
    )
    return found


def _gelu_backward(grad_output: Tensor, data: Tensor, *, approximate: str = "none") -> Tensor:
    return torch.ops.aten.gelu_backward(grad_output, data, approximate=approximate)


def _transposed_convolution(
    data: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    padding: list[int],
    output_padding: list[int],
    stride: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    return torch.convolution(data, weight, bias, stride, padding, dilation, True, output_padding, groups)


def _one_hot(
    data: Tensor, num_classes: int = -1, depth: int = 1, on_value: float = 1, off_value: float = 0
) -> Tensor:
    hot = data[..., None] == torch.arange(depth, device=data.device)
    result: Tensor = torch.where(hot, float(on_value), float(off_value))
    return result


def _pad(data: Tensor, paddings: list[int]) -> Tensor:
    """Pad with zeros; the pairs begin at the first dimension."""
    pairs = list(zip(paddings[::2], paddings[1::2]))
    return functional.pad(data, [size for pair in reversed(pairs) for size in pair])


def _max(data: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, indices = torch.max(data, dim, keepdim)
    return values, indices.int()


def _min(data: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    values, indices = torch.min(data, dim, keepdim)
    return values, indices.int()


def _normed(whole: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """A layer norm over the dimensions of gamma, with the mean and the inverse of the deviation."""
    dims = tuple(range(whole.dim() - gamma.dim(), whole.dim()))
    variance, mean = torch.var_mean(whole, dims, correction=0, keepdim=True)
    scale = torch.rsqrt(variance + epsilon)
    return (whole - mean) * scale * gamma.float() + beta.float(), mean, scale


def _deep_norm(
    data: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, alpha: float = 0.3, epsilon: float = 1e-6
) -> tuple[Tensor, Tensor, Tensor]:
    result, mean, scale = _normed(data.float() * alpha + gx.float(), gamma, beta, epsilon)
    return mean, scale, result.to(data.dtype)


def _add_layer_norm(
    one: Tensor,
    other: Tensor,
    gamma: Tensor,
    beta: Tensor,
    epsilon: float = 1e-5,
    additional_output: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    added = one.float() + other.float()
    result, mean, scale = _normed(added, gamma, beta, epsilon)
    dtype = torch.promote_types(one.dtype, other.dtype)
    return result.to(dtype), mean, scale, added.to(dtype)


def _group_norm_silu(
    data: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], group: int, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    grouped = data.float().view(data.shape[0], group, -1)
    variance, mean = torch.var_mean(grouped, 2, correction=0)
    normed = functional.group_norm(
        data.float(),
        group,
        None if weight is None else weight.float(),
        None if bias is None else bias.float(),
        eps,
    )
    scale = torch.rsqrt(variance + eps)
    return functional.silu(normed).to(data.dtype), mean.to(data.dtype), scale.to(data.dtype)


def _softmax_with_bias(
    data: Tensor,
    mask: Optional[Tensor],
    bias: Tensor,
    scale_value: float = 1.0,
    inner_precision_mode: int = 0,
) -> Tensor:
    scores = data.float() * scale_value
    if mask is not None:
        scores = scores + mask.float()
    return (scores + bias.float()).softmax(-1).to(data.dtype)


def _gelu_mul(data: Tensor, *, approximate: str = "none") -> Tensor:
    gate, up = data.chunk(2, -1)
    return functional.gelu(gate, approximate=approximate) * up


def _prefetch(data: Tensor, dependency: Optional[Tensor], max_size: int, offset: int = 0) -> None:
    """A hint to the NPU's cache, with op-plugin's checks."""
    if max_size <= 0:
        raise RuntimeError(f"max_size should be greater than zero, but got {max_size}")
    if offset < 0:
        raise RuntimeError(f"offset should not be smaller than zero, but got {offset}")
    import torch_npu

    plain = torch_npu.get_npu_format(data) in _PLAIN_FORMATS
    size = (data.numel() if plain else torch_npu.get_storage_size(data)) * data.element_size()
    if size <= offset:
        raise RuntimeError(f"offset out of range of tensor size, tensor size: {size}, offset: {offset}")


REFERENCES: dict[str, Callable[..., Any]] = {
    "_amp_foreach_non_finite_check": _not_finite,
    "_npu_dtype_cast": _cast,
    "_npu_dtype_cast_backward": _cast_backward,
    "fast_gelu": _in_float(_fast_gelu),
    "npu_add_layer_norm": _add_layer_norm,
    "npu_add_rms_norm": _add_rms_norm,
    "npu_alloc_float_status": _new_float_status,
    "npu_apply_rotary_pos_emb": _apply_rotary,
    "npu_bmmV2": lambda data, other, sizes: torch.matmul(data, other),
    "npu_broadcast": lambda data, size: data.broadcast_to(size).contiguous(),
    "npu_clear_float_status": _forget_overflow,
    "npu_confusion_transpose": _confusion_transpose,
    "npu_conv2d": _convolution,
    "npu_conv2d_backward": _convolution_backward,
    "npu_conv3d": _convolution,
    "npu_conv_transpose2d": _transposed_convolution,
    "npu_convolution": _convolution,
    "npu_convolution_transpose": _transposed_convolution,
    "npu_deep_norm": _deep_norm,
    "npu_dtype_cast": _cast,
    "npu_dtype_cast_": _cast_in_place,
    "npu_dtype_cast_backward": _cast_backward,
    "npu_fast_gelu": _in_float(_fast_gelu),
    "npu_fusion_attention": attention.fusion_attention,
    "npu_fusion_attention_v2": attention.fusion_attention_v2,
    "npu_fusion_attention_v3": attention.fusion_attention_v3,
    "npu_geglu": _geglu,
    "npu_gelu": _in_float(functional.gelu),
    "npu_gelu_backward": _gelu_backward,
    "npu_gelu_mul": _gelu_mul,
    "npu_gemma_rms_norm": _gemma_rms_norm,
    "npu_get_float_status": _float_status,
    "npu_group_norm_silu": _group_norm_silu,
    "npu_layer_norm_eval": _layer_norm,
    "npu_linear": functional.linear,
    "npu_masked_softmax_with_rel_pos_bias": _softmax_with_bias,
    "npu_max": _max,
    "npu_min": _min,
    "npu_mish": _in_float(functional.mish),
    "npu_one_hot": _one_hot,
    "npu_pad": _pad,
    "npu_prefetch": _prefetch,
    "npu_reshape": _reshape,
    "npu_rms_norm": _rms_norm,
    "npu_rotary_mul": _rotary_mul,
    "npu_scaled_masked_softmax": _scaled_masked_softmax,
    "npu_silu": _in_float(functional.silu),
    "npu_silu_": _silu_in_place,
    "npu_slice": _slice,
    "npu_softmax_cross_entropy_with_logits": _cross_entropy,
    "npu_swiglu": _in_float(_swiglu),
    "npu_transpose": _transpose,
    "one_": lambda data: data.fill_(1),
}
