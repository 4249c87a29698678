"""Patterns of fused forms, in the spellings of real code, and what only looks like them."""

from __future__ import annotations

import pytest

from migrator.matchers.packs import RuleError, choose, load_all
from migrator.project.project import Project
from tests.checking import every_rule, inspect_text, migrate_text
from tests.matchers.migrating import engine, migrated

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def replaced(text: str, code: str) -> str:
    return migrated(HEAD + text, select=(code,)).replace("import torch_npu\n", "").replace(HEAD, "")


def function(body: str) -> str:
    return f"def f(self, x, y, gate_up):\n    {body}\n"


@pytest.mark.parametrize(
    "body",
    [
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)",
        "return torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps) * x",
        "return x * torch.rsqrt(torch.mean(x ** 2, -1, keepdim=True) + self.eps)",
        "return x * torch.rsqrt(self.eps + (x * x).mean(-1, keepdim=True))",
        "return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()",
        "return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)",
        "return x.mul(torch.rsqrt(x.pow(2).mean(axis=-1, keepdims=True).add(self.eps)))",
        "variance = x.pow(2).mean(-1, keepdim=True)\n    return x * torch.rsqrt(variance + self.eps)",
    ],
)
def test_rms_norm(body: str) -> None:
    new = "return torch_npu.npu_rms_norm(x, x.new_ones(x.shape[-1]), self.eps)[0]"
    assert replaced(function(body), "NPU801") == function(new)


@pytest.mark.parametrize(
    "body",
    [
        # float32 in between; the assignment is used again; is not right in front; has a comment
        "return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)",
        "v = x.pow(2).mean(-1, keepdim=True)\n    return x * torch.rsqrt(v + self.eps), v",
        "v = x.pow(2).mean(-1, keepdim=True)\n    x = x + 1\n    return x * torch.rsqrt(v + self.eps)",
        "v = x.pow(2).mean(-1, keepdim=True)\n    # why\n    return x * torch.rsqrt(v + self.eps)",
        "eps = torch.tensor(1e-6)\n    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)",
    ],
)
def test_rms_norm_that_is_only_reported(body: str) -> None:
    text = HEAD + function(body)
    result = migrate_text(engine("2.6", select=("NPU801",)), "e.py", text, Project())
    assert result.text is None
    assert [finding.code for finding in result.findings] == ["NPU801"]


@pytest.mark.parametrize(
    "body",
    [
        "gate, up = gate_up.chunk(2, dim=-1)\n    return F.silu(gate) * up",
        "gate, up = torch.chunk(gate_up, 2, dim=-1)\n    return up * F.silu(gate)",
        "halves = torch.chunk(gate_up, 2, dim=-1)\n    return F.silu(halves[0]) * halves[1]",
        "gate_up = torch.chunk(gate_up, 2, dim=-1)\n    return F.silu(gate_up[0]) * gate_up[1]",
    ],
)
def test_swiglu(body: str) -> None:
    assert replaced(function(body), "NPU802") == function("return torch_npu.npu_swiglu(gate_up, dim=-1)")


def test_the_assignment_stays_where_a_loop_reads_it_again() -> None:
    text = (
        "def f(x):\n    for _ in range(2):\n        print(x[0])\n"
        "        x = torch.chunk(x, 2, dim=-1)\n        yield F.silu(x[0]) * x[1]\n"
    )
    assert replaced(text, "NPU802") == text


ATTENTION = [
    "return torch.softmax(x @ y.transpose(-2, -1), dim=-1) @ x",
    "return F.softmax(torch.matmul(x, y.transpose(2, 3)) / math.sqrt(8), dim=-1)",
    "s = torch.bmm(x, y.transpose(1, 2))\n    s = s * 2\n    return s.softmax(-1)",
    "s = x @ y.transpose(-2, -1)\n    if self.mask:\n        s = s + self.mask\n    return s.softmax(dim=-1)",
    "s = (x @ y.mT).masked_fill(self.mask == 0, -1e9)\n    return nn.functional.softmax(s, dim=-1)",
    "return F.softmax(x @ y.transpose(-1, -2), dim=-1, dtype=torch.float32).to(x.dtype)",
]


@pytest.mark.parametrize("body", ATTENTION)
def test_attention(body: str) -> None:
    result = inspect_text(engine("2.6", select=("NPU810",)), "e.py", HEAD + function(body), Project())
    assert [finding.instead for finding in result.findings] == ["torch_npu.npu_fusion_attention"]


