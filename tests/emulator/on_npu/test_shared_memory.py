"""NPU tensors that processes share (torch.multiprocessing)."""

from __future__ import annotations

import torch
from torch import multiprocessing, nn

SPAWN = multiprocessing.get_context("spawn")


def add_one(received, done):
    data, weight = received.get()
    assert (data.device, data[3:].tolist(), weight.requires_grad) == (torch.device("npu:1"), [3, 4], True)
    with torch.no_grad():
        data += 1
        weight *= 2
    del data, weight
    done.put("done")


def test_a_tensor_in_a_queue_is_the_same_memory():
    to_child, from_child = SPAWN.Queue(), SPAWN.Queue()
    child = SPAWN.Process(target=add_one, args=(to_child, from_child))
    child.start()
    data = torch.arange(10.0, device="npu:1")[:5]
    weight = nn.Parameter(torch.ones(3, device="npu:1"))
    to_child.put((data, weight))
    assert from_child.get(timeout=900) == "done"
    child.join(60)
    assert child.exitcode == 0
    assert data.tolist() == [1, 2, 3, 4, 5]
    assert weight.tolist() == [2, 2, 2]


def train(rank, model, data):
    step = torch.optim.SGD(model.parameters(), 0.5)
    model(data).sum().backward()
    step.step()


def test_a_shared_model_is_trained_in_another_process():
    model, data = nn.Linear(2, 1, bias=False).npu(), torch.tensor([[1.0, 2.0]]).npu()
    before = model.weight.detach().clone()
    model.share_memory()
    multiprocessing.spawn(train, (model, data))
    torch.testing.assert_close(model.weight, before - 0.5 * data)


def test_an_event_has_a_handle():
    event = torch.npu.Event(interprocess=True)
    event.record()
    torch.npu.Event.from_ipc_handle(torch.device("npu:0"), event.ipc_handle()).synchronize()
