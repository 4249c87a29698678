"""Functions that torch makes of others: op-plugin checks their arguments in its own words."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda data: functional.adaptive_avg_pool2d(data, (2, 2, 2)), "output size must be 2"),
        (lambda data: functional.adaptive_avg_pool2d(data, -1), "must be greater than or equal to 0"),
        (lambda data: data.repeat_interleave(2, 4), "dim value is not in valid range."),
        (lambda data: data.repeat_interleave(-1), "repeats can not be negative."),
        (
            lambda data: data.repeat_interleave(torch.tensor([1, 2]).npu(), 1),
            "must have the same size",
        ),
        (
            lambda data: torch.stft(data[0, 0, 0], 9, center=False, return_complex=True),
            "0 < n_fft <",
        ),
        (lambda data: torch.stft(data[0, 0, 0], 4, 0, center=False, return_complex=True), "hop_length > 0"),
        (lambda data: torch.slogdet(data[0, 0, 0]), "Expected nonempty least 2D tensor"),
    ],
)
def test_the_words_are_op_plugin_s(call, words):
    with pytest.raises(RuntimeError, match=words):
        call(torch.randn(1, 3, 5, 5).npu())


def test_what_is_checked_runs_and_has_its_derivative():
    data = torch.randn(2, 3, 4, 4)
    calls = (
        lambda data: functional.adaptive_avg_pool2d(data, (2, 1)),
        lambda data: data.repeat_interleave(2, 1),
        lambda data: data[0, 0, 0, 0].repeat_interleave(3),
        lambda data: data.repeat_interleave(torch.tensor([1, 0, 2, 3], device=data.device), -1),
        lambda data: torch.stft(data.flatten(), 8, window=torch.ones(8).to(data), return_complex=True).abs(),
        lambda data: torch.slogdet(data)[1],
    )
    for call in calls:
        own, given = data.clone().requires_grad_(), data.npu().requires_grad_()
        expected, found = call(own), call(given)
        torch.testing.assert_close(found.cpu(), expected)
        wanted = torch.autograd.grad(expected.sum(), own)[0]
        gradient = torch.autograd.grad(found.sum(), given)[0]
        torch.testing.assert_close(gradient.cpu(), wanted)


def test_an_evaluation_gives_statistics_their_size():
    """As op-plugin makes them; on the CPU they are empty."""
    channels = [torch.rand(2).npu() for _ in range(4)]
    for name in ("native_batch_norm", "_native_batch_norm_legit"):
        operator = getattr(torch.ops.aten, name).default
        result, mean, deviation = operator(torch.randn(3, 2, 4).npu(), *channels, False, 0.1, 1e-5)
        assert (result.shape, mean.shape, deviation.shape) == ((3, 2, 4), (2,), (2,))
    data = torch.randn(3, 2, 4).half().npu().requires_grad_()
    norm = torch.nn.BatchNorm1d(2).npu().eval()
    norm(data.float()).sum().backward()
    assert data.grad.shape == data.shape
