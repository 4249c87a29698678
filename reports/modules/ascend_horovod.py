"""Made by npumigrate: horovod.torch on NPUs, by torch.distributed.

Horovod has no HCCL operations. The functions are those of horovod.torch, over HCCL; objects, and tensors on
the CPU, go over a second group with gloo. There is no Adasum, no join, no elastic run and no process set.
"""

# npumigrate: skip-file

import atexit
import gc
import io
import os
import sys
from contextlib import contextmanager
from functools import partial

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401
from ranks import join_ranks

Average, Sum, Adasum, Min, Max, Product = range(6)
SyncBatchNorm = torch.nn.SyncBatchNorm
_BUCKET = 25 << 20  # bytes of gradients that are reduced together


class HorovodInternalError(RuntimeError):
    """Of Horovod; torch.distributed raises a RuntimeError where a collective fails."""


class Compressor:
    """What is done with a tensor before it is reduced, and with the result."""

    @staticmethod
    def compress(tensor):
        """The tensor to be sent, and what decompress needs to know."""
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        """The tensor as it was before, reduced."""
        return tensor


class _AsHalf(Compressor):
    @staticmethod
    def compress(tensor):
        return (tensor.half() if tensor.is_floating_point() else tensor), tensor.dtype

    @staticmethod
    def decompress(tensor, ctx):
        return tensor.to(ctx)


class Compression:
    """The ways to send gradients."""

    none = Compressor
    fp16 = _AsHalf


class _AllRanks:
    """The process set of all ranks, the only one there is."""

    process_set_id = 0

    def rank(self):
        return rank()

    def size(self):
        return size()

    def included(self):
        return True


global_process_set = _AllRanks()


# -- the ranks ---------------------------------------------------------------------------------------------


def init(comm=None, process_sets=None):
    """Join the ranks that the launcher has started, each on its NPU; without a launcher, be the only one."""
    if comm is not None or process_sets:
        _has_not("init with a communicator or with process sets")
    if dist.is_initialized():
        return
    join_ranks()
    backend = "gloo"
    if torch.npu.is_available():
        backend = "hccl"
        torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend)
    atexit.register(_at_exit)


def shutdown():
    """Part from the other ranks."""
    if dist.is_initialized():
        gc.collect()
        dist.destroy_process_group()
        _group.__dict__.clear()


def _at_exit():
    if not hasattr(sys, "last_value"):  # after an error the others may be gone
        shutdown()


def is_initialized():
    """Whether the ranks have been joined."""
    return dist.is_initialized()


def rank():
    """The number of this rank."""
    return dist.get_rank()


def size():
    """How many ranks there are."""
    return dist.get_world_size()


def local_rank():
    """The number of this rank on its machine."""
    return int(os.environ.get("LOCAL_RANK", 0))


def local_size():
    """How many ranks this machine has."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", 1))


def cross_rank():
    """The number of the machine."""
    return rank() // local_size()


def cross_size():
    """How many machines there are."""
    return size() // local_size()


def is_homogeneous():
    """Whether all machines have as many ranks: they have."""
    return True


def nccl_built():
    """Whether tensors on cards are reduced on these: on NPUs by HCCL."""
    return int(torch.npu.is_available())


def cuda_built():
    """Whether there are cards."""
    return torch.npu.is_available()


def gloo_built():
    """Whether there is gloo."""
    return dist.is_gloo_available()


gloo_enabled = gloo_built


def mpi_built():
    """There is no MPI, nor another library."""
    return False


mpi_enabled = mpi_threads_supported = ddl_built = ccl_built = rocm_built = mpi_built


def start_timeline(file_path, mark_cycles=False):
    """Nothing: torch_npu.profiler shows the collectives."""


def stop_timeline():
    """Nothing."""


def _has_not(what):
    raise NotImplementedError(f"torch.distributed has no {what}")


def join(device=-1):
    """Not there: give each rank as many batches."""
    _has_not("join: give each rank as many batches")


def add_process_set(process_set):
    """Not there."""
    _has_not("process sets of Horovod: use its groups")


ProcessSet = remove_process_set = add_process_set


class _Elastic:
    """Not there: torchrun starts a script again."""

    def __getattr__(self, name):
        _has_not("elastic runs of Horovod: torchrun starts a script again")


elastic = _Elastic()


# -- collectives -------------------------------------------------------------------------------------------


def _group(tensor=None):
    """The process group for a tensor: that of the NPUs, or over gloo for objects and what is on the CPU."""
    if dist.get_backend() == "gloo" or (tensor is not None and tensor.device.type == "npu"):
        return None
    if not hasattr(_group, "on_cpu"):
        _group.on_cpu = dist.new_group(backend="gloo")
    return _group.on_cpu


def _chosen(average, op, process_set):
    """What is done with the ranks' values."""
    if process_set not in (None, global_process_set):
        _has_not("process sets of Horovod: use its groups")
    if average is not None and op is not None:
        raise ValueError("op and average cannot both be given")
    op = op if op is not None else Sum if average is False else Average
    if op == Adasum:
        _has_not("Adasum: average, and scale the learning rate by the number of ranks")
    return op


