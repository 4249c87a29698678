from __future__ import annotations

import torch
from torch.nn import functional


def test_a_seed_repeats_the_numbers_of_an_npu_and_of_the_host():
    torch.manual_seed(3)
    first = torch.randn(3, device="npu"), torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(2), first[1])  # the NPU draws nothing from the host's generator
    assert torch.equal(torch.randn(3, device="npu"), first[0])


def test_each_npu_has_a_generator():
    torch.npu.manual_seed_all(5)
    one = torch.randn(3, device="npu:0")
    assert torch.equal(torch.randn(3, device="npu:1").cpu(), one.cpu())
    assert not torch.equal(torch.randn(3, device="npu:0"), one)
    torch.npu.manual_seed_all(6)
    assert not torch.equal(torch.randn(3, device="npu:0"), one)


def test_states_are_saved_and_restored():
    state = torch.npu.get_rng_state()
    one, other = torch.rand(3, device="npu"), torch.rand(3, device="npu")
    assert not torch.equal(one, other)
    torch.npu.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="npu"), one)


def test_a_generator_of_ones_own():
    generator = torch.Generator("npu").manual_seed(4)
    one = torch.randn(3, device="npu", generator=generator)
    generator.manual_seed(4)
    assert torch.equal(torch.randn(3, device="npu", generator=generator), one)


def test_operators_without_a_generator_argument():
    data = torch.ones(1000, device="npu")
    for draw in (lambda: functional.dropout(data), lambda: torch.randperm(50, device="npu")):
        torch.manual_seed(1)
        one, other = draw(), draw()
        torch.manual_seed(1)
        assert torch.equal(draw(), one)
        assert not torch.equal(one, other)
    assert 350 < (functional.dropout(data) == 0).sum().item() < 650
