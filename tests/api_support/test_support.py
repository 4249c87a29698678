"""Known answers on APIs."""

from __future__ import annotations

import pytest

from migrator.api_support import support, tables, versions


def look_up(api: str, version: str) -> support.Support:
    found = support.look_up(api, versions.resolve(version))
    assert found, f"{api} is not known"
    return found


@pytest.mark.parametrize(
    ("api", "version", "status", "kernel", "neighbour"),
    [
        ("torch.abs", "2.13", "partial", "kernel", ""),
        ("torch.Tensor.to", "1.8.1", "supported", "kernel", ""),
        # One of the real changes: cdist gained support at 2.7.1.
        ("torch.cdist", "2.6.0", "unsupported", "kernel", ""),
        ("torch.cdist", "2.7.1", "partial", "kernel", ""),
        ("torch.cdist", "2.4.0", "unsupported", "kernel", "2.1.0 and 2.6.0"),
        ("torch.heaviside", "2.13", "unsupported", "none", ""),
        ("torch.nn.RNN", "2.13", "unsupported", "", ""),
        # Only excerpts of the 2.4 document are known, and this API is in one.
        ("torch.cuda.StreamContext", "2.4.0", "unsupported", "", ""),
        ("torch.fft.ihfft", "2.2.0", "unknown", "", "2.1.0 and 2.6.0"),
    ],
)
def test_status(api: str, version: str, status: str, kernel: str, neighbour: str) -> None:
    found = look_up(api, version)
    assert (found.status, found.neighbour) == (status, neighbour)
    assert found.kernel == kernel or not kernel


def test_limits_are_words() -> None:
    found = look_up("torch.cdist", "2.7.1")
    assert found.dtypes == ("bf16+fp16+fp32",)
    assert "param:compute_mode" in found.limits
    assert found.hardware == ("A2", "A3", "950DT")


@pytest.mark.parametrize(
    ("alias", "api"),
    [
        ("torch.nn.Parameter", "torch.nn.parameter.Parameter"),
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch.optim.adam.Adam", "torch.optim.Adam"),
        ("torch.utils.data.dataloader.DataLoader", "torch.utils.data.DataLoader"),
        ("torch.nn.modules.module.Module.to", "torch.nn.Module.to"),
    ],
)
def test_aliases(alias: str, api: str) -> None:
    assert look_up(alias, "2.13") == look_up(api, "2.13")


def test_unknown_api() -> None:
    assert support.look_up("torch.no_such_api", versions.newest()) is None
    assert support.look_up("", versions.newest()) is None


@pytest.mark.parametrize("version", [version.text for version in versions.known()])
def test_every_api_has_an_answer_at_every_version(version: str) -> None:
    resolved = versions.resolve(version)
    apis = {line.partition(",")[0] for line in tables.lines("api_support")}
    assert all(support.look_up(api, resolved) for api in apis)
