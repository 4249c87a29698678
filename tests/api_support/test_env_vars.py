"""Known answers on environment variables."""

from __future__ import annotations

import pytest

from migrator.api_support import env_vars


@pytest.mark.parametrize(
    ("name", "npu", "same_values"),
    [
        ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES", True),
        ("CUDA_LAUNCH_BLOCKING", "ASCEND_LAUNCH_BLOCKING", True),
        ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF", False),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_NPU_MEMORY_CACHING", True),
        ("NCCL_SOCKET_IFNAME", "HCCL_SOCKET_IFNAME", True),
        ("NCCL_BUFFSIZE", "HCCL_BUFFSIZE", False),
        ("TORCH_NCCL_BLOCKING_WAIT", "TORCH_HCCL_BLOCKING_WAIT", True),
        ("NCCL_DEBUG", "", False),
        ("NCCL_IB_DISABLE", "", False),
        ("NCCL_P2P_DISABLE", "", False),
        ("CUDA_DEVICE_ORDER", "", False),
        ("TORCH_CUDA_ARCH_LIST", "", False),
        ("CUBLAS_WORKSPACE_CONFIG", "", False),
    ],
)
def test_env_var(name: str, npu: str, same_values: bool) -> None:
    found = env_vars.look_up(name)
    assert found
    assert (found.npu, found.same_values) == (npu, same_values)
    assert found.npu or found.advice


def test_unknown() -> None:
    assert env_vars.look_up("HOME") is None
