import os


def has_gpu():
    return any(os.path.exists(f"/dev/nvidia{number}") for number in range(8))
