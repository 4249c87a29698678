"""npumigrate: takes PyTorch projects from CUDA and NCCL to Ascend NPUs."""

__version__ = "0.1.0"
