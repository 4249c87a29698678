import torch


def ring(count):
    """Each node with its two neighbours, as a normalized sparse matrix."""
    nodes = torch.arange(count)
    rows = torch.cat([nodes, nodes, nodes])
    columns = torch.cat([nodes, (nodes + 1) % count, (nodes - 1) % count])
    values = torch.full((3 * count,), 1 / 3)
    return torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (count, count)).coalesce()
