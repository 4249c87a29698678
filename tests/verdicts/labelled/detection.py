import math
from typing import List, Optional, Tuple

import cv2
import torch
import torchvision
from PIL import Image
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.pooling import MaxPool2d as Pool  # expect: none
from torch.nn.modules.utils import _pair


class SPPF(nn.Module):
    def __init__(self, c1, c2, k=5):
        super().__init__()
        self.cv1 = nn.Conv2d(c1, c2, 1)
        self.m = nn.MaxPool2d(kernel_size=k, stride=1, padding=k // 2)  # expect: unsupported torch.nn.MaxPool2d
        self.n = Pool(k)  # expect: unsupported torch.nn.MaxPool2d
        self.up = nn.Upsample(scale_factor=2, mode="nearest")  # expect: none
        self.act = nn.SiLU()  # expect: none

    def forward(self, x):
        x = self.cv1(x)
        y1 = self.m(x)
        return torch.cat((x, y1, self.m(y1)), 1)  # expect: none


class Letterbox:
    def __init__(self, size, mode="RGB"):
        self.size = size
        self.mode = mode  # expect: none

    def __call__(self, path):
        image = Image.open(path)
        if image.mode != self.mode:  # expect: none
            image = image.convert(self.mode)  # expect: none
        frame = cv2.resize(image, self.size)
        return torch.from_numpy(frame).permute(2, 0, 1).contiguous()  # expect: none


def decode(boxes: torch.Tensor, anchors: torch.Tensor) -> torch.Tensor:
    wh = (boxes[:, 2:4].sigmoid() * 2) ** 2 * anchors  # expect: none
    xy = boxes[..., :2].tanh()  # expect: none
    areas = wh.prod(1)  # expect: none
    best = areas.mode()  # expect: unsupported torch.Tensor.mode
    keys = xy.flatten().unique_consecutive(return_counts=True)  # expect: unsupported torch.Tensor.unique_consecutive
    runs = torch.unique_consecutive(boxes)  # expect: unsupported torch.unique_consecutive
    return torch.stack([best.values, keys[0], runs])  # expect: none


def nms(prediction, conf: float = 0.25, iou: float = 0.45) -> List[torch.Tensor]:
    keep = torchvision.ops.nms(prediction[:, :4], prediction[:, 4], iou)  # expect: none
    scores = prediction[:, 5:].max(1)  # expect: none
    wide = torch.topk(scores[0], 10, sorted=False)  # expect: partial torch.topk
    order = torch.topk(scores[0], 10, sorted=True)  # expect: none
    chunks = torch.tensor_split(prediction, 3)  # expect: none
    split = torch.split(prediction, 3)  # expect: none
    return [keep, wide[0], order[0], chunks[0], split[0]]


class RoIHead(nn.Module):
    pooler: Optional[nn.Module] = None

    def __init__(self):
        super().__init__()
        self.pool = nn.AdaptiveMaxPool2d((7, 7))  # expect: unsupported torch.nn.AdaptiveMaxPool2d
        self.frac = nn.FractionalMaxPool2d(3, output_size=(13, 12))  # expect: fallback torch.nn.FractionalMaxPool2d
        self.avg = nn.AvgPool2d(2)  # expect: none
        self.size = _pair(7)

    def forward(self, features, rois):
        grid = F.affine_grid(rois, features.shape)  # expect: none
        sampled = F.grid_sample(features, grid, align_corners=False)  # expect: unsupported torch.nn.functional.grid_sample
        peaks = F.max_pool2d(features, 2)  # expect: none
        dilated = F.max_pool2d(features, 2, dilation=2)  # expect: partial torch.nn.functional.max_pool2d
        adaptive = F.adaptive_max_pool2d(features, 1)  # expect: unsupported torch.nn.functional.adaptive_max_pool2d
        line = F.max_pool1d(features, 2)  # expect: unsupported torch.nn.functional.max_pool1d
        resized = F.interpolate(features, scale_factor=2, mode="bilinear")  # expect: none
        unfolded = F.unfold(features, 3)  # expect: none
        return sampled, peaks, dilated, adaptive, line, resized, unfolded


def anchors_for(levels: Tuple[int, ...], image: Image.Image) -> torch.Tensor:
    width, height = image.size  # expect: none
    kind = image.mode  # expect: none
    if kind == "L":
        image.mode = "RGB"  # expect: none
    steps = torch.arange(0, width, dtype=torch.float32)  # expect: none
    shifts = torch.meshgrid(steps, steps, indexing="ij")  # expect: none
    return torch.stack(shifts) * math.sqrt(height)  # expect: none
