"""torch.compile: the real Dynamo, with graphs that run eagerly."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch


def test_compile_runs_eagerly_with_one_notice(tmp_path):
    """In a process of its own: the notice comes once in each."""
    program = """
import torch
from torch import nn

@torch.compile
def one(data):
    return data + 1

@torch.compile(fullgraph=True, dynamic=True)
def two(data):
    return data * 2

three = torch.compile(nn.Linear(2, 2).npu(), mode="max-autotune")
four = nn.Linear(2, 2).npu()
four.compile()
data = torch.ones(1, 2).npu().requires_grad_()
four(three(two(one(data)))).sum().backward()
assert data.grad is not None
assert list(three.state_dict()) == ["_orig_mod.weight", "_orig_mod.bias"]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    notices = [line for line in done.stderr.splitlines() if "npumigrate" in line]
    assert notices == ["npumigrate emulate: graphs of torch.compile run eagerly here"]


def test_a_backend_of_ones_own_gets_the_graph():
    graphs = []

    def backend(graph, inputs):
        graphs.append([node.op for node in graph.graph.nodes])
        return graph.forward

    data = torch.ones(2).npu()
    assert torch.compile(lambda values: values.sin() + 1, backend=backend)(data).device.type == "npu"
    assert graphs == [["placeholder", "call_method", "call_function", "output"]]


@pytest.mark.parametrize("backend", ["inductor", "npu", "npugraphs", "npugraph_ex"])
def test_a_graph_break_is_an_error_of_a_full_graph(backend):
    def speaks(values):
        print("between")
        return values + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(speaks, fullgraph=True, backend=backend)(torch.ones(2).npu())
    assert torch.compile(lambda values: values + 1, fullgraph=True, backend=backend)(torch.ones(1).npu()) == 2


def test_modes_options_and_names_of_backends_are_checked():
    for wrong in ({"mode": "fastest"}, {"options": {"no_such_option": 1}}):
        with pytest.raises(RuntimeError, match=r"fastest|no_such_option"):
            torch.compile(lambda values: values, **wrong)
    with pytest.raises(torch._dynamo.exc.InvalidBackend):
        torch.compile(lambda values: values, backend="no_such_backend")(torch.ones(1).npu())
