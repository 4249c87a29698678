from __future__ import annotations

import pytest
import torch
import torch_npu

torchvision = pytest.importorskip("torchvision")

BOXES = torch.tensor([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0.5, 0, 10, 10]])
SCORES = torch.tensor([0.8, 0.9, 0.7, 0.95])


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_nms(device):
    kept = torchvision.ops.nms(BOXES.to(device), SCORES.to(device), 0.5)
    assert kept.device.type == device
    assert kept.tolist() == [3, 2]
    groups = torch.tensor([0, 1, 1, 0], device=device)
    assert torchvision.ops.batched_nms(BOXES.to(device), SCORES.to(device), groups, 0.5).tolist() == [3, 1, 2]


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_roi_align(device):
    rising = torch.arange(10.0).repeat(1, 1, 10, 1).to(device).requires_grad_()
    regions = torch.tensor([[0, 2.0, 2, 6, 6]], device=device)
    out = torchvision.ops.roi_align(rising, regions, (2, 2), sampling_ratio=2)
    torch.testing.assert_close(out[0, 0].cpu(), torch.tensor([[3.0, 5], [3, 5]]))
    out.sum().backward()
    assert rising.grad.sum().item() == pytest.approx(4)


def test_models():
    model = torchvision.models.resnet18(num_classes=3).npu().eval()
    assert model(torch.randn(1, 3, 32, 32).npu()).shape == (1, 3)


def test_each_bin_of_a_region_has_a_channel_of_its_own():
    data = torch.arange(2 * 8 * 6 * 6, dtype=torch.float32).view(2, 8, 6, 6)
    inputs = data.npu().requires_grad_()
    first = torch.tensor([[0, 0, 0, 7, 7], [5, 90, 90, 95, 95]]).t()  # the second one is outside of all
    second = torch.tensor([[1, 4, 4, 11, 7], [5, 90, 90, 95, 95]]).t()
    rois = torch.stack((first, second)).float().npu()
    found = torch_npu.npu_ps_roi_pooling(inputs, rois, 0.5, 2, 2)
    assert found.shape == (4, 2, 2, 2)
    values = found.detach().cpu()
    whole, wide = data[0, :, :4, :4], data[1, :, 2:4, 2:6]
    for channel in range(8):
        at = (channel // 4, channel // 2 % 2, channel % 2)
        down, across = slice(2 * at[1], 2 * at[1] + 2), slice(2 * at[2], 2 * at[2] + 2)
        assert values[0][at] == whole[channel, down, across].mean()
        assert values[2][at] == wide[channel, at[1], across].mean()
    assert not values[1::2].any()
    found.sum().backward()
    assert inputs.grad.sum() == 16
    assert inputs.grad[1, 0, 2, 2] == 0.5
