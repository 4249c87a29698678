from __future__ import annotations

import torch
import torch_npu


def test_torch_profiler():
    with torch.profiler.profile() as profiler:
        torch.ones(2, device="npu") + 1
    assert "aten::add" in profiler.key_averages().table()


def test_torch_npu_profiler_says_that_it_measures_nothing(tmp_path, capfd):
    with torch_npu.profiler.profile(
        activities=[torch_npu.profiler.ProfilerActivity.CPU, torch_npu.profiler.ProfilerActivity.NPU],
        schedule=torch_npu.profiler.schedule(wait=0, warmup=0, active=1, repeat=1),
        on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(str(tmp_path)),
    ) as profiler:
        for _ in range(2):
            torch.ones(2, device="npu") + 1
            profiler.step()
    assert "measures nothing" in capfd.readouterr().err
