from __future__ import annotations

import copy
import io
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def gradients(model, data, device):
    """The result's sum of squares, differentiated by the input and the weights."""
    model = copy.deepcopy(model).to(device)
    data = data.clone().to(device).requires_grad_()
    model(data).pow(2).sum().backward()
    return [data.grad.cpu(), *(weight.grad.cpu() for weight in model.parameters())]


def assert_as_on_the_cpu(model, data):
    for npu, cpu in zip(gradients(model, data, "npu"), gradients(model, data, "cpu")):
        torch.testing.assert_close(npu, cpu)


class Recurrent(nn.Module):
    def __init__(self, kind, packed):
        super().__init__()
        self.layer = kind(4, 5, 2, batch_first=True, bidirectional=True)
        self.packed = packed

    def forward(self, data):
        if not self.packed:
            return self.layer(data)[0]
        packed = nn.utils.rnn.pack_padded_sequence(data, torch.tensor([6, 4, 2]), batch_first=True)
        return nn.utils.rnn.pad_packed_sequence(self.layer(packed)[0], batch_first=True)[0]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(kind, packed):
    assert_as_on_the_cpu(Recurrent(kind, packed), torch.randn(3, 6, 4))


def test_a_small_network():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 3),
    )
    assert_as_on_the_cpu(model, torch.randn(2, 3, 8, 8))


def test_attention():
    assert_as_on_the_cpu(
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True), torch.randn(2, 5, 8)
    )


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_optimizers(kind):
    start = nn.Linear(3, 3)
    data = torch.randn(4, 3)
    ends = []
    for device in ("cpu", "npu"):
        model = copy.deepcopy(start).to(device)
        optimizer = kind(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(data.to(device)).pow(2).sum().backward()
            optimizer.step()
        ends.append(model.weight.detach().cpu())
    torch.testing.assert_close(*ends)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_mixed_precision(dtype):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 3)).npu()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    scaler = torch.amp.GradScaler("npu", init_scale=1024)
    data, labels = torch.randn(2, 3, 8, 8).npu(), torch.tensor([0, 1]).npu()
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast("npu", dtype=dtype):
            out = model(data)
            loss = functional.cross_entropy(out, labels)
        assert out.dtype == dtype
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_a_step_with_an_overflow_is_skipped():
    weight = torch.ones(2, device="npu", requires_grad=True)
    optimizer = torch.optim.SGD([weight], 1.0)
    scaler = torch.amp.GradScaler("npu", init_scale=1024)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [1, 1]
    assert scaler.get_scale() == 512


def test_save_and_load():
    file = io.BytesIO()
    torch.save({"one": torch.arange(3.0, device="npu:0"), "other": torch.ones(2, device="npu:1")}, file)
    for place, devices in (
        (None, ("npu:0", "npu:1")),
        ("npu:0", ("npu:0", "npu:0")),
        ("cpu", ("cpu", "cpu")),
    ):
        file.seek(0)
        loaded = torch.load(file, map_location=place)
        assert (str(loaded["one"].device), str(loaded["other"].device)) == devices
        assert loaded["one"].tolist() == [0, 1, 2]


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.full((3,), float(index))


def test_pinned_loaders_with_workers():
    loader = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=True)
    batches = list(loader)
    assert all(batch.is_pinned() for batch in batches)
    assert [batch.npu(non_blocking=True).sum().item() for batch in batches] == [18, 66]


def test_data_parallel():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh())
    data = torch.randn(6, 2)
    model(data).sum().backward()
    expected = model[0].weight.grad.clone()
    parallel = nn.DataParallel(copy.deepcopy(model).npu(), device_ids=[0, 1, 2])
    parallel.zero_grad()
    parallel(data.npu()).sum().backward()
    torch.testing.assert_close(parallel.module[0].weight.grad.cpu(), expected)


def test_data_parallel_refuses_as_torch_does():
    with pytest.raises(
        RuntimeError, match=r"on device npu:0 \(device_ids\[0\]\) but found one of them on device: npu:1"
    ):
        nn.DataParallel(nn.Linear(2, 3).to("npu:1"), device_ids=[0, 1])(torch.ones(4, 2).npu())
    # Without device_ids: all NPUs.
    parallel = nn.DataParallel(nn.Linear(2, 3).npu())
    assert parallel.device_ids == [0, 1, 2, 3]
    assert parallel(torch.ones(5, 2).npu()).shape == (5, 3)


def test_broadcast_and_gather_between_devices():
    copies = torch.nn.parallel.comm.broadcast(torch.arange(3.0).npu(), [0, 1, 2])
    assert [copy.device.index for copy in copies] == [0, 1, 2]
    assert torch.nn.parallel.comm.gather(copies, dim=0, destination=1).tolist() == [0, 1, 2] * 3
    assert torch.nn.parallel.comm.reduce_add(copies, 0).tolist() == [0, 3, 6]


def test_checkpointed_layers_draw_the_same_numbers_again():
    layer = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 1)).npu()
    data = torch.randn(3, 4).npu().requires_grad_()
    gradients = []
    for reentrant in (None, True, False):
        torch.manual_seed(2)
        out = layer(data) if reentrant is None else checkpoint(layer, data, use_reentrant=reentrant)
        gradients.append(torch.autograd.grad(out.sum(), data)[0] if not reentrant else backward(out, data))
    torch.testing.assert_close(gradients[1], gradients[0])
    torch.testing.assert_close(gradients[2], gradients[0])


def backward(out, data):
    data.grad = None
    out.sum().backward()
    return data.grad


def test_models_saved_on_another_device(tmp_path):
    model = nn.Linear(2, 2).to("npu:1")
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    for place, device in (({"npu:1": "npu:0"}, "npu:0"), (torch.device("npu:2"), "npu:2")):
        loaded = torch.load(tmp_path / "weights.pt", map_location=place, weights_only=True)
        assert str(loaded["weight"].device) == device
    loaded = torch.load(tmp_path / "weights.pt", map_location=lambda storage, _: storage)
    assert loaded["weight"].device.type == "cpu"
    host = nn.Linear(2, 2)
    host.load_state_dict(torch.load(tmp_path / "weights.pt"))
    assert torch.equal(host.weight, model.weight.cpu())


def test_threads_of_a_program_train_side_by_side():
    def train(device):
        weight = torch.ones(8, 8, device=device, requires_grad=True)
        for _ in range(20):
            (weight @ weight).sum().backward()
        return weight.grad.sum().item()

    with ThreadPoolExecutor(4) as pool:
        sums = list(pool.map(train, (f"npu:{index}" for index in range(4))))
    assert sums == [20 * 8 * 8 * 16] * 4
