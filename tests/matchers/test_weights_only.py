"""torch.load of what the project saves, or of whole modules, since torch 2.6."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

SAVES = """\
import torch
def save(model, args, p):
    torch.save({"model": model.state_dict(), "args": args}, p)
"""
LISTED = "import torch\ndef save(model, optimizer, p):\n    torch.save([model, optimizer], p)\n"
WHOLE = "import torch\ndef save(model, p):\n    torch.save(model, p)\n"


def load(body: str) -> str:
    return f"import torch\ndef load(p, net):\n    {body}\n"


def test_before_torch_2_6_everything_is_read() -> None:
    text = load("c = torch.load(p, 'cpu')\n    return c['model']")
    assert migrated(text, "2.5", (SAVES,)) == text


MEASURES = """\
import numpy as np
import torch
def save(net, best_{name}, p):
    {made}
    torch.save({{"model": net.state_dict(), "best": best_{name}}}, p)
"""


@pytest.mark.parametrize(
    ("name", "made", "changes"),
    [
        ("miou", "best_miou = evaluate(net)", True),
        ("rank1", "pass", True),
        ("acc1", "best_acc1 = evaluate(net)", False),
        ("dice", "best_dice = evaluate(net).item()", False),
        ("dice", "best_dice = 0.0", False),
        ("epoch", "pass", False),
    ],
)
def test_measures_may_be_numpy_values(name: str, made: str, changes: bool) -> None:
    text = load("c = torch.load(p, 'cpu')\n    net.load_state_dict(c['model'])")
    other = MEASURES.format(name=name, made=made)
    assert (migrate(text, others=(other,)).text is not None) == changes
    assert migrate(text, others=(other.replace("numpy", "math"),)).text is None


@pytest.mark.parametrize(
    ("body", "other", "on_cpu"),
    [
        ("model = torch.load(p)\n    return model(net)", WHOLE, False),
        ("model, optimizer = torch.load(p)\n    return model(net)", LISTED, False),
        ("model = torch.load(p)\n    return model.to(net)", WHOLE, True),
        ("model = torch.load(p)\n    net.load_state_dict(model)", WHOLE, True),
        ("model = torch.load(p)\n    return model(net)", SAVES, True),
        ("checkpoint = torch.load(p)\n    return checkpoint", WHOLE, True),
    ],
)
def test_a_module_that_nothing_moves_stays_where_it_was_saved(body: str, other: str, on_cpu: bool) -> None:
    result = migrate(load(body), "2.5", (other,))
    assert [each.code for each in result.findings if each.code == "NPU171"] == ["NPU171"]
    assert ('map_location="cpu"' in (result.text or "")) == on_cpu
