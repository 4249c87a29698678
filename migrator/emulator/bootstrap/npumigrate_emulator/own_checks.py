"""What op-plugin checks itself where torch makes a function of others: its words come before torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from npumigrate_emulator import compute

_registered: list[torch.library.Library] = []


def register() -> None:
    """Check arguments as op-plugin does, and go on with what torch makes of the function."""
    if not hasattr(torch.library, "get_kernel"):  # torch 2.8 and older
        return
    aten = torch.library.Library("aten", "IMPL")
    for name, check in _CHECKS.items():
        for key in ("AutogradPrivateUse1", "PrivateUse1"):
            made = torch.library.get_kernel(f"aten::{name}", key)
            compute.implement(aten, name, _checked(check, made), key, with_keyset=True)
    _registered.append(aten)


def _checked(check: Callable[..., None], made: Any) -> Callable[..., Any]:
    def kernel(keys: Any, *args: Any, **options: Any) -> Any:
        check(*args, **options)
        return made.call_boxed(keys, *args, **options)

    return kernel


def _expect(holds: bool, words: str, code: str) -> None:
    if not holds:
        from torch_npu.utils import _error_code as codes

        raise RuntimeError(words + codes.ops_error(codes.ErrCode[code]))


def _average(data: Tensor, output_size: list[int]) -> None:
    _expect(len(output_size) == 2, "adaptive_avg_pool2d: output size must be 2.", "PARAM")


def _repeat(
    data: Tensor, repeats: Tensor | int, dim: Optional[int] = None, *, output_size: Optional[int] = None
) -> None:
    dims = max(data.dim(), 1)
    _expect(-dims <= (dim or 0) < dims, "dim value is not in valid range.", "VALUE")
    if not isinstance(repeats, Tensor):
        _expect(repeats >= 0, "repeats can not be negative.", "VALUE")
        return
    length = data.numel() if dim is None or data.dim() == 0 else data.shape[dim]
    fits = repeats.dim() == 0 or (repeats.dim() == 1 and repeats.shape[0] in (1, length))
    _expect(fits, "repeats must have the same size as input along dim", "PARAM")


def _fourier(
    data: Tensor,
    n_fft: int,
    hop_length: Optional[int] = None,
    win_length: Optional[int] = None,
    window: Optional[Tensor] = None,
    *_: Any,
    **__: Any,
) -> None:
    _expect(data.dim() in (1, 2), "input should be a 1D or 2D tensor", "PARAM")
    _expect(0 < n_fft <= data.shape[-1], "expected: 0 < n_fft < input.size(-1)", "PARAM")
    _expect((n_fft // 4 if hop_length is None else hop_length) > 0, "expected: hop_length > 0", "VALUE")
    if window is not None and win_length is not None:
        fits = window.dim() == 1 and window.shape[0] == win_length
        _expect(fits, "expected: window size and win_length should be equal", "PARAM")
    length = n_fft if win_length is None else win_length
    _expect(0 < length <= n_fft, "expected: 0 < win_length <= n_fft", "PARAM")


def _determinant(data: Tensor) -> None:
    words = f"Expected nonempty least 2D tensor, but got a tensor with sizes {data.dim()}"
    _expect(data.dim() >= 2, words, "PARAM")


_CHECKS: dict[str, Callable[..., None]] = {
    "adaptive_avg_pool2d": _average,
    "repeat_interleave.self_Tensor": _repeat,
    "repeat_interleave.self_int": _repeat,
    "slogdet": _determinant,
    "stft": _fourier,
}
