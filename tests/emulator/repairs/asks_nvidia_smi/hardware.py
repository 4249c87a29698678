import shutil


def has_gpu():
    """Whether there is a GPU; cheaper than to start CUDA."""
    return shutil.which("nvidia-smi") is not None
