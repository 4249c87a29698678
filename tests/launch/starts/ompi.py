import os
import torch
import torch.distributed as dist

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
size = int(os.environ["OMPI_COMM_WORLD_SIZE"])
local = int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl", rank=rank, world_size=size)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2).cuda())
model(torch.ones(3, 4).cuda()).sum().backward()
print(f"RANK {rank} of {size} on {next(model.parameters()).device}", flush=True)