def _copied(tensor):
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _divided(tensor):
    """A sum divided by the number of ranks; whole numbers stay whole."""
    exact = tensor.is_floating_point() or tensor.is_complex()
    return tensor.detach().div_(size(), rounding_mode=None if exact else "trunc")


def _reduce(tensor, op, scale=1.0):
    """Start to reduce a tensor in place."""
    kinds = {Min: dist.ReduceOp.MIN, Max: dist.ReduceOp.MAX, Product: dist.ReduceOp.PRODUCT}
    kind = kinds.get(op, dist.ReduceOp.SUM)
    work = dist.all_reduce(tensor.detach(), kind, group=_group(tensor), async_op=True)

    def result():
        if op == Average:
            _divided(tensor)
        if scale != 1.0:
            tensor.detach().mul_(scale)
        return tensor

    return work, result


def synchronize(handle):
    """Wait for a collective that was started, and return its result."""
    work, result = handle
    if work is not None:
        work.wait()
    return result()


def poll(handle):
    """Whether a collective that was started is done."""
    return handle[0] is None or handle[0].is_completed()


def allreduce_async_(
    tensor,
    average=None,
    name=None,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """Start to replace a tensor by the average of the ranks' tensors, or by what op says."""
    op = _chosen(average, op, process_set)
    if prescale_factor != 1.0:
        tensor.detach().mul_(prescale_factor)
    return _reduce(tensor, op, postscale_factor)


def allreduce_async(tensor, *args, **kwargs):
    """The same with a copy of the tensor."""
    return allreduce_async_(_copied(tensor), *args, **kwargs)


def allreduce_(tensor, *args, **kwargs):
    """Replace a tensor by the average of the ranks' tensors, or by what op says."""
    return synchronize(allreduce_async_(tensor, *args, **kwargs))


class _Allreduce(torch.autograd.Function):
    """A reduced copy; its gradient is reduced in the same way."""

    @staticmethod
    def forward(ctx, tensor, op):
        ctx.op = op
        return synchronize(_reduce(_copied(tensor), op))

    @staticmethod
    def backward(ctx, gradient):
        return _Allreduce.apply(gradient, ctx.op), None


def allreduce(
    tensor,
    average=None,
    name=None,
    compression=Compression.none,
    op=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
    process_set=None,
):
    """The average of the ranks' tensors, or what op says, as a new tensor."""
    op = _chosen(average, op, process_set)
    sent, ctx = compression.compress(tensor if prescale_factor == 1.0 else tensor * prescale_factor)
    result = compression.decompress(_Allreduce.apply(sent, op), ctx)
    return result if postscale_factor == 1.0 else result * postscale_factor


def grouped_allreduce(tensors, *args, **kwargs):
    """Each of several tensors reduced, as new ones."""
    return [allreduce(tensor, *args, **kwargs) for tensor in tensors]


def grouped_allreduce_(tensors, *args, **kwargs):
    """Reduce several tensors in place."""
    return [allreduce_(tensor, *args, **kwargs) for tensor in tensors]


def _all_of(handles):
    return None, lambda: [synchronize(handle) for handle in handles]


def grouped_allreduce_async(tensors, *args, **kwargs):
    """Start to reduce copies of several tensors."""
    return _all_of([allreduce_async(tensor, *args, **kwargs) for tensor in tensors])


def grouped_allreduce_async_(tensors, *args, **kwargs):
    """Start to reduce several tensors in place."""
    return _all_of([allreduce_async_(tensor, *args, **kwargs) for tensor in tensors])


def sparse_allreduce_async(tensor, name, op):
    """Start to reduce a dense copy of a sparse tensor."""
    return allreduce_async_(tensor.to_dense(), op=op)


def _lengths(tensor):
    """The first dimensions of the ranks' tensors."""
    own = torch.tensor([len(tensor)], device=tensor.device)
    lengths = [torch.empty_like(own) for _ in range(size())]
    dist.all_gather(lengths, own, group=_group(own))
    return [int(length) for length in lengths]


def allgather_async(tensor, name=None, process_set=None):
    """Start to put the ranks' tensors one behind the other."""
    _chosen(None, None, process_set)
    lengths = _lengths(tensor)
    padded = tensor.new_zeros((max(lengths), *tensor.shape[1:]))  # all_gather wants tensors of one shape
    padded[: len(tensor)] = tensor.detach()
    parts = [torch.empty_like(padded) for _ in lengths]
    work = dist.all_gather(parts, padded, group=_group(padded), async_op=True)
    return work, lambda: torch.cat([part[:length] for part, length in zip(parts, lengths)])


class _Allgather(torch.autograd.Function):
    """All ranks' tensors; the gradient of each is the average of what the ranks have for it."""

    @staticmethod
    def forward(ctx, tensor):
        ctx.place = sum(_lengths(tensor)[: rank()]), len(tensor)
        return synchronize(allgather_async(tensor))

    @staticmethod
    def backward(ctx, gradient):
        return allreduce(gradient).narrow(0, *ctx.place)


def allgather(tensor, name=None, process_set=None):
    """The ranks' tensors one behind the other; they may differ in their first dimension."""
    _chosen(None, None, process_set)
    return _Allgather.apply(tensor)


def grouped_allgather(tensors, name=None, process_set=None):
    """Each of several tensors gathered."""
    return [allgather(tensor, process_set=process_set) for tensor in tensors]


def broadcast_async_(tensor, root_rank, name=None, process_set=None):
    """Start to replace a tensor by that of one rank."""
    _chosen(None, None, process_set)
    work = dist.broadcast(tensor.detach(), root_rank, group=_group(tensor), async_op=True)
    return work, lambda: tensor


def broadcast_async(tensor, *args, **kwargs):
    """The same with a copy of the tensor."""
    return broadcast_async_(_copied(tensor), *args, **kwargs)


def broadcast_(tensor, *args, **kwargs):
    """Replace a tensor by that of one rank."""
    return synchronize(broadcast_async_(tensor, *args, **kwargs))


class _Broadcast(torch.autograd.Function):
    """One rank's tensor; its gradient, the average of the ranks', goes to that rank."""

    @staticmethod
    def forward(ctx, tensor, root_rank):
        ctx.root_rank = root_rank
        return synchronize(broadcast_async(tensor, root_rank))

    @staticmethod
    def backward(ctx, gradient):
        gradient = allreduce(gradient)
        return (gradient if rank() == ctx.root_rank else gradient * 0), None


def broadcast(tensor, root_rank, name=None, process_set=None):
    """The tensor of one rank, as a new one."""
    _chosen(None, None, process_set)
    return _Broadcast.apply(tensor, root_rank)


class _Alltoall(torch.autograd.Function):
    """Equal parts to and from every rank; so go their gradients."""

    @staticmethod
    def forward(ctx, tensor):
        result = torch.empty_like(tensor, memory_format=torch.contiguous_format)
        dist.all_to_all_single(result, tensor.contiguous(), group=_group(tensor))
        return result

    @staticmethod
    def backward(ctx, gradient):
        return _Alltoall.apply(gradient)


def alltoall(tensor, splits=None, name=None, process_set=None):
    """Send each rank a part of a tensor; return what came, with its splits if they are given."""
    _chosen(None, None, process_set)
    if splits is None:
        return _Alltoall.apply(tensor)
    if tensor.requires_grad:
        _has_not("gradients of an alltoall with splits")
    sent = torch.as_tensor(splits, dtype=torch.int64, device=tensor.device)
    came = _Alltoall.apply(sent)
    result = tensor.new_empty((int(came.sum()), *tensor.shape[1:]))
    dist.all_to_all_single(result, tensor.contiguous(), came.tolist(), sent.tolist(), group=_group(tensor))
    return result, came


class _Reducescatter(torch.autograd.Function):
    """This rank's part of the reduced tensor; the gradients are gathered."""

    @staticmethod
    def forward(ctx, tensor, op):
        ctx.op = op
        return torch.tensor_split(synchronize(_reduce(_copied(tensor), op)), size())[rank()].clone()

    @staticmethod
    def backward(ctx, gradient):
        gathered = allgather(gradient)
        return (gathered * size() if ctx.op == Sum else gathered), None


def reducescatter(
    tensor,
    name=None,
    compression=Compression.none,
    op=Average,
    process_set=None,
    prescale_factor=1.0,
    postscale_factor=1.0,
):
    """This rank's part of the reduced tensor; the first ranks have a row more where it does not divide."""
    op = _chosen(None, op, process_set)
    sent, ctx = compression.compress(tensor if prescale_factor == 1.0 else tensor * prescale_factor)
    result = compression.decompress(_Reducescatter.apply(sent, op), ctx)
    return result if postscale_factor == 1.0 else result * postscale_factor


def barrier(process_set=None):
    """Wait for all ranks."""
    _chosen(None, None, process_set)
    dist.barrier()


def broadcast_object(obj, root_rank=0, name=None, process_set=None):
    """An object of one rank; its tensors come to the others on the CPU."""
    _chosen(None, None, process_set)
    data = io.BytesIO()
    if rank() == root_rank:
        torch.save(obj, data)
    packed = [data.getvalue()]
    dist.broadcast_object_list(packed, src=root_rank, group=_group())
    if rank() == root_rank:
        return obj
    settings = {"map_location": "cpu"}
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (1, 13):
        settings["weights_only"] = False  # older ones load everything
    return torch.load(io.BytesIO(packed[0]), **settings)


def allgather_object(obj, name=None):
    """The objects of all ranks, in their order."""
    objects = [None] * size()
    dist.all_gather_object(objects, obj, group=_group())
    return objects


# -- training ----------------------------------------------------------------------------------------------


def broadcast_parameters(params, root_rank=0, prefix=None):
    """Overwrite parameters, or the tensors of a state_dict, by those of one rank."""
    named = sorted(params.items()) if isinstance(params, dict) else list(params)
    for item in named:
        tensor = item[1] if isinstance(item, tuple) else item
        if torch.is_tensor(tensor):
            whole = tensor.detach().contiguous()
            dist.broadcast(whole, root_rank, group=_group(whole))
            tensor.detach().copy_(whole)


def broadcast_optimizer_state(optimizer, root_rank, model=None):
    """Give every rank's optimizer the state and the settings of one rank's."""
    state = broadcast_object(optimizer.state_dict(), root_rank)
    if rank() != root_rank:
        optimizer.load_state_dict(state)


class _Reducer:
    """Reduces gradients while backward() goes on, in buckets that are the same on all ranks, in one order."""

    def __init__(self, parameters, compression, passes, op):
        self.compression, self.passes, self.op = compression, passes, op
        self.buckets = []  # the last parameters first, as their gradients come first
        room, kind = 0, None
        for parameter in reversed(parameters):
            length = parameter.numel() * parameter.element_size()
            if length > room or parameter.dtype is not kind:
                self.buckets.append([])
                room, kind = _BUCKET, parameter.dtype
            self.buckets[-1].append(parameter)
            room -= length
        self.passes_of = {}
        self.started = []  # each with what it sends, for the buckets in their order
        self.hooked = []
        for parameter in parameters:
            hook = partial(self._arrived, parameter)
            if hasattr(parameter, "register_post_accumulate_grad_hook"):
                parameter.register_post_accumulate_grad_hook(hook)
            else:
                self.hooked.append(parameter.expand_as(parameter).grad_fn.next_functions[0][0])
                self.hooked[-1].register_hook(hook)

    def _arrived(self, parameter, *_):
        """A gradient was added up once more."""
        number = self.passes_of[parameter] = self.passes_of.get(parameter, 0) + 1
        if number > self.passes:
            raise AssertionError(
                "Gradients were computed more than backward_passes_per_step times before call to step(). "
                "Increase backward_passes_per_step to accumulate gradients locally."
            )
        while number == self.passes and len(self.started) < len(self.buckets):
            bucket = self.buckets[len(self.started)]
            if any(self.passes_of.get(each, 0) < self.passes for each in bucket):
                break
            self._start(bucket)

    def _start(self, bucket):
        parts = []
        for parameter in bucket:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            elif parameter.grad.is_sparse:
                parameter.grad = parameter.grad.to_dense()
            parts.append(self.compression.compress(parameter.grad.detach()))
        sent = torch.cat([part.reshape(-1) for part, _ in parts])
        work = dist.all_reduce(sent, group=_group(sent), async_op=True)
        self.started.append((work, sent, [ctx for _, ctx in parts]))

    def finish(self):
        """Wait for all gradients; those that a rank has not are zero there."""
        while len(self.started) < len(self.buckets):
            self._start(self.buckets[len(self.started)])
        for bucket, (work, sent, every) in zip(self.buckets, self.started):
            work.wait()
            parts = sent.split([parameter.numel() for parameter in bucket])
            for parameter, part, ctx in zip(bucket, parts, every):
                whole = self.compression.decompress(part.view(parameter.shape), ctx)
                parameter.grad.detach().copy_(_divided(whole) if self.op == Average else whole)
        self.passes_of, self.started = {}, []


class _Distributed:
    """What DistributedOptimizer adds to an optimizer."""

    _reducer, _waits, _is_reduced = None, True, False

    def set_backward_passes_per_step(self, passes):
        """How often gradients are added up before they are reduced."""
        self._reducer.passes = passes

    def synchronize(self):
        """Wait for the reduced gradients."""
        self._reducer.finish()
        self._is_reduced = True

    @contextmanager
    def skip_synchronize(self):
        """A step in it takes the gradients as they are: synchronize() was called, and they were changed."""
        self._waits = False
        try:
            yield
        finally:
            self._waits = True

    def step(self, *args, **kwargs):
        """A step of the optimizer with the gradients of all ranks."""
        if self._waits:
            self.synchronize()
        self._is_reduced = False
        return super().step(*args, **kwargs)

    def zero_grad(self, *args, **kwargs):
        """As the optimizer's own, where no gradients are under way."""
        if self._reducer.passes_of:
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() or "
                "optimizer.synchronize()."
            )
        return super().zero_grad(*args, **kwargs)


def DistributedOptimizer(  # noqa: N802
    optimizer,
    named_parameters=None,
    compression=Compression.none,
    backward_passes_per_step=1,
    op=Average,
    gradient_predivide_factor=1.0,
    num_groups=0,
    groups=None,
    sparse_as_dense=False,
    process_set=None,
):
    """The optimizer, with gradients that are averaged over the ranks, or added up."""
    op = _chosen(None, op, process_set)
    if op not in (Average, Sum):
        raise ValueError("gradients are averaged or added up")
    kind = type(optimizer)
    found = object.__new__(type(kind.__name__, (_Distributed, kind), {}))
    # A scheduler may have put a step of its own into the plain one.
    vars(found).update({name: value for name, value in vars(optimizer).items() if name != "step"})
    parameters = [one for group in found.param_groups for one in group["params"] if one.requires_grad]
    found._reducer = _Reducer(parameters, compression, backward_passes_per_step, op)
    return found
