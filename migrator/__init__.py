"""npumigrate: takes PyTorch projects from CUDA and NCCL to Ascend NPUs."""

__version__ = "0.1.0"

# Where the documentation is published, with a / at its end: findings then link to the pages of their rules,
# such as rules/NPU101/. It is not published yet.
SITE = ""
