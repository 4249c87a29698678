"""Times steps on whatever torch is told to use."""

import time

import torch


class StepTimer:
    """Waits for the device before it looks at the clock."""

    def __init__(self, kind):
        self.backend = getattr(torch, kind)
        self.times = []

    def __enter__(self):
        self.backend.synchronize()
        self.begun = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.backend.synchronize()
        self.times.append(time.perf_counter() - self.begun)

    def peak(self):
        return self.backend.max_memory_allocated() // 2**20
