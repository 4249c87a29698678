"""Which names and parameters torch has at a version."""

from __future__ import annotations

import pytest

from migrator.api_support.torch_names import of_version, spans, versions

OLD, NEW = of_version("1.11.0"), of_version("2.13.0")


@pytest.mark.parametrize(
    "name",
    [
        "torch.compile",
        "torch.amp.GradScaler",
        "torch.nn.RMSNorm",
        "torch.nn.functional.scaled_dot_product_attention",
        "torch.nn.Module.compile",
        "torch.distributed.all_gather_into_tensor",
        "torch.distributed.device_mesh.init_device_mesh",
        "torch.backends.mps.is_available",
        "torch.set_default_device",
        "torch.nn.Module.register_full_backward_pre_hook",
    ],
)
def test_newer_than_torch_1_11(name: str) -> None:
    assert OLD.absent(name)
    assert not OLD.present(name)
    assert NEW.present(name)
    assert not NEW.absent(name)
    assert OLD.known(name)
    assert spans(name)[0][0] in versions()


def test_gone_since_torch_1_11() -> None:
    assert OLD.present("torch._six")
    assert NEW.absent("torch._six")
    assert spans("torch._six")[-1][1] in versions()


def test_of_a_private_module_not_all_is_read() -> None:
    """Torch 1.13 has it as a base of public classes; later it is read under its public name only."""
    assert of_version("1.13.1").present("torchvision.models._api.WeightsEnum")
    assert not NEW.absent("torchvision.models._api.WeightsEnum")
    assert NEW.absent("torch._six.string_classes")


@pytest.mark.parametrize(
    "name",
    [
        "torch.nn.Parameter",
        "torch.nn.parameter.Parameter",
        "torch.nn.Linear.register_buffer",
        "torch.Tensor.abs",
        "torch.Tensor.backward",
        "torch.nn.modules.linear.Linear",
        "torch.float16",
        "torch.backends.cudnn.benchmark",
        "torch.cuda.amp.autocast",
    ],
)
def test_at_every_version(name: str) -> None:
    assert all(of_version(version).present(name) for version in versions())
    assert spans(name)[0][0] == spans(name)[-1][1] == ""


@pytest.mark.parametrize(
    "name",
    [
        "torch.cuda.FloatTensor",
        "torch.ops.aten.add",
        "torch.never_was",
        "torchmetrics.Metric",
        "torch.cuda.os",
    ],
)
def test_what_is_not_known_is_not_absent(name: str) -> None:
    assert not any(of_version(version).absent(name) for version in versions())


def test_parameters() -> None:
    assert "weights_only" in OLD.lacking("torch.load")
    assert spans("torch.load", "weights_only")[0][0] in versions()
    assert "weights_only" not in NEW.lacking("torch.load")
    assert "map_location" not in OLD.lacking("torch.load")
    assert "fused" in OLD.lacking("torch.optim.AdamW")
    assert "use_reentrant" not in OLD.lacking("torch.utils.checkpoint.checkpoint")
    # A keyword of nobody is not torch's.
    assert "never_was" not in OLD.lacking("torch.load")


def test_unknown_parameters() -> None:
    # It hands its keywords to the function that it runs.
    assert NEW.lacking("torch.utils.checkpoint.checkpoint") == frozenset()
    assert NEW.lacking("torch.never_was") == frozenset()
