"""Memory is torch_npu's own allocator's: its sizes, its figures and its message where there is no more."""

from __future__ import annotations

import re

import pytest
import torch

MIB = 1 << 20
# What is asked for, what the allocator counts (32 bytes more, in pieces of 512), what it takes from the NPU:
# 2 MiB for small ones, 20 MiB for those between 1 and 10 MiB, pairs of MiB for larger ones. What is left of
# these is parted from them where it is more than a MiB.
SIZES = {
    1: (512, 2 * MIB),
    480: (512, 2 * MIB),
    481: (1024, 2 * MIB),
    MIB - 32: (MIB, 2 * MIB),
    MIB: (MIB + 512, 20 * MIB),
    10 * MIB - 544: (10 * MIB - 512, 20 * MIB),
    10 * MIB - 32: (10 * MIB, 10 * MIB),
    10 * MIB: (10 * MIB + 512, 12 * MIB),
    13 * MIB: (14 * MIB, 14 * MIB),
}


@pytest.fixture
def device():
    """A device on which nothing lies."""
    found = torch.device("npu", 3)
    torch.npu.empty_cache()
    with torch.npu.device(found):
        torch.npu.reset_peak_memory_stats()
        yield found
        torch.npu.empty_cache()


@pytest.mark.parametrize("size", SIZES)
def test_sizes_are_those_of_the_allocator(device, size):
    before = torch.npu.memory_allocated(), torch.npu.memory_reserved(), torch.npu.mem_get_info()[0]
    data = torch.empty(size, dtype=torch.uint8, device=device)
    allocated, reserved = SIZES[size]
    assert torch.npu.memory_allocated() - before[0] == allocated
    assert torch.npu.memory_reserved() - before[1] == before[2] - torch.npu.mem_get_info()[0] == reserved
    del data
    assert torch.npu.memory_allocated() == before[0]
    assert torch.npu.memory_reserved() - before[1] == reserved  # it is kept for the next one
    assert torch.npu.max_memory_allocated() - before[0] == allocated
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved() == before[1]


def test_small_ones_share_a_segment(device):
    kept = [torch.empty(1, dtype=torch.uint8, device=device) for _ in range(4096)]
    assert torch.npu.memory_reserved() == 2 * MIB
    kept.append(torch.empty(1, dtype=torch.uint8, device=device))
    assert torch.npu.memory_reserved() == 4 * MIB
    assert torch.npu.memory_stats()["segment.small_pool.current"] == 2


def test_out_of_memory_has_the_figures(device):
    """``--memory`` is the capacity; what does not fit is tried again without the cache."""
    free, total = torch.npu.mem_get_info()
    held = torch.empty(total // 2, dtype=torch.uint8, device=device)
    stats = torch.npu.memory_stats()
    with pytest.raises(torch.OutOfMemoryError) as error:
        torch.empty(total // 2, dtype=torch.uint8, device=device)
    shape = (
        r"NPU out of memory\. Tried to allocate ([\d.]+) GiB \(NPU 3; ([\d.]+) GiB total capacity; "
        r"([\d.]+) GiB already allocated; [\d.]+ GiB current active; ([\d.]+ [GM]iB) free; "
        r"([\d.]+) GiB reserved in total"
    )
    found = re.match(shape, str(error.value))
    assert found, str(error.value)
    asked, capacity, allocated, left, reserved = found.groups()
    assert float(capacity) == total / (1 << 30)
    assert float(asked) == float(allocated) == float(reserved) == round(total / 2 / (1 << 30), 2)
    assert left == f"{(free - torch.npu.memory_reserved()) / MIB:.2f} MiB"
    after = torch.npu.memory_stats()
    assert after["num_ooms"] == stats.get("num_ooms", 0) + 1
    assert after["num_alloc_retries"] == stats.get("num_alloc_retries", 0) + 1
    del held
    assert torch.empty(total // 2, dtype=torch.uint8, device=device).numel() == total // 2


def test_a_share_of_the_memory_is_the_limit(device):
    total = torch.npu.mem_get_info()[1]
    torch.npu.set_per_process_memory_fraction(0.25, 3)
    try:
        assert torch.empty(total // 4 - 4 * MIB, dtype=torch.uint8, device=device).numel()
        with pytest.raises(torch.OutOfMemoryError, match=rf"{total / 4 / MIB:.2f} MiB allowed"):
            torch.empty(total // 4 + MIB, dtype=torch.uint8, device=device)
    finally:
        torch.npu.set_per_process_memory_fraction(1.0, 3)
