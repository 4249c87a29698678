"""The module that stands for apex.amp: what apex's users rely on, in training on an NPU."""

from __future__ import annotations

import importlib.util

import pytest
import torch
import torch_npu

from migrator.data_folders import data_folder


def loaded():
    spec = importlib.util.spec_from_file_location(
        "ascend_amp", data_folder("reports") / "modules" / "ascend_amp.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def amp():
    """The module, as a program imports it; autocast and its state are left behind the test."""
    yield loaded()
    torch.set_autocast_enabled("npu", False)
    del torch_npu._ascend_amp


def parts(level, amp, **options):
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1).npu()
    return amp.initialize(net, torch.optim.SGD(net.parameters(), 0.05), opt_level=level, **options)


def step(amp, net, optimizer, scale=1.0, **options):
    with amp.scale_loss(
        net(torch.ones(2, 4).npu()).float().pow(2).mean() * scale, optimizer, **options
    ) as loss:
        loss.backward()


def gradient(net):
    return net.weight.grad.cpu()


@pytest.mark.parametrize("level", ["O0", "O1", "O2"])
def test_a_model_is_trained(amp, level):
    net, optimizer = parts(level, amp)
    assert net(torch.ones(2, 4).npu()).dtype is (torch.float32 if level == "O0" else torch.float16)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
    for _ in range(20):
        optimizer.zero_grad()
        step(amp, net, optimizer)
        optimizer.step()
        scheduler.step()
    assert net(torch.ones(2, 4).npu()).abs().max() < 0.1
    assert net.weight.dtype is torch.float32


def test_copies_of_the_module_share_their_state(amp):
    net, optimizer = parts("O1", amp, loss_scale=2.0)
    step(loaded(), net, optimizer)
    assert gradient(net).isfinite().all()


def test_gradients_are_unscaled_behind_the_block_and_add_up(amp):
    plain, optimizer = parts("O0", amp)
    step(amp, plain, optimizer)
    net, optimizer = parts("O1", amp)
    amp._amp_state.loss_scalers[0]._loss_scale = 128  # the first one overflows
    step(amp, net, optimizer)
    torch.testing.assert_close(gradient(net), gradient(plain), rtol=1e-2, atol=1e-3)
    step(amp, net, optimizer)
    step(amp, net, optimizer)
    torch.testing.assert_close(gradient(net), 3 * gradient(plain), rtol=1e-2, atol=1e-3)
    torch.nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
    assert gradient(net).norm() <= 1.0
    optimizer.step()


def test_a_step_after_an_overflow_is_left_out_and_the_scale_falls(amp):
    net, optimizer = parts("O1", amp)
    before = net.weight.detach().clone()
    step(amp, net, optimizer, scale=float("inf"))
    optimizer.step()
    assert torch.equal(net.weight, before)
    optimizer.zero_grad()
    step(amp, net, optimizer)
    optimizer.step()
    assert not torch.equal(net.weight, before)
    assert amp.state_dict()["loss_scaler0"]["loss_scale"] == 2.0**15


def test_two_models_take_turns(amp):
    nets = [torch.nn.Linear(4, 1).npu() for _ in range(2)]
    optimizers = [torch.optim.Adam(net.parameters(), 0.05) for net in nets]
    nets, optimizers = amp.initialize(nets, optimizers, num_losses=2)
    for _ in range(3):
        for number, (net, optimizer) in enumerate(zip(nets, optimizers)):
            optimizer.zero_grad()
            step(amp, net, optimizer, loss_id=number)
        step(amp, nets[0], [*optimizers])
        for optimizer in optimizers:
            optimizer.step()
    assert len(amp.state_dict()) == 2


def test_states_of_apex_and_its_own_scales(amp):
    parts("O1", amp)
    amp.load_state_dict({"loss_scaler0": {"loss_scale": 1024.0, "unskipped": 7}})
    assert amp.state_dict() == {"loss_scaler0": {"loss_scale": 1024.0, "unskipped": 7}}
    amp._amp_state.loss_scalers[0]._loss_scale = 2**20
    assert amp._amp_state.loss_scalers[0].loss_scale() == 2.0**20
    parts("O1", amp, loss_scale=128.0)
    assert amp.state_dict()["loss_scaler0"]["loss_scale"] == 128.0


def test_functions_in_a_precision_of_their_own(amp):
    kind = amp.float_function(lambda x: (x @ x).dtype)
    short = amp.half_function(lambda x: (x @ x).dtype)
    values = torch.ones(2, 2).npu()
    assert kind(values.half()) is torch.float16
    parts("O1", amp)
    assert kind(values.half()) is torch.float32
    assert short(values) is torch.float16


def test_what_it_does_not_have_raises(amp):
    with pytest.raises(RuntimeError, match=r"needs amp\.initialize"):
        step(amp, torch.nn.Linear(4, 1).npu(), None)
    with pytest.raises(ValueError, match="O0, O1 and O2"):
        parts("O3", amp)
