"""Multi-scale deformable attention, as the extension MultiScaleDeformableAttention has it."""

# npumigrate: skip-file

import torch


def ms_deform_attn_forward(value, spatial_shapes, level_start_index, sampling_loc, attn_weight, im2col_step):
    """The sampled values (batch, queries, heads * channels), weighted by the attention."""
    batch, _, heads, channels = value.shape
    queries, levels, points = sampling_loc.shape[1], sampling_loc.shape[3], sampling_loc.shape[4]
    sizes = [(int(height), int(width)) for height, width in spatial_shapes.tolist()]
    grids = 2 * sampling_loc - 1
    sampled = []
    for level, part in enumerate(value.split([height * width for height, width in sizes], dim=1)):
        image = part.flatten(2).transpose(1, 2).reshape(batch * heads, channels, *sizes[level])
        grid = grids[:, :, :, level].transpose(1, 2).flatten(0, 1)
        sampled.append(
            torch.nn.functional.grid_sample(
                image, grid, mode="bilinear", padding_mode="zeros", align_corners=False
            )
        )
    weight = attn_weight.transpose(1, 2).reshape(batch * heads, 1, queries, levels * points)
    found = (torch.stack(sampled, dim=-2).flatten(-2) * weight).sum(-1)
    return found.view(batch, heads * channels, queries).transpose(1, 2).contiguous()