@pytest.mark.parametrize(
    "call",
    [
        "torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)",
        "torch.optim.AdamW(model.parameters(), lr=1e-3, maximize=True)",
        "torch.optim.AdamW(groups, lr=1e-3)",
        "torch.optim.AdamW(model.parameters(), 1e-3, (0.9, 0.99))",
        "torch.optim.AdamW(*arguments)",
    ],
)
def test_optimizers_that_are_only_reported(call: str) -> None:
    assert replaced(f"optimizer = {call}\n", "NPU820") == f"optimizer = {call}\n"


def test_an_optimizer_whose_gradients_become_none() -> None:
    text = "optimizer = torch.optim.SGD(model.parameters(), lr=1)\noptimizer.zero_grad(set_to_none=True)\n"
    assert replaced(text, "NPU821") == text


def test_a_definition_is_likely_where_only_its_name_fits() -> None:
    text = "class RMSNorm(nn.Module):\n    def forward(self, x):\n        return F.rms_norm(x, (8,))\n"
    (finding,) = inspect_text(engine("2.6", select=("NPU801",)), "e.py", HEAD + text, Project()).findings
    assert (finding.form, finding.api) == ("class", "RMSNorm")
    assert finding.certainty.startswith("likely")


RMS = "return {} * torch.rsqrt({} + self.eps)"
LOOK_ALIKES = [
    # another dimension, no keepdim, another tensor, the variance around the mean, another power
    ("NPU801", RMS.format("x", "x.pow(2).mean(1, keepdim=True)")),
    ("NPU801", RMS.format("x", "x.pow(2).mean(-1)")),
    ("NPU801", RMS.format("y", "x.pow(2).mean(-1, keepdim=True)")),
    ("NPU801", RMS.format("x", "(x - y).pow(2).mean(-1, keepdim=True)")),
    ("NPU801", RMS.format("x", "x.pow(3).mean(-1, keepdim=True)")),
    ("NPU802", "gate, up = gate_up.chunk(2, dim=-1)\n    return F.silu(up) * gate"),
    ("NPU810", "return F.softmax(x @ y, dim=-1)"),
    ("NPU810", "return F.softmax(x @ y.transpose(-2, -1), dim=0)"),
    ("NPU810", "return F.softmax(x, dim=-1)"),
    ("NPU752", "return x.numpy()[x.numpy() > 0]"),
    ("NPU752", "names = ['a']\n    return names[len(names) > 1]"),
    ("NPU752", "return x[y is None]"),
    ("NPU752", "x[x > 0] = 0"),
    ("NPU752", "return x[torch.arange(2)]"),
]


@pytest.mark.parametrize(("code", "body"), LOOK_ALIKES)
def test_what_only_looks_like_it(code: str, body: str) -> None:
    result = inspect_text(engine("2.6", select=(code,)), "e.py", HEAD + function(body), Project())
    assert result.findings == ()


def test_rules_that_are_off_unless_asked_for() -> None:
    rules = every_rule()
    codes = {rule.code for rule in choose(rules, ("ALL",), ())}
    assert not any(rule.opt_in for rule in rules if rule.code in codes)
    assert {"NPU101", "NPU801"} <= {rule.code for rule in choose(rules, ("ALL", "NPU801"), ())}
    assert "NPU820" not in {rule.code for rule in choose(rules, ("ALL", "NPU801"), ())}
    assert choose(rules, ("ALL", "NPU8"), ("NPU8",)) == choose(rules, ("ALL",), ())


def test_packs_of_other_rules_are_not_read() -> None:
    assert not any(rule.opt_in for rule in load_all(named=("ALL", "NPU2")))
    assert {rule.code[:4] for rule in load_all(named=("NPU8",)) if rule.opt_in} == {"NPU8"}
    assert all(rule.opt_in for rule in every_rule() if "opt_in" in rule.origin)
    with pytest.raises(RuleError, match="unknown rule 'NPU899'"):
        choose(load_all(named=("NPU899",)), ("NPU899",), ())


def test_nothing_of_this_in_a_migration() -> None:
    text = HEAD + function("return x * torch.sigmoid(x)")
    assert migrate_text(engine("2.6"), "e.py", text, Project()).findings == ()
