"""Upsampling, a filter and downsampling, as the extension of StyleGAN2 has it."""

# npumigrate: skip-file

import torch

functional = torch.nn.functional


def upfirdn2d(input, kernel, up_x, up_y, down_x, down_y, pad_x0, pad_x1, pad_y0, pad_y1):
    """Of images (images, height, width, channels) with zeros between and around their pixels."""
    count, height, width, channels = input.shape
    images = input.permute(0, 3, 1, 2).reshape(count * channels, 1, height, 1, width, 1)
    images = functional.pad(images, (0, up_x - 1, 0, 0, 0, up_y - 1))
    images = images.reshape(count * channels, 1, height * up_y, width * up_x)
    images = functional.pad(images, (pad_x0, pad_x1, pad_y0, pad_y1))
    found = functional.conv2d(images, kernel.flip((0, 1))[None, None].to(images.dtype))[
        :, :, ::down_y, ::down_x
    ]
    return found.reshape(count, channels, *found.shape[2:]).permute(0, 2, 3, 1).contiguous()
