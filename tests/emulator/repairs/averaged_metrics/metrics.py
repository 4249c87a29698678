import numpy as np
import torch
import torch.distributed as dist


def over_ranks(values):
    """Mean and spread of what all ranks have seen."""
    values = np.asarray(values)
    moments = torch.from_numpy(np.array([values.mean(), (values**2).mean()])).cuda()
    dist.all_reduce(moments)
    mean, square = (moments / dist.get_world_size()).tolist()
    return mean, max(square - mean**2, 0.0) ** 0.5
