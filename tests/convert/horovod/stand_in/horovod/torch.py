"""horovod.torch for programs on the CPU: what its documentation says each function does, with point-to-point messages.

No collective of torch.distributed reduces here, and no DistributedDataParallel: what the converted programs use
is compared with something else.
"""

import collections
import contextlib
import io
import os

import torch
import torch.distributed as dist

Average, Sum, Adasum, Min, Max, Product = range(6)


class Compression:
    class none:
        compress = staticmethod(lambda tensor: tensor)

    class fp16:
        compress = staticmethod(lambda tensor: tensor.half())


def init():
    dist.init_process_group("gloo")


def shutdown():
    dist.destroy_process_group()


rank, size = dist.get_rank, dist.get_world_size


def local_rank():
    return int(os.environ["LOCAL_RANK"])


def local_size():
    return int(os.environ["LOCAL_WORLD_SIZE"])


def nccl_built():
    return False


def mpi_enabled():
    return False


def barrier():
    exchanged(torch.zeros(1))


def exchanged(tensor):
    """The tensors of all ranks, which may have any shape."""
    data = io.BytesIO()
    torch.save(tensor.detach().clone(), data)
    mine = torch.frombuffer(bytearray(data.getvalue()), dtype=torch.uint8)
    found = []
    for sender in range(size()):
        length = torch.tensor([len(mine)])
        if sender == rank():
            for other in range(size()):
                if other != sender:
                    dist.send(length, other)
                    dist.send(mine, other)
            found.append(mine)
        else:
            dist.recv(length, sender)
            buffer = torch.zeros(int(length), dtype=torch.uint8)
            dist.recv(buffer, sender)
            found.append(buffer)
    return [torch.load(io.BytesIO(one.numpy().tobytes()), weights_only=False) for one in found]


def reduced(tensor, op):
    every = torch.stack(exchanged(tensor))
    if op in (Average, Sum):
        total = every.sum(0).to(tensor.dtype)
        if op == Sum:
            return total
        return total / size() if tensor.is_floating_point() else (total / size()).to(tensor.dtype)
    return {Min: every.amin, Max: every.amax, Product: every.prod}[op](0)


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, op):
        ctx.op = op
        return reduced(tensor, op)

    @staticmethod
    def backward(ctx, gradient):
        return reduced(gradient, ctx.op), None


def _op(average, op):
    if op is not None:
        return op
    return Sum if average is False else Average


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None):
    return _Allreduce.apply(compression.compress(tensor), _op(average, op)).to(tensor.dtype)


def allreduce_(tensor, average=None, name=None, op=None):
    tensor.data.copy_(reduced(tensor, _op(average, op)))
    return tensor


def allreduce_async(tensor, average=None, name=None, op=None):
    return allreduce(tensor.detach(), op=_op(average, op))


def allreduce_async_(tensor, average=None, name=None, op=None):
    return allreduce_(tensor, op=_op(average, op))


def synchronize(handle):
    return handle


def poll(handle):
    return True


def grouped_allreduce(tensors, average=None, name=None, op=None):
    return [allreduce(tensor, op=_op(average, op)) for tensor in tensors]


def grouped_allreduce_(tensors, average=None, name=None, op=None):
    return [allreduce_(tensor, op=_op(average, op)) for tensor in tensors]


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        parts = exchanged(tensor)
        ctx.start, ctx.length = sum(map(len, parts[: rank()])), len(tensor)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        return reduced(gradient, Average)[ctx.start : ctx.start + ctx.length]


def allgather(tensor, name=None):
    return _Allgather.apply(tensor)


allgather_async = allgather


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root):
        ctx.root = root
        return exchanged(tensor)[root]

    @staticmethod
    def backward(ctx, gradient):
        average = reduced(gradient, Average)
        return average if rank() == ctx.root else torch.zeros_like(average), None


def broadcast(tensor, root_rank, name=None):
    return _Broadcast.apply(tensor, root_rank)


def broadcast_(tensor, root_rank, name=None):
    tensor.data.copy_(exchanged(tensor)[root_rank])
    return tensor


broadcast_async, broadcast_async_ = broadcast, broadcast_


def alltoall(tensor, splits=None, name=None):
    return torch.cat([part.chunk(size())[rank()] for part in exchanged(tensor)])


def reducescatter(tensor, name=None, op=Average):
    whole = reduced(tensor, op)
    lengths = [len(whole) // size() + (number < len(whole) % size()) for number in range(size())]
    return whole.split(lengths)[rank()]


def broadcast_object(obj, root_rank=0, name=None):
    return exchanged(torch.zeros(0)) and _objects(obj)[root_rank]


def allgather_object(obj, name=None):
    return _objects(obj)


def _objects(obj):
    data = io.BytesIO()
    torch.save(obj, data)
    mine = torch.frombuffer(bytearray(data.getvalue()), dtype=torch.uint8)
    return [torch.load(io.BytesIO(part.numpy().tobytes()), weights_only=False) for part in exchanged(mine)]


def broadcast_parameters(params, root_rank):
    named = sorted(params.items()) if isinstance(params, dict) else params
    for item in named:
        broadcast_(item[1] if isinstance(item, tuple) else item, root_rank)


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    state = broadcast_object(optimizer.state_dict(), root_rank)
    optimizer.load_state_dict(state)


class SyncBatchNorm(torch.nn.BatchNorm2d):
    """Statistics of all ranks' batches."""

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        rows = allgather(x)
        rows = rows.detach() + (rows - rows.detach()) * size()  # gradients of all ranks, not their average
        mean, var = rows.mean((0, 2, 3)), rows.var((0, 2, 3), unbiased=False)
        with torch.no_grad():
            self.num_batches_tracked += 1
            count = rows.numel() / rows.shape[1]
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(var * count / (count - 1), self.momentum)
        scale = self.weight / torch.sqrt(var + self.eps)
        return (x - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]


class _Distributed:
    """Gradients are reduced when they are asked for, and after backward_passes_per_step passes."""

    def synchronize(self):
        assert self._passes and set(self._passes.values()) == {self._expected}, "passes of a step"
        for group in self.param_groups:
            for parameter in group["params"]:
                whole = self._compression.compress(parameter.grad)
                parameter.grad.copy_(reduced(whole, self._op).to(parameter.grad.dtype))
        self._passes.clear()
        self._reduced = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        self._skips = True
        yield
        self._skips = False

    def step(self, closure=None):
        if not self._skips:
            self.synchronize()
        return super().step(closure)


def DistributedOptimizer(
    optimizer,
    named_parameters=None,
    compression=Compression.none,
    backward_passes_per_step=1,
    op=Average,
    gradient_predivide_factor=1.0,
    num_groups=0,
    groups=None,
):
    assert op in (Average, Sum)
    kind = type(optimizer)
    optimizer.__class__ = type(kind.__name__, (_Distributed, kind), {})
    optimizer._passes = collections.Counter()
    optimizer._expected, optimizer._compression, optimizer._op = backward_passes_per_step, compression, op
    optimizer._skips = False
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.register_post_accumulate_grad_hook(lambda one: optimizer._passes.update([id(one)]))
    return optimizer
