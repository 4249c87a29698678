"""Every collective of torch.distributed over HCCL; run by torchrun with any number of ranks."""

import os

import torch
import torch.distributed as dist

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
npu = torch.device("npu", int(os.environ["LOCAL_RANK"]))
torch.npu.set_device(npu)
dist.init_process_group("hccl")
total = ranks * (ranks + 1) // 2


def check(name, got, expected):
    got = got.tolist() if isinstance(got, torch.Tensor) else got
    assert got == expected, f"rank {rank}: {name}: {got}, not {expected}"


def mine(size=3, dtype=torch.float32):
    return torch.full((size,), rank + 1, dtype=dtype, device=npu)


for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8):
    data = mine(dtype=dtype)
    dist.all_reduce(data)
    expected = (total + 128) % 256 - 128 if dtype == torch.int8 else total  # it wraps around
    check(f"all_reduce {dtype}", data, [expected] * 3)
for op, expected in ((dist.ReduceOp.MAX, ranks), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.AVG, total / ranks)):
    data = mine()
    dist.all_reduce(data, op=op)
    check(f"all_reduce {op}", data, [expected] * 3)
big = torch.arange(3_000_001, dtype=torch.float32, device=npu) % 1000 * (rank + 1)  # several pieces
dist.all_reduce(big)
assert torch.equal(big, torch.arange(3_000_001, dtype=torch.float32, device=npu) % 1000 * total)

data = mine()
dist.broadcast(data, ranks - 1)
check("broadcast", data, [ranks] * 3)
data = mine()
dist.reduce(data, 0)
if rank == 0:
    check("reduce", data, [total] * 3)
parts = [torch.zeros(3, device=npu) for _ in range(ranks)]
dist.all_gather(parts, mine())
check("all_gather", torch.stack(parts)[:, 0], [*range(1, ranks + 1)])
for dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool, torch.bfloat16):
    parts = [torch.zeros(3, device=npu).to(dtype) for _ in range(ranks)]  # fewer bytes than HCCL aligns to
    dist.all_gather(parts, torch.tensor([rank % 2, 1, 0], device=npu).to(dtype))
    check(f"all_gather {dtype}", [part.tolist() for part in parts], [[r % 2, 1, 0] for r in range(ranks)])
whole = torch.zeros(3 * ranks, device=npu)
dist.all_gather_into_tensor(whole, mine())
check("all_gather_into_tensor", whole[::3], [*range(1, ranks + 1)])
uneven = [torch.zeros(size + 1, device=npu) for size in range(ranks)]
dist.all_gather(uneven, mine(rank + 1))
check("all_gather, uneven", torch.cat(uneven), [float(r + 1) for r in range(ranks) for _ in range(r + 1)])
part = torch.zeros(2, device=npu)
dist.reduce_scatter_tensor(part, torch.arange(2.0 * ranks, device=npu))
check("reduce_scatter_tensor", part, [2.0 * rank * ranks, (2.0 * rank + 1) * ranks])
dist.reduce_scatter(part, [mine(2) * to for to in range(ranks)])
check("reduce_scatter", part, [float(total * rank)] * 2)
dist.scatter(part, [torch.full((2,), float(to), device=npu) for to in range(ranks)] if rank == 0 else None, 0)
check("scatter", part, [float(rank)] * 2)
out = torch.zeros(ranks, device=npu)
dist.all_to_all_single(out, torch.arange(float(ranks), device=npu) + 100 * rank)
check("all_to_all_single", out, [100.0 * r + rank for r in range(ranks)])
out = torch.zeros(ranks * (rank + 1), device=npu)
dist.all_to_all_single(
    out,
    torch.cat([torch.full((to + 1,), float(rank), device=npu) for to in range(ranks)]),
    output_split_sizes=[rank + 1] * ranks,
    input_split_sizes=[to + 1 for to in range(ranks)],
)
check("all_to_all_single, uneven", out, [float(r) for r in range(ranks) for _ in range(rank + 1)])
received = [torch.zeros(1, device=npu) for _ in range(ranks)]
dist.all_to_all(received, [torch.full((1,), 10.0 * rank + to, device=npu) for to in range(ranks)])
check("all_to_all", torch.cat(received), [10.0 * r + rank for r in range(ranks)])

long = torch.full((700_000,), float(rank), device=npu)  # more than one letter
got = torch.zeros_like(long)
after, before = (rank + 1) % ranks, (rank - 1) % ranks
for request in dist.batch_isend_irecv(
    [dist.P2POp(dist.isend, long, after), dist.P2POp(dist.irecv, got, before)]
):
    request.wait()
check("batch_isend_irecv", got.unique(), [float(before)])
if rank == 0:
    dist.send(mine(), 1)
elif rank == 1:
    dist.recv(data, 0)
    check("send, recv", data, [1] * 3)

objects = [None] * ranks
dist.all_gather_object(objects, {"rank": rank})
check("all_gather_object", objects, [{"rank": r} for r in range(ranks)])
objects = ["from 0", 7] if rank == 0 else [None, None]
dist.broadcast_object_list(objects, 0)
check("broadcast_object_list", objects, ["from 0", 7])

pair = dist.new_group([0, 1])
if rank < 2:
    data = mine()
    dist.all_reduce(data, group=pair)
    check("a group of two", data, [3] * 3)
work = dist.all_reduce(data := mine(), async_op=True)
work.wait()
check("async", data, [total] * 3)
refused = ""
try:
    dist.all_reduce(torch.ones(1, dtype=torch.float64, device=npu))
except (RuntimeError, TypeError) as error:
    refused = str(error)
assert "float64" in refused.lower() or "hccl" in refused.lower(), f"HCCL reduces no float64: {refused}"
dist.barrier()
dist.destroy_process_group()
if rank == 0:
    print("all collectives are right")
