"""nn.DataParallel: DistributedDataParallel stands in its place, with its attributes and keys."""

from __future__ import annotations

import pytest

from migrator.convert.distributed.convert import convert
from tests.convert.distributed.test_convert import BASE, converted, new_lines

ALWAYS = "model = nn.DataParallel(model)\n"
PERHAPS = "if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)\n"
SAVE = "torch.save(model.state_dict(), 'a.pt')\n"
WRAP = "model = DistributedDataParallel(model, device_ids="


def text(parallel: str, more: str = "") -> str:
    return BASE.replace("optimizer =", f"{parallel}{more}optimizer =", 1) + SAVE


def test_keys_keep_their_prefix() -> None:
    result = converted(text(ALWAYS))
    assert "    torch.save(model.state_dict(), 'a.pt')" in new_lines(result)


@pytest.mark.parametrize(
    ("evaluate", "prefix"),
    [
        ("net.load_state_dict(torch.load('a.pt'))\n", False),
        ("net = nn.DataParallel(net)\nnet.load_state_dict(torch.load('a.pt'))\n", True),
        ("net.load_state_dict({k.replace('module.', ''): v for k, v in torch.load('a.pt').items()})\n", True),
        ("net.load_state_dict({k[7:]: v for k, v in torch.load('a.pt').items()})\n", True),
        ("net = nn.DataParallel(net)\n", False),
        ("for module in parts:\n    module.load_state_dict(torch.load('a.pt'))\n", False),
    ],
)
def test_where_a_condition_chooses_other_scripts_say_it(evaluate: str, prefix: bool) -> None:
    files = {"train.py": text(PERHAPS), "evaluate.py": evaluate}
    result = convert("train.py", files.get, others=files)
    saved = "model.state_dict()" if prefix else "model.module.state_dict()"
    assert f"    torch.save({saved}, 'a.pt')" in new_lines(result)
    assert "device_count" not in result.files["train.py"].text


def test_the_model_is_not_wrapped_yet_where_it_is_prepared() -> None:
    freeze = "model.module.freeze_bn()\nmodel.module.load_state_dict(torch.load('b.pt'))\n"
    lines = converted(text(ALWAYS, freeze)).files["train.py"].text.splitlines()
    at = lines.index("model.freeze_bn()")
    assert lines[at + 1] == "model.load_state_dict(torch.load('b.pt'))"
    assert any(one.startswith(WRAP) for one in lines[at:])


def test_keys_with_a_prefix_are_loaded_by_the_wrapped_model() -> None:
    load = "model.load_state_dict(torch.load('b.pt'))\n"
    lines = converted(text(ALWAYS, "print(model)\n" + load)).files["train.py"].text.splitlines()
    at = lines.index(load.strip())
    assert any(one.startswith(WRAP) for one in lines[:at])
    both = converted(text(ALWAYS, load + "model.module.freeze_bn()\n"))
    assert both.reason == "a checkpoint of the nn.DataParallel model is loaded before model can be wrapped"


def test_training_that_goes_past_the_wrapper() -> None:
    loop = text(ALWAYS).replace("model(x.cuda())", "model.module.encode(x.cuda())")
    assert "training calls model.encode()" in converted(loop).reason


def test_methods_that_compute_nothing() -> None:
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 3\n"
    net += "        self.head = nn.Linear(2, 2)\n\n    def start(self):\n"
    net += "        return torch.zeros(self.n)\n\n    def top(self, x):\n        return self.head(x)\n\n\n"
    text = BASE.replace("data =", net + "data =", 1).replace("nn.Linear(2, 2)\nmodel", "Net()\nmodel")
    lines = new_lines(converted(text.replace("model(x.cuda())", "model(x.cuda() + model.start())")))
    assert "        loss = model(x.cuda() + model.module.start()).sum()" in lines
    past = converted(text.replace("model(x.cuda())", "model(x.cuda() + model.top(x))"))
    assert "training calls model.top()" in past.reason


def test_other_programs_keep_it() -> None:
    build = "from torch import nn\n\n\ndef build():\n    return nn.DataParallel(nn.Linear(2, 2)).cuda()\n\n\n"
    build += "def inner(net):\n    return net.module if isinstance(net, nn.DataParallel) else net\n"
    script = "from build import build, inner\n" + BASE.replace("nn.Linear(2, 2)", "build()")
    script = script.replace("optimizer =", "model.module.freeze_bn()\noptimizer =", 1) + SAVE
    result = converted({"train.py": script, "build.py": build})
    kept = "(nn.Linear(2, 2) if dist.is_initialized() else nn.DataParallel(nn.Linear(2, 2)))"
    lines = new_lines(result, "build.py")
    assert f"    return {kept}.cuda()" in lines
    asked = "isinstance(net, (nn.DataParallel, DistributedDataParallel))"
    assert f"    return net.module if {asked} else net" in lines
    assert "model.freeze_bn()" in new_lines(result)
    assert "    torch.save(model.state_dict(), 'a.pt')" in new_lines(result)
