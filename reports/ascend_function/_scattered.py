"""What the functions of torch_scatter share."""

# npumigrate: skip-file


def scattered(src, index, dim, dim_size):
    """The index in the shape of the source, the place of the dimension, and its size in the result."""
    dim = dim % src.ndim
    if index.ndim == 1:
        index = index.view([-1 if each == dim else 1 for each in range(src.ndim)])
    while index.ndim < src.ndim:
        index = index.unsqueeze(-1)
    index = index.expand_as(src)
    if dim_size is None:
        dim_size = int(index.max()) + 1 if index.numel() else 0
    return index, dim, dim_size


def room(src, dim, size, value=0):
    """A tensor for a result."""
    shape = list(src.shape)
    shape[dim] = size
    return src.new_full(shape, value)
