"""The correlation of two maps of features."""

# npumigrate: skip-file

import torch


def correlation(input1, input2, pad, size, most, stride1, stride2):
    """The mean product of the channels in a window, for each displacement up to ``most``."""
    radius, reach = (size - 1) // 2, most // stride2
    rows, columns = (-((2 * (radius + most - pad) - length) // stride1) for length in input1.shape[2:])
    # A window may reach beyond the padding, by its radius.
    one, other = (torch.nn.functional.pad(each, (pad + radius,) * 4) for each in (input1, input2))

    def part(image, down, right):
        y, x = radius + most + down, radius + most + right
        return image[:, :, y : y + rows * stride1 : stride1, x : x + columns * stride1 : stride1][
            :, :, :rows, :columns
        ]

    window = [(j, i) for j in range(-radius, radius + 1) for i in range(-radius, radius + 1)]
    steps = range(-reach * stride2, reach * stride2 + 1, stride2)
    found = []
    for down in steps:
        for right in steps:
            products = (part(one, j, i) * part(other, down + j, right + i) for j, i in window)
            found.append(sum(each.sum(1) for each in products))
    return torch.stack(found, 1) / (size * size * input1.shape[1])
