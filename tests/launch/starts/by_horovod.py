import horovod.torch as hvd
import torch

hvd.init()
torch.cuda.set_device(hvd.local_rank())
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
model(torch.ones(3, 4).cuda()).sum().backward()
optimizer.step()
device = next(model.parameters()).device
seen = hvd.allgather_object((hvd.rank(), str(device)))
assert hvd.allreduce(torch.ones(2), op=hvd.Sum).tolist() == [hvd.size()] * 2, "on the CPU"
assert seen[hvd.rank()] == (hvd.rank(), str(device)) and len(seen) == hvd.size()
print(f"RANK {hvd.rank()} of {hvd.size()} on {device}", flush=True)
