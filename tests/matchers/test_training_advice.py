"""Advice on training loops: what runs in every step, and what only now and then."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from migrator.project.project import Project
from tests.checking import inspect_text
from tests.matchers.migrating import engine

LOOP = """\
import time
import torch
import numpy as np
from tqdm import tqdm

def train(model, loader, optimizer, device, log_every, writer):
    for step, batch in enumerate(loader):
        optimizer.zero_grad()
        loss, logits = model(batch)
        loss.backward()
        optimizer.step()
{body}
"""


def lines(text: str, *codes: str) -> list[tuple[str, int]]:
    """Code and line of what these rules find."""
    result = inspect_text(engine("2.6", select=codes), "example.py", text, Project())
    assert result.skipped == ""
    return [(finding.code, finding.line) for finding in result.findings]


def in_loop(body: str) -> str:
    return LOOP.format(body=indent(dedent(body).strip("\n"), " " * 8))


@pytest.mark.parametrize(
    "body",
    [
        "print(loss)",
        "print('loss {}'.format(loss))",
        "history.append(float(loss))",
        "writer.add_scalar('acc', (logits.argmax(1) == 0).float().mean().cpu(), step)",
        "preds = logits.detach().cpu().numpy()",
        "if loss > 10:\n    raise ValueError",
        "for value in logits:\n    total = value.item()",
    ],
)
def test_waits_in_every_step(body: str) -> None:
    assert [code for code, _ in lines(in_loop(body), "NPU704")] == ["NPU704"]


@pytest.mark.parametrize(
    "body",
    [
        "if rank == 0:\n    print(loss.item())",
        "if args.debug:\n    print(loss)",
        "if not torch.isfinite(logits).all():\n    raise ValueError(loss.item())",
        "losses.append(loss.detach())",
        "print(step)",
        "print(f'step {step}')",
        "distance = np.abs(np.ones(2)).sum().item()",
        "done = time.time()",
        "if loss is None:\n    continue",
        "def later():\n    return loss.item()",
        "try:\n    pass\nexcept ValueError:\n    print(loss.item())",
    ],
)
def test_does_not_wait_in_every_step(body: str) -> None:
    assert lines(in_loop(body), "NPU704") == []


@pytest.mark.parametrize(
    "text",
    [
        "def test_grads(model):\n    loss = model()\n    loss.backward()\n    assert loss.item() == 1\n",
        "for value in [torch.ones(1)]:\n    print(value.item())\n",
        "def step(scheduler):\n    for batch in []:\n        scheduler.step()\n        print(batch.item())\n",
    ],
)
def test_is_no_training(text: str) -> None:
    assert lines("import torch\n" + text, "NPU704") == []


def test_after_the_loop_nothing_is_said() -> None:
    text = in_loop("pass") + "    print(loss.item())\n"
    assert lines(text, "NPU704") == []


def test_one_finding_for_the_statements_of_a_block() -> None:
    body = "a = loss.item()\nb = logits.mean().item()\nprint(loss)\n"
    result = inspect_text(engine("2.6", select=("NPU704",)), "example.py", in_loop(body), Project())
    (finding,) = result.findings
    assert "(lines 12, 13, 14)" in finding.message
    assert finding.severity == "info"


def test_only_what_the_loader_gave_is_a_blocking_copy() -> None:
    body = """
    x = batch["x"].to(device)
    y = other.to(device)
    z = batch["z"].to(device, non_blocking=True)
    """
    assert lines(in_loop(body), "NPU706") == [("NPU706", 12)]


LOADERS = """\
from torch.utils.data import DataLoader
{call}
"""


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ("loader = DataLoader(data, shuffle=True)", "num_workers and pin_memory=True"),
        ("loader = DataLoader(data, 8, True, None, None, 4)", "pin_memory=True"),
        ("train_loader = DataLoader(data, num_workers=4, pin_memory=True)", "persistent_workers=True"),
    ],
)
def test_what_a_loader_lacks(call: str, missing: str) -> None:
    text = LOADERS.format(call=call)
    result = inspect_text(engine("2.6", select=("NPU701",)), "example.py", text, Project())
    assert [finding.message for finding in result.findings] == [f"this DataLoader has no {missing}"]


@pytest.mark.parametrize(
    "call",
    [
        "loader = DataLoader(data, **options)",
        "loader = DataLoader(*arguments)",
        "val_loader = DataLoader(data, num_workers=4, pin_memory=True)",
    ],
)
def test_loaders_that_lack_nothing_known(call: str) -> None:
    assert lines(LOADERS.format(call=call), "NPU701") == []


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("train_loader = DataLoader(data, batch_size=8)", True),
        ("loader = DataLoader(train_set, batch_size=8)", True),
        ("loader = DataLoader(data, batch_size=8, shuffle=True)", True),
        ("loader = DataLoader(data, batch_size=8)", False),
        ("train_loader = DataLoader(data, batch_sampler=sampler)", False),
        ("train_loader = DataLoader(data, batch_size=8, drop_last=args.drop)", False),
        ("test_loader = DataLoader(data, batch_size=8, shuffle=True)", False),
        ("train_loader = DataLoader(data)", False),
    ],
)
def test_last_batch(call: str, found: bool) -> None:
    assert bool(lines(LOADERS.format(call=call), "NPU753")) == found
