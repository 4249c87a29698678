"""NPU graphs: what is captured runs when it is replayed, on the same memory."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def test_a_graph_runs_when_it_is_replayed():
    data, counter = torch.ones(3).npu(), torch.zeros(1).npu()
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        result = (data * 2).sum()
        counter += 1
    assert counter.item() == 0
    for value, times in ((5.0, 1), (7.0, 2)):
        data.fill_(value)
        graph.replay()
        assert (result.item(), counter.item()) == (6 * value, times)


def test_two_graphs_share_their_memory():
    first, second = torch.npu.NPUGraph(), torch.npu.NPUGraph()
    data = torch.ones(2).npu()
    with torch.npu.graph(first):
        doubled = data * 2
    with torch.npu.graph(second, pool=first.pool()):
        result = doubled + 1
    data.fill_(3)
    first.replay()
    second.replay()
    assert result.tolist() == [7, 7]


def test_graphed_callables_train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).npu()
    data = torch.randn(3, 4).npu()
    expected = model(data)
    expected.sum().backward()
    gradients = [weight.grad.clone() for weight in model.parameters()]
    model.zero_grad()
    graphed = torch.npu.make_graphed_callables(model, (torch.randn(3, 4).npu(),))
    result = graphed(data)
    torch.testing.assert_close(result, expected)
    result.sum().backward()
    for weight, gradient in zip(model.parameters(), gradients):
        torch.testing.assert_close(weight.grad, gradient)


def test_random_numbers_differ_at_each_replay():
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        drawn = torch.rand(64, device="npu")
    graph.replay()
    before = drawn.clone()
    graph.replay()
    assert not torch.equal(before, drawn)


def test_the_tasks_of_a_group_are_replaced():
    data, out, last = torch.arange(3.0).npu(), torch.zeros(3).npu(), torch.zeros(3).npu()
    graph, stream = torch.npu.NPUGraph(), torch.npu.Stream()
    with torch.npu.graph(graph, stream=stream):
        torch.npu.graph_task_group_begin(stream)
        torch.add(data, 1, out=out)
        group = torch.npu.graph_task_group_end(stream)
        torch.mul(out, 2, out=last)
    graph.replay()
    assert last.tolist() == [2, 4, 6]
    torch.npu.graph_task_update_begin(stream, group)
    torch.add(data, 5, out=out)
    torch.npu.graph_task_update_end(stream)
    assert out.tolist() == [1, 2, 3]  # recorded, not done
    graph.replay()
    assert last.tolist() == [10, 12, 14]


def test_a_graph_that_goes_takes_an_update_that_failed_with_it():
    graph, stream, out = torch.npu.NPUGraph(), torch.npu.Stream(), torch.zeros(3).npu()
    with torch.npu.graph(graph, stream=stream):
        torch.npu.graph_task_group_begin(stream)
        out += 1
        group = torch.npu.graph_task_group_end(stream)
    torch.npu.graph_task_update_begin(stream, group)
    del graph
    out += 2
    assert out.tolist() == [2, 2, 2]


def _attend(query, value):
    return torch.ops.npu.npu_fusion_attention_v3(query, query, value, 2, "BNSD", keep_prob=0.5)


def test_a_graph_drops_anew_at_each_replay_and_its_gradient_the_same():
    query = torch.randn(1, 2, 16, 8).npu()
    ones = torch.ones_like(query)
    graph = torch.npu.NPUGraph()
    with torch.npu.graph(graph):
        out, largest, total, softmax, seed, offset = _attend(query, ones)
        found = torch.ops.npu.npu_fusion_attention_grad_v3(
            query, query, ones, ones, 2, "BNSD", softmax_max=largest, softmax_sum=total,
            softmax_in=softmax, attention_in=out, keep_prob=0.5, seed=seed, offset=offset,
        )  # fmt: skip
    assert (seed.shape, seed.device.type, offset.dtype) == ((1,), "npu", torch.int64)
    results = []
    for _ in range(2):
        graph.replay()
        # Of values that are one, both come to the weights that are kept.
        torch.testing.assert_close(found[2].sum((2, 3)), out.sum((2, 3)))
        results.append(out.clone())
    assert not torch.equal(*results)
    assert 0.7 < results[0].mean().item() < 1.3


def test_numbers_of_attention_are_on_the_host_without_a_graph_and_older_forms_are_not_recorded():
    query = torch.randn(1, 2, 4, 8).npu()
    *_, seed, offset = _attend(query, query)
    assert (seed.shape, seed.device.type, offset.device.type) == ((1,), "cpu", "cpu")
    graph = torch.npu.NPUGraph()
    with (
        pytest.raises(RuntimeError, match="philox_engine_inputs during NPU graph capture"),
        torch.npu.graph(graph),
    ):
        torch.ops.npu.npu_fusion_attention(query, query, query, 2, "BNSD", keep_prob=0.5)
