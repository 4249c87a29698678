"""torch.scatter_reduce and Tensor.scatter_reduce."""

# npumigrate: skip-file

import torch


class _Extreme(torch.autograd.Function):
    """The gradient goes in equal parts to all that have the value."""

    @staticmethod
    def forward(ctx, input, dim, index, src, largest, include_self):
        ctx.dim, ctx.include_self = dim, include_self
        order = torch.sort(src, dim, descending=not largest)[1]
        places = index.gather(dim, order)
        ranks = torch.sort(places, dim=dim, stable=True)[1]
        groups = places.gather(dim, ranks)
        values = src.gather(dim, order).gather(dim, ranks)
        length = groups.shape[dim]
        following = groups.narrow(dim, 1, length - 1) if length else groups
        is_last = torch.cat(
            (
                following != groups.narrow(dim, 0, max(length - 1, 0)),
                torch.ones_like(groups.narrow(dim, 0, min(length, 1)), dtype=torch.bool),
            ),
            dim,
        )
        # What is not the last of its group goes to a place of its own behind the others.
        size = input.shape[dim]
        goal = torch.where(is_last, groups, torch.full_like(groups, size))
        spare = input.narrow(dim, 0, 1)
        found = torch.cat((input, spare), dim).scatter(dim, goal, values).narrow(dim, 0, size)
        if include_self:
            found = torch.maximum(found, input) if largest else torch.minimum(found, input)
        ctx.save_for_backward(input, index, src, found)
        return found

    @staticmethod
    def backward(ctx, gradient):
        input, index, src, found = ctx.saved_tensors
        dim = ctx.dim
        own = (input == found).to(gradient.dtype)
        given = (src == found.gather(dim, index)).to(gradient.dtype)
        reached = torch.zeros_like(own).scatter_add(dim, index, torch.ones_like(given))
        if not ctx.include_self:
            own = (reached == 0).to(gradient.dtype)
        count = own.scatter_add(dim, index, given)
        part = gradient / count.clamp(min=1)
        return part * own, None, None, part.gather(dim, index) * given, None, None


def scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    """``input`` with the elements of ``src`` brought to their places: sum, mean, prod, amax or amin."""
    if input.ndim == 0:
        found = scatter_reduce(
            *(input.reshape(1), 0, index.reshape(1), src.reshape(1), reduce), include_self=include_self
        )
        return found.reshape(())
    src = src[tuple(map(slice, index.shape))]
    if reduce in ("amax", "amin"):
        return _Extreme.apply(input, dim, index, src, reduce == "amax", include_self)
    reached = torch.zeros(input.shape, dtype=torch.int64, device=input.device)
    reached = reached.scatter_add(dim, index, torch.ones_like(index))
    neutral = 1 if reduce == "prod" else 0
    start = input if include_self else torch.where(reached == 0, input, torch.full_like(input, neutral))
    if reduce == "sum":
        return start.scatter_add(dim, index, src)
    if reduce == "mean":
        total = start.scatter_add(dim, index, src)
        count = (reached + 1 if include_self else reached.clamp(min=1)).to(total.dtype)
        return total / count if total.is_floating_point() else torch.div(total, count, rounding_mode="floor")
    if reduce == "prod":
        return _product(start, dim, index, src)
    raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got " + str(reduce))


def _product(start, dim, index, src):
    """One factor of each place at a time."""
    if not index.numel():
        return start
    order = torch.sort(index, dim=dim, stable=True)[1]
    groups = index.gather(dim, order)
    values = src.gather(dim, order)
    length = groups.shape[dim]
    shape = [1] * groups.ndim
    shape[dim] = length
    place = torch.arange(length, device=index.device).reshape(shape).expand(groups.shape)
    many = torch.zeros(start.shape, dtype=torch.int64, device=index.device)
    many = many.scatter_add(dim, groups, torch.ones_like(groups))
    ahead = many.cumsum(dim) - many
    turn = place - ahead.gather(dim, groups)
    size = start.shape[dim]
    for step in range(int(many.max())):
        goal = torch.where(turn == step, groups, torch.full_like(groups, size))
        room = list(start.shape)
        room[dim] = size + 1
        factor = start.new_ones(room).scatter(dim, goal, values).narrow(dim, 0, size)
        start = start * factor
    return start
