"""torch.load of what the project saves, or of whole modules, since torch 2.6."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

SAVES = """\
import torch
def save(model, args, p):
    torch.save({"model": model.state_dict(), "args": args}, p)
"""
OBJECTS = "import torch\ndef save(net, p):\n    torch.save({'net': 1, 'loss_objects': net.losses}, p)\n"
LISTED = "import torch\ndef save(model, optimizer, p):\n    torch.save([model, optimizer], p)\n"
WHOLE = "import torch\ndef save(model, p):\n    torch.save(model, p)\n"


def load(body: str) -> str:
    return f"import torch\ndef load(p, net):\n    {body}\n"


SETTINGS = """\
import torch
def save(config, model, p):
    torch.save({"model": model.state_dict(), "config": config}, p)
"""
LOADED = """\
import json
import torch
config = json.load(open("a.json"))
def save(model, p):
    torch.save({"model": model.state_dict(), "config": config}, p)
"""


@pytest.mark.parametrize(("other", "changes"), [(SETTINGS, True), (LOADED, False)])
def test_settings_may_be_objects(other: str, changes: bool) -> None:
    text = load("c = torch.load(p, 'cpu')\n    net.load_state_dict(c['model'])")
    after = text.replace("p, 'cpu')", "p, 'cpu', weights_only=False)")
    assert migrated(text, others=(other,)) == (after if changes else text)


@pytest.mark.parametrize(
    ("body", "other"),
    [
        ("c = torch.load(p, 'cpu')\n    net.load_state_dict(c['model'])", SAVES),
        ("c = torch.load(p, 'cpu')\n    return c.get('args')", SAVES),
        ("return torch.load(p, 'cpu')['args']", SAVES),
        ("self.c = torch.load(p, 'cpu')\n    return self.c['model']", SAVES),
        ("model = torch.load(p, 'cpu')\n    return model", WHOLE),
        ("c = torch.load(p, 'cpu')\n    return c['net']", OBJECTS),
        ("self.model = torch.load(p, 'cpu')", WHOLE),
        ("model = torch.load(p, 'cpu')\n    return model.eval()", ""),
        ("return torch.load(p, 'cpu')['ema'].float()", ""),
        ("return torch.load(p, 'cpu')['args'].width", ""),
        ("c = torch.load(p, 'cpu')\n    return vars(c['opt'])", ""),
        ("c = torch.load(p, 'cpu')\n    a = c.get('cfg')\n    return getattr(a, 'width', 1)", ""),
        ("c = torch.load(p, 'cpu')\n    self.opt = c['opt']\n    return self.opt.width", ""),
        ("c = torch.load(p, 'cpu')\n    a = c['args']\n    for k in p:\n        setattr(a, k, p[k])", ""),
        ("model, optimizer = torch.load(p, 'cpu')", LISTED),
        ("g = torch.load(p, 'cpu')\n    return g.edge_index", ""),
        ("v = torch.load(p, 'cpu')\n    return v.stoi['a']", ""),
    ],
)
def test_a_file_that_holds_more_is_read_as_before(body: str, other: str) -> None:
    text = load(body)
    others = (other,) if other else ()
    result = migrate(text, "2.6", others)
    assert [each.code for each in result.findings if each.code == "NPU535"] == ["NPU535"]
    assert result.text == text.replace("p, 'cpu')", "p, 'cpu', weights_only=False)")


@pytest.mark.parametrize(
    ("body", "other"),
    [
        ("c = torch.load(p, 'cpu')\n    net.load_state_dict(c['state'])", SAVES),
        ("net.load_state_dict(torch.load(p, 'cpu'))", SAVES),
        ("model = torch.load(p, 'cpu')\n    net.load_state_dict(model)", WHOLE),
        ("x, y = torch.load(p, 'cpu')", LISTED),
        ("model, optimizer = torch.load(p, 'cpu')", SAVES),
        ("c = torch.load(p, 'cpu', weights_only=True)\n    return c['model']", SAVES),
        ("c = torch.load(p, 'cpu', pickle_module=q)\n    return c['model']", SAVES),
        ("c = torch.load(p, **q)\n    return c['model']", SAVES),
        ("c = torch.load(p, 'cpu')\n    if hasattr(c, 'state_dict'):\n        c = c.state_dict()", ""),
        ("c = torch.load(p, 'cpu')\n    return c['args'].get('width')", ""),
        ("c = torch.load(p, 'cpu')\n    a = c['config']\n    a.update(p)\n    return a['width']", ""),
        ("c = torch.load(p, 'cpu')\n    self.opt = c['opt']\n    return self.opt.keys()", ""),
        ("c = torch.load(p, 'cpu')\n    return c['state'].width", ""),
        ("g = torch.load(p, 'cpu')\n    return g.shape, g.values()", ""),
        (
            "try:\n        c = torch.load(p, 'cpu', weights_only=True)\n"
            "    except TypeError:\n        c = torch.load(p, 'cpu')\n    return c['model']",
            SAVES,
        ),
    ],
)
def test_what_is_left_alone(body: str, other: str) -> None:
    result = migrate(load(body), "2.6", (other,) if other else ())
    assert [each.code for each in result.findings if each.code == "NPU535"] == []


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


def test_a_function_that_only_reads_a_file() -> None:
    text = load("c = torch.load(p, 'cpu')\n    return c") + "def resume(p):\n    return load(p, 1)['model']\n"
    assert migrated(text, others=(SAVES,)) == text.replace("'cpu')", "'cpu', weights_only=False)")
    for other in ("['state']", ""):
        assert migrate(text.replace("['model']", other), others=(SAVES,)).text is None


GRAPHS = """\
import torch
from torch_geometric.data import InMemoryDataset
class Graphs(InMemoryDataset):
    def __init__(self, root):
        super().__init__(root)
        path = self.processed_paths[0]
        self.data, self.slices = torch.load(path, "cpu")
    def get(self, index):
        return torch.load(f"{self.processed_dir}/{index}.pt", "cpu")
"""


def test_a_dataset_of_torch_geometric_keeps_graphs() -> None:
    assert migrated(GRAPHS) == GRAPHS.replace('"cpu")', '"cpu", weights_only=False)')
    assert migrate(GRAPHS.replace("torch_geometric", "pictures")).text is None


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
