"""Memory formats of the NPU: torch_npu gives them to tensors, and no value changes."""

from __future__ import annotations

import pytest
import torch
import torch_npu
from torch_npu import Format


@pytest.fixture
def allowed():
    torch.npu.config.allow_internal_format = True
    yield
    torch.npu.config.allow_internal_format = False


@pytest.mark.parametrize("wanted", [Format.FRACTAL_NZ, Format.NC1HWC0])
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4, 5)])
def test_a_format_is_kept_and_its_values_stay(allowed, shape, wanted):
    data = torch.randn(shape)
    cast = torch_npu.npu_format_cast(data.npu(), wanted)
    assert torch_npu.get_npu_format(cast) == wanted
    assert torch_npu.get_npu_format(torch_npu.npu_format_cast(cast, Format.ND)) != wanted
    for same in (cast, cast.clone(), torch_npu.npu_format_cast(cast, Format.ND)):
        assert torch.equal(same.cpu(), data)
    assert torch.equal((cast * 2).transpose(0, -1).contiguous().cpu(), (data * 2).transpose(0, -1))


def test_a_format_is_not_given_where_it_is_not_allowed():
    cast = torch_npu.npu_format_cast(torch.ones(3, 5).npu(), Format.FRACTAL_NZ)
    assert torch_npu.get_npu_format(cast) == Format.ND


def test_a_layer_with_such_a_weight_trains(allowed):
    plain, layer = (torch.nn.Linear(16, 4) for _ in range(2))
    layer.load_state_dict(plain.state_dict())
    layer = layer.npu()
    layer.weight.data = torch_npu.npu_format_cast(layer.weight.data, Format.FRACTAL_NZ)
    for model, data in ((plain, torch.ones(2, 16)), (layer, torch.ones(2, 16).npu())):
        step = torch.optim.SGD(model.parameters(), 0.1)
        model(data).pow(2).sum().backward()
        step.step()
    assert torch_npu.get_npu_format(layer.weight) == Format.FRACTAL_NZ
    torch.testing.assert_close(layer.weight.cpu(), plain.weight)


def test_a_hint_for_the_cache_goes_by_what_lies_in_memory(allowed):
    cast = torch_npu.npu_format_cast(torch.ones(8, 8).npu(), Format.FRACTAL_NZ)  # 16 by 16 in memory
    torch_npu.npu_prefetch(cast, None, 256, 512)
    with pytest.raises(RuntimeError, match="tensor size: 256, offset: 512"):
        torch_npu.npu_prefetch(torch.ones(8, 8).npu(), None, 256, 512)
