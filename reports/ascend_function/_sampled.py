"""The loop of furthest point sampling."""

# npumigrate: skip-file

import torch


def sampled(points, far, count, left_out=None):
    """The places of ``count`` points; ``far``: the squared distances so far, ``left_out``: never chosen."""
    batch = torch.arange(points.shape[0], device=points.device)
    chosen = torch.zeros(points.shape[0], dtype=torch.int64, device=points.device)
    places = [chosen]
    for _ in range(count - 1):
        distance = (points - points[batch, chosen][:, None]).square().sum(-1)
        far.copy_(torch.minimum(far, distance))
        chosen = (far if left_out is None else far.masked_fill(left_out, -1)).argmax(-1)
        if left_out is not None:
            chosen = chosen.masked_fill(left_out.all(-1), 0)
        places.append(chosen)
    return torch.stack(places, 1).to(torch.int32)
