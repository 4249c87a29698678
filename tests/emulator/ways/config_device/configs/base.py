device = "cuda"
seed = 0
amp = dict(enabled=False, device_type="cuda")
env_cfg = dict(cudnn_benchmark=True, dist_cfg=dict(backend="nccl"))
optimizer = dict(type="SGD", lr=0.1, momentum=0.9)
