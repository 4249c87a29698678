"""What the opt-in rules replace gives the same numbers, forward and backward, for float32."""

from __future__ import annotations

import math

import pytest
import torch
import torch_npu

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.matchers.packs import load_all
from migrator.project.project import merge_facts
from tests.checking import migrate_text

RULES = {rule.code: rule for rule in load_all() if rule.code.startswith("NPU8") and rule.fix != "none"}
# The functions and classes of the rules' examples, and what they are called with.
FUNCTIONS = {
    "NPU801": ("RMSNorm(8).to(x.device)(x)", (2, 4, 8)),
    "NPU802": ("swiglu(x)", (2, 4, 8)),
    "NPU804": ("geglu(x)", (2, 4, 8)),
    "NPU850": ("mish(x)", (4, 8)),
    "NPU851": ("swish(x)", (4, 8)),
    "NPU852": ("gelu(x)", (4, 8)),
    "NPU853": ("gelu(x)", (4, 8)),
    "NPU854": ("quick_gelu(x)", (4, 8)),
}
OPTIMIZERS = (
    "Adam(parameters(), lr=0.1)",
    "Adam(parameters(), lr=0.1, betas=(0.8, 0.9), eps=1e-7, weight_decay=0.1, amsgrad=True)",
    "AdamW(parameters(), lr=0.1)",
    "AdamW(parameters(), lr=0.1, weight_decay=0.2)",
    "SGD(parameters(), lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True)",
    "SGD(parameters(), 0.1)",
    "RMSprop(parameters(), lr=0.1, alpha=0.9, momentum=0.5, centered=True)",
    "Adadelta(parameters(), lr=0.5, rho=0.8, weight_decay=0.1)",
)


def test_every_replacement_is_tried() -> None:
    assert set(FUNCTIONS) | {"NPU820", "NPU821"} == set(RULES)


def outcome(source: str, call: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32):
    """The results and the gradient of ``call``, where ``x`` is a tensor of that shape."""
    names: dict[str, object] = {}
    exec(compile(source, "example.py", "exec"), names)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(shape, generator=generator).to(dtype).npu().requires_grad_()
    angles = torch.randn(shape[0], shape[-2], shape[-1], generator=generator).to(dtype).npu()
    result = eval(call, {**names, "x": x, "cos": angles.cos(), "sin": angles.sin()})
    results = result if isinstance(result, tuple) else (result,)
    weights = torch.arange(results[0].numel(), dtype=dtype).reshape(results[0].shape).npu() / 100
    sum((part * weights).sum() for part in results).backward()
    return [*results, x.grad]


@pytest.mark.parametrize("code", FUNCTIONS)
def test_expression(code: str) -> None:
    example = next(example for example in RULES[code].examples if "before" in example)
    before, after = (outcome(example[key], *FUNCTIONS[code]) for key in ("before", "after"))
    for old, new in zip(before, after):
        assert new.dtype == old.dtype
        assert new.shape == old.shape
        torch.testing.assert_close(new.cpu(), old.cpu(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("call", OPTIMIZERS)
def test_optimizer(call: str) -> None:
    source = f"import torch\noptimizer = torch.optim.{call.replace('parameters', 'model.parameters')}\n"
    engine = Rules(Settings(version="2.13.0", select=("NPU820", "NPU821")))
    replaced = migrate_text(engine, "example.py", source, merge_facts([])).text
    assert replaced is not None
    assert "torch_npu.optim.NpuFused" in replaced
    weights = []
    for text in (source, replaced):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)).npu()
        names = {"model": model}
        exec(text, names)
        for step in range(4):
            names["optimizer"].zero_grad()
            model(torch.full((2, 4), math.sin(step)).npu()).pow(2).sum().backward()
            names["optimizer"].step()
        weights.append([parameter.detach().cpu() for parameter in model.parameters()])
    for old, new in zip(*weights):
        torch.testing.assert_close(new, old, rtol=1e-4, atol=1e-6)


def test_half_types_keep_their_type() -> None:
    example = next(example for example in RULES["NPU801"].examples if "before" in example)
    call, shape = FUNCTIONS["NPU801"]
    before, after = (outcome(example[key], call, shape, torch.bfloat16) for key in ("before", "after"))
    assert after[0].dtype == before[0].dtype
    torch.testing.assert_close(after[0].cpu(), before[0].cpu(), rtol=2e-2, atol=2e-2)


def test_names_exist() -> None:
    for rule in load_all():
        instead = rule.options.instead
        texts = [instead.replace("{name}", api.rpartition(".")[2]) for api in rule.match]
        for text in ",".join(texts).split(","):
            name = text.strip()
            if name.startswith("torch_npu.") and "…" not in name:
                value: object = torch_npu
                for part in name.split(".")[1:]:
                    value = getattr(value, part)
