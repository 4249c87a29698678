import torch
import torch_npu

model = torch.nn.Linear(4, 4).npu()
print(model(torch.ones(2, 4, device="npu")).sum().item())
torch.npu.synchronize()
