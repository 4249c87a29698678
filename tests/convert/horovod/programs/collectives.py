"""Each collective of Horovod once, on the CPU and on the card, with what every rank gets."""

import horovod.torch as hvd
import torch
from horovod.torch import allreduce as mean_of, rank

hvd.init()
device = "cpu"
if torch.cuda.is_available():
    torch.cuda.set_device(hvd.local_rank())
    device = "cuda"


def say(name, value):
    rounded = value.detach().cpu().tolist() if torch.is_tensor(value) else value
    for number in range(hvd.size()):
        hvd.barrier()
        if number == rank():
            print(f"[{number}] {name} {rounded}", flush=True)


def both():
    for place in ("cpu", device):
        yield place, torch.arange(6.0, device=place).view(3, 2) + 10 * hvd.rank()


say("place", (hvd.rank(), hvd.size(), hvd.local_rank(), hvd.local_size(), hvd.mpi_enabled()))
for place, x in both():
    say("mean", hvd.allreduce(x, name="mean"))
    say("mean of", mean_of(x))
    say("sum", hvd.allreduce(x, average=False, name="sum"))
    say("maybe", hvd.allreduce(x, average=hvd.size() > 5))
    say("min", hvd.allreduce(x, op=hvd.Min))
    say("max", hvd.allreduce(x, name="max", op=hvd.Max))
    say("product", hvd.allreduce(x, op=hvd.Product))
    say("unchanged", x)
    say("whole", hvd.allreduce(torch.tensor([3, -3, 4], device=place) + hvd.rank()))
    y = x.clone()
    say("same", hvd.allreduce_(y, op=hvd.Sum) is y)
    say("in place", y)
    handle = hvd.allreduce_async(x, name="later")
    handles = [hvd.allreduce_async_(y, average=True), hvd.broadcast_async(x, root_rank=1)]
    say("later", hvd.synchronize(handle))
    hvd.poll(handle)
    say("handles", [hvd.synchronize(one).cpu().tolist() for one in handles])
    say("grouped", [one.cpu().tolist() for one in hvd.grouped_allreduce([x, x + 1], op=hvd.Sum)])
    say("gather", hvd.allgather(x[: hvd.rank() + 1], name="gather"))
    say("gather later", hvd.synchronize(hvd.allgather_async(x)))
    say("broadcast", hvd.broadcast(x, 1, name="b"))
    hvd.broadcast_(y, root_rank=1)
    say("broadcast in place", y)
    z = torch.arange(4, device=place) * (hvd.rank() + 1)
    say("all to all", hvd.alltoall(z))
    say("scatter", hvd.reducescatter(x, op=hvd.Sum))

    w = torch.full((2, 2), 2.0 + hvd.rank(), device=place, requires_grad=True)
    (hvd.allreduce(w) * (hvd.rank() + 1)).sum().backward()
    say("gradient of mean", w.grad)
    w.grad = None
    gathered = hvd.allgather(w)
    (
        gathered * torch.arange(1.0, len(gathered) + 1, device=place)[:, None] * (hvd.rank() + 1)
    ).sum().backward()
    say("gradient of gather", w.grad)
    w.grad = None
    (hvd.broadcast(w, root_rank=0) * (hvd.rank() + 3)).sum().backward()
    say("gradient of broadcast", w.grad)

say("object", hvd.broadcast_object({"rank": hvd.rank()}, root_rank=1))
say("objects", hvd.allgather_object((hvd.rank(), "x" * hvd.rank())))
say("f-string", f"{hvd.rank()} of {hvd.size()}, {hvd.local_rank()}")
hvd.shutdown()
