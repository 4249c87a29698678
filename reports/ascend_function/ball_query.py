"""The first points within a radius, as the extension of pointnet2_ops has it."""

# npumigrate: skip-file

import torch


def ball_query(new_xyz, xyz, radius, nsample):
    """Places of points around each of ``new_xyz``; the first one fills up, and 0 where there is none."""
    distance = 0
    for each in range(3):
        distance = distance + (new_xyz[:, :, None, each] - xyz[:, None, :, each]).square()
    count = xyz.shape[1]
    place = torch.arange(count, device=xyz.device).expand(distance.shape)
    inside = torch.where(distance < radius * radius, place, torch.full_like(place, count))
    if count < nsample:
        inside = torch.nn.functional.pad(inside, (0, nsample - count), value=count)
    found = torch.sort(inside, -1)[0][..., :nsample]
    found = torch.where(found == count, found[..., :1], found)
    return found.masked_fill(found == count, 0).to(torch.int32)
