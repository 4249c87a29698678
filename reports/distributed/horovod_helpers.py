"""Functions that do with torch.distributed what Horovod's do.

The conversion of a Horovod program copies those that it uses into its files, and migrates them there.
"""

import gc
import io
import os

import torch
import torch.distributed as dist
from ranks import join_ranks


def setup_distributed():
    """Join the ranks that the launcher has started, each on its card; without a launcher, be the only one."""
    if dist.is_initialized():
        return
    join_ranks()
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "nccl"
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend)


def hvd_group(tensor=None):
    """The process group for a tensor: that of the cards, or over gloo for objects and what is on the CPU."""
    if dist.get_backend() == "gloo" or (tensor is not None and tensor.is_cuda):
        return None
    if not hasattr(hvd_group, "on_cpu"):
        hvd_group.on_cpu = dist.new_group(backend="gloo")
    return hvd_group.on_cpu


def leave_distributed():
    """Part from the other ranks; this comes last in a program."""
    gc.collect()  # frees wrapped models: Gloo can hang where one of them is the last to hold the group
    dist.destroy_process_group()


def hvd_sum_hook(group, bucket):
    """Sum the gradients over the ranks, where DistributedDataParallel would average them."""
    work = dist.all_reduce(bucket.buffer(), group=group or dist.group.WORLD, async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def hvd_allreduce_(tensor, op=dist.ReduceOp.AVG):
    """Replace a tensor by the average of the ranks' tensors, or by what op says."""
    return hvd_synchronize(hvd_allreduce_async_(tensor, op))


def hvd_allreduce_async_(tensor, op=dist.ReduceOp.AVG):
    """Start that; hvd_synchronize() of what this returns gives the result."""
    average = op == dist.ReduceOp.AVG
    work = dist.all_reduce(
        tensor.detach(), dist.ReduceOp.SUM if average else op, group=hvd_group(tensor), async_op=True
    )
    return work, lambda: hvd_divide_(tensor) if average else tensor


def hvd_allreduce_async(tensor, op=dist.ReduceOp.AVG):
    """The same with a copy of the tensor."""
    return hvd_allreduce_async_(tensor.detach().clone(memory_format=torch.contiguous_format), op)


def hvd_divide_(tensor):
    """Divide a sum by the number of ranks; whole numbers stay whole."""
    exact = tensor.is_floating_point() or tensor.is_complex()
    tensor.detach().div_(dist.get_world_size(), rounding_mode=None if exact else "trunc")
    return tensor


def hvd_synchronize(handle):
    """Wait for a collective that was started, and return its result."""
    work, result = handle
    work.wait()
    return result()


def hvd_poll(handle):
    """Whether a collective that was started is done."""
    return handle[0].is_completed()


class HvdAllreduce(torch.autograd.Function):
    """A reduced copy; its gradient is reduced in the same way."""

    @staticmethod
    def forward(ctx, tensor, op):
        ctx.op = op
        return hvd_synchronize(hvd_allreduce_async(tensor, op))

    @staticmethod
    def backward(ctx, gradient):
        return HvdAllreduce.apply(gradient, ctx.op), None


def hvd_allreduce(tensor, op=dist.ReduceOp.AVG):
    """The average of the ranks' tensors, or what op says, as a new tensor."""
    return HvdAllreduce.apply(tensor, op)


def hvd_lengths(tensor):
    """The first dimensions of the ranks' tensors."""
    own = torch.tensor([len(tensor)], device=tensor.device)
    lengths = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, own, group=hvd_group(own))
    return [int(length) for length in lengths]


def hvd_allgather_async(tensor):
    """Start to put the ranks' tensors one behind the other."""
    lengths = hvd_lengths(tensor)
    padded = tensor.new_zeros((max(lengths), *tensor.shape[1:]))  # all_gather wants tensors of one shape
    padded[: len(tensor)] = tensor.detach()
    parts = [torch.empty_like(padded) for _ in lengths]
    work = dist.all_gather(parts, padded, group=hvd_group(padded), async_op=True)
    return work, lambda: torch.cat([part[:length] for part, length in zip(parts, lengths)])


class HvdAllgather(torch.autograd.Function):
    """All ranks' tensors; the gradient of each is the average of what the ranks have for it."""

    @staticmethod
    def forward(ctx, tensor):
        ctx.place = sum(hvd_lengths(tensor)[: dist.get_rank()]), len(tensor)
        return hvd_synchronize(hvd_allgather_async(tensor))

    @staticmethod
    def backward(ctx, gradient):
        return hvd_allreduce(gradient).narrow(0, *ctx.place)


def hvd_allgather(tensor):
    """The ranks' tensors one behind the other; they may differ in their first dimension."""
    return HvdAllgather.apply(tensor)


