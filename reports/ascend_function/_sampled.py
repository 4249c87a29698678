"""The loop of furthest point sampling."""

# npumigrate: skip-file

import torch


def sampled(rows, far, count, left_out=None):
    """The places of ``count`` points.

    ``rows`` gives the squared distances from one point of each batch, ``far`` has those so far, and what
    ``left_out`` has is never chosen.
    """
    chosen = torch.zeros(far.shape[0], dtype=torch.int64, device=far.device)
    places = [chosen]
    for _ in range(count - 1):
        far.copy_(torch.minimum(far, rows(chosen)))
        chosen = (far if left_out is None else far.masked_fill(left_out, -1)).argmax(-1)
        if left_out is not None:
            chosen = chosen.masked_fill(left_out.all(-1), 0)
        places.append(chosen)
    return torch.stack(places, 1).to(torch.int32)


def between(points):
    """The rows of the squared distances between points (batch, points, 3)."""
    batch = torch.arange(points.shape[0], device=points.device)
    return lambda chosen: (points - points[batch, chosen][:, None]).square().sum(-1)
