"""Points near others."""

# npumigrate: skip-file

import torch


def squared(centres, points):
    """The squared distances (batch, centres, points)."""
    parts = ((centres[:, :, None, each] - points[:, None, :, each]).square() for each in range(3))
    return sum(parts)


def first_places(inside, nsample):
    """The first ``nsample`` places that are inside; the first one fills up, and -1 where there is none."""
    count = inside.shape[-1]
    place = torch.arange(count, device=inside.device).expand(inside.shape)
    place = torch.where(inside, place, torch.full_like(place, count))
    if count < nsample:
        place = torch.nn.functional.pad(place, (0, nsample - count), value=count)
    found = torch.sort(place, -1)[0][..., :nsample]
    found = torch.where(found == count, found[..., :1], found)
    return found.masked_fill(found == count, -1).to(torch.int32)


def fill(idx, places):
    """``idx`` gets the places; where there are none, it stays as it is."""
    before = idx.view(places.shape)
    idx.copy_(torch.where(places < 0, before, places).view(idx.shape))
    return 1
