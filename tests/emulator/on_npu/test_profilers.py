from __future__ import annotations

import torch
import torch_npu


def test_torch_profiler_says_what_it_measures(capfd):
    for _ in range(2):
        activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]
        with torch.profiler.profile(activities=activities) as profiler:
            torch.ones(2, device="npu") + 1
        assert "aten::add" in profiler.key_averages().table()
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("npumigrate emulate: torch.profiler measures the host, and nothing of an NPU") == 1


def test_torch_profiler_with_a_schedule(tmp_path):
    traces = []

    def ready(profiler):
        traces.append(tmp_path / f"trace{len(traces)}.json")
        profiler.export_chrome_trace(str(traces[-1]))

    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=1, warmup=1, active=1, repeat=2),
        on_trace_ready=ready,
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
    ) as profiler:
        for _ in range(6):
            with torch.profiler.record_function("a step"):
                (torch.ones(2, device="npu") @ torch.ones(2, device="npu")).item()
            profiler.step()
    assert len(traces) == 2
    assert "a step" in traces[0].read_text()
    assert any(event.key == "aten::dot" for event in profiler.key_averages(group_by_input_shape=True))


def test_torch_npu_profiler_says_that_it_measures_nothing(tmp_path, capfd):
    with torch_npu.profiler.profile(
        activities=[torch_npu.profiler.ProfilerActivity.CPU, torch_npu.profiler.ProfilerActivity.NPU],
        schedule=torch_npu.profiler.schedule(wait=0, warmup=0, active=1, repeat=1),
        on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(str(tmp_path)),
    ) as profiler:
        for _ in range(2):
            torch.ones(2, device="npu") + 1
            profiler.step()
    assert "profiles have the CPU's times" in capfd.readouterr().err


def test_torch_npu_profiler_with_all_its_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes a folder where it runs
    experimental = torch_npu.profiler._ExperimentalConfig(
        export_type=[torch_npu.profiler.ExportType.Text],
        profiler_level=torch_npu.profiler.ProfilerLevel.Level1,
        aic_metrics=torch_npu.profiler.AiCMetrics.PipeUtilization,
    )
    profiler = torch_npu.profiler.profile(
        record_shapes=True, profile_memory=True, with_stack=True, experimental_config=experimental
    )
    profiler.start()
    torch_npu.npu.mstx.mstx_range("a range")(torch.ones)(2, device="npu")
    torch_npu.npu.mstx.mark("a point")
    profiler.step()
    profiler.stop()
    profiler.export_chrome_trace(str(tmp_path / "trace.json"))
