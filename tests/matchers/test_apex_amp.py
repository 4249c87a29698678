"""apex.amp: which uses of it are written with torch's autocast and GradScaler, and which stay whole."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

HEAD = "import torch\nfrom apex import amp\n\n\n"
START = "    net, opt = amp.initialize(net, opt, opt_level='O1', verbosity=0)\n"
LOOP = """\
    for x in batches:
        loss = net(x).mean()
        with amp.scale_loss(loss, opt) as loss:
            loss.backward()
        opt.step()
"""


def train(start: str = START, loop: str = LOOP, head: str = HEAD) -> str:
    return f"{head}def train(net, opt, batches, level):\n{start}{loop}"


def test_the_whole_of_a_file() -> None:
    assert migrated(train()) == (
        "import torch\nimport torch_npu\nfrom torch_npu.npu import amp\n\n\n"
        "amp_scaler = torch.npu.amp.GradScaler(enabled=False)\n\n\n"
        "def train(net, opt, batches, level):\n"
        "    global amp_scaler\n"
        "    amp_scaler = amp.GradScaler()\n"
        '    torch.set_autocast_enabled("npu", True)\n'
        "    torch.set_autocast_cache_enabled(False)\n"
        "    for x in batches:\n"
        "        loss = net(x).mean()\n"
        '        with torch.autocast("npu", enabled=False):\n'
        "            amp_scaler.scale(loss).backward()\n"
        "        amp_scaler.step(opt)\n"
        "        amp_scaler.update()\n"
    )


@pytest.mark.parametrize(
    ("start", "lines"),
    [
        ("    [net], [opt] = amp.initialize([net], [opt])\n", ["amp_scaler = amp.GradScaler()"]),
        (
            "    self.net, self.opt = amp.initialize(net, opt, 'O2')\n",
            [],
        ),
        (
            "    self.net, self.opt = amp.initialize(net, opt, enabled=level > 1, opt_level=f'O{level}')\n",
            [
                "amp_scaler = amp.GradScaler(enabled=(level > 1) and (f'O{level}' != \"O0\"))",
                'torch.set_autocast_enabled("npu", amp_scaler.is_enabled())',
                "self.net, self.opt = net, opt",
            ],
        ),
    ],
)
def test_how_it_starts(start: str, lines: list[str]) -> None:
    after = migrated(train(start))
    assert all(f"    {line}\n" in after for line in lines)
    assert ("apex" in after) == (not lines)


CLIP = "torch.nn.utils.clip_grad_norm_(amp.master_params(opt), 1.0)\n"
SCALED = "        with amp.scale_loss(loss, opt) as loss:\n            loss.backward()\n"


def test_gradients_are_unscaled_before_they_are_clipped() -> None:
    after = migrated(train(loop=LOOP.replace("        opt.step", f"        {CLIP}        opt.step")))
    assert after.index("amp_scaler.unscale_(opt)\n") < after.index("clip_grad_norm_([p for group in opt")
    assert after.count("unscale_") == 1


@pytest.mark.parametrize(
    ("loop", "lines"),
    [
        (  # clipped more often than stepped: the gradients are scaled there, and so is the norm
            LOOP.replace("        opt.step()", f"        {CLIP}        if x > 1:\n            opt.step()"),
            ['group["params"]], 1.0 * amp_scaler.get_scale())'],
        ),
        (
            LOOP.replace(
                "        opt.step()", f"        if x > 1:\n            {CLIP}            opt.step()"
            ),
            ["        if x > 1:\n            amp_scaler.unscale_(opt)\n", 'group["params"]], 1.0)'],
        ),
        (  # several batches for a step
            "    for y in batches:\n"
            + "".join(f"    {line}\n" for line in LOOP.splitlines()[:-1])
            + f"        {CLIP}        opt.step()\n",
            ["\n        amp_scaler.unscale_(opt)\n        torch.nn.utils"],
        ),
    ],
)
def test_gradients_of_an_accumulation(loop: str, lines: list[str]) -> None:
    after = migrated(train(loop=loop))
    assert all(line in after for line in lines)
    assert after.count("unscale_") + after.count("get_scale") == 1


BIG = "as big:\n            big.backward()\n        print(big)"


@pytest.mark.parametrize(
    "loop",
    [
        LOOP + "        other.backward()\n",  # a loss without a scale
        LOOP.replace("loss, opt", "loss, opt, loss_id=1"),
        LOOP.replace("        opt.step()", f"        x = {CLIP}        if x > 1:\n            opt.step()"),
        LOOP.replace("opt.step()", "done(opt)"),
        LOOP.replace("opt.step()", "print(loss, amp)\n        opt.step()"),
        LOOP.replace("opt.step()", "opt.step()\n        torch.autocast('cuda')"),
        LOOP.replace("opt.step()", f"{CLIP}        opt.step()").replace(SCALED, SCALED + SCALED),
        LOOP + LOOP.replace("opt", "other"),
        LOOP.replace("as loss:\n            loss.backward()", BIG),
    ],
)
def test_what_stays_is_reported_whole(loop: str) -> None:
    result = migrate(train(loop=loop))
    assert result.text is None or "from apex import amp" in result.text
    assert [each.line for each in result.findings if each.code == "NPU646"][:1] == [2]
    assert "It stays here as" in [each for each in result.findings if each.code == "NPU646"][-1].advice


def test_a_loss_of_the_other_branch_is_none_without_a_scale() -> None:
    loop = """\
    for x in batches:
        loss = net(x).mean()
        if level:
            with amp.scale_loss(loss, opt) as scaled:
                scaled.backward()
        else:
            loss.backward()
        opt.step()
"""
    assert "amp_scaler.step(opt)" in migrated(train(loop=loop))


def test_a_part_of_a_use_is_left_to_its_other_file() -> None:
    for text in (train(start=""), f"{HEAD}def f(net, opt):\n{START}    return net, opt\n"):
        assert migrate(text).text is None


def test_other_names_of_an_import_move_first() -> None:
    head = "import torch\nfrom apex import amp, parallel\n\n\n"
    after = migrated(train("    net = parallel.convert_syncbn_model(net)\n" + START, head=head))
    assert "apex" not in after.replace("amp_", "")
    assert "from torch_npu.npu import amp\n" in after


@pytest.mark.parametrize(
    ("imported", "handed_on"),
    [
        ("from other0 import amp", "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n"),
        ("from other0 import mixed as amp", "from apex import optimizers, amp as mixed\n"),
        ("from other0 import *", "from apex import amp\n"),
        ("import other0", "from apex import amp\n"),
    ],
)
def test_a_use_through_another_file_is_reported(imported: str, handed_on: str) -> None:
    text = train(head=f"import torch\n{imported}\n\n\n")
    if imported == "import other0":
        text = text.replace("amp.", "other0.amp.")
    result = migrate(text, others=(handed_on,))
    found = [each for each in result.findings if each.code == "NPU646"]
    assert ([each.line for each in found], result.text) == ([6, 9], None)
    assert "another file of the project imports it" in found[0].advice


def test_another_amp_of_another_file_is_none_of_apex() -> None:
    text = train(head="import torch\nfrom other0 import amp\n\n\n")
    for handed_on in ("from mine import amp\n", "from torch.cuda import amp\n"):
        assert "NPU646" not in {each.code for each in migrate(text, others=(handed_on,)).findings}