def hvd_broadcast_(tensor, root_rank):
    """Replace a tensor by that of one rank."""
    return hvd_synchronize(hvd_broadcast_async_(tensor, root_rank))


def hvd_broadcast_async_(tensor, root_rank):
    """Start that; hvd_synchronize() of what this returns gives the result."""
    work = dist.broadcast(tensor.detach(), root_rank, group=hvd_group(tensor), async_op=True)
    return work, lambda: tensor


def hvd_broadcast_async(tensor, root_rank):
    """The same with a copy of the tensor."""
    return hvd_broadcast_async_(tensor.detach().clone(memory_format=torch.contiguous_format), root_rank)


class HvdBroadcast(torch.autograd.Function):
    """One rank's tensor; its gradient, the average of the ranks', goes to that rank."""

    @staticmethod
    def forward(ctx, tensor, root_rank):
        ctx.root_rank = root_rank
        return hvd_synchronize(hvd_broadcast_async(tensor, root_rank))

    @staticmethod
    def backward(ctx, gradient):
        gradient = hvd_allreduce(gradient)
        return (gradient if dist.get_rank() == ctx.root_rank else gradient * 0), None


def hvd_broadcast(tensor, root_rank):
    """The tensor of one rank, as a new one."""
    return HvdBroadcast.apply(tensor, root_rank)


def hvd_alltoall(tensor):
    """Send each rank an equal part of a tensor; return what came, in the order of the ranks."""
    return HvdAlltoall.apply(tensor)


class HvdAlltoall(torch.autograd.Function):
    """Equal parts to and from every rank; so go their gradients."""

    @staticmethod
    def forward(ctx, tensor):
        result = torch.empty_like(tensor, memory_format=torch.contiguous_format)
        dist.all_to_all_single(result, tensor.contiguous(), group=hvd_group(tensor))
        return result

    @staticmethod
    def backward(ctx, gradient):
        return HvdAlltoall.apply(gradient)


class HvdReducescatter(torch.autograd.Function):
    """This rank's part of the reduced tensor; the gradients are gathered."""

    @staticmethod
    def forward(ctx, tensor, op):
        ctx.op = op
        reduced = hvd_synchronize(hvd_allreduce_async(tensor, op))
        return torch.tensor_split(reduced, dist.get_world_size())[dist.get_rank()].clone()

    @staticmethod
    def backward(ctx, gradient):
        gathered = hvd_allgather(gradient)
        return (gathered * dist.get_world_size() if ctx.op == dist.ReduceOp.SUM else gathered), None


def hvd_reducescatter(tensor, op=dist.ReduceOp.AVG):
    """This rank's part of the reduced tensor; the first ranks have a row more where it does not divide."""
    return HvdReducescatter.apply(tensor, op)


def hvd_grouped_allreduce(tensors, op=dist.ReduceOp.AVG):
    """Each of several tensors reduced, as new ones."""
    return [hvd_allreduce(tensor, op) for tensor in tensors]


def hvd_grouped_allreduce_(tensors, op=dist.ReduceOp.AVG):
    """Reduce several tensors in place."""
    return [hvd_allreduce_(tensor, op) for tensor in tensors]


def hvd_grouped_allgather(tensors):
    """Each of several tensors gathered."""
    return [hvd_allgather(tensor) for tensor in tensors]


def hvd_broadcast_parameters(params, root_rank):
    """Overwrite parameters, or the tensors of a state_dict, by those of one rank."""
    named = sorted(params.items()) if isinstance(params, dict) else list(params)
    for item in named:
        tensor = item[1] if isinstance(item, tuple) else item
        if torch.is_tensor(tensor):
            whole = tensor.detach().contiguous()
            dist.broadcast(whole, root_rank, group=hvd_group(whole))
            tensor.detach().copy_(whole)


def hvd_broadcast_optimizer_state(optimizer, root_rank):
    """Give every rank's optimizer the state and the settings of one rank's."""
    state = hvd_broadcast_object(optimizer.state_dict(), root_rank)
    if dist.get_rank() != root_rank:
        optimizer.load_state_dict(state)


def hvd_broadcast_object(obj, root_rank=0):
    """An object of one rank; its tensors come to the others on the CPU."""
    data = io.BytesIO()
    if dist.get_rank() == root_rank:
        torch.save(obj, data)
    packed = [data.getvalue()]
    dist.broadcast_object_list(packed, src=root_rank, group=hvd_group())
    if dist.get_rank() == root_rank:
        return obj
    settings = {"map_location": "cpu"}
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (1, 13):
        settings["weights_only"] = False  # older ones load everything
    return torch.load(io.BytesIO(packed[0]), **settings)


def hvd_allgather_object(obj):
    """The objects of all ranks, in their order."""
    objects = [None] * dist.get_world_size()
    dist.all_gather_object(objects, obj, group=hvd_group())
    return objects
