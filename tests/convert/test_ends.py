"""Converted programs end where the threads of Gloo are late: models are freed before the process group."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.convert.distributed.convert import convert
from migrator.convert.horovod.convert import convert as convert_horovod
from tests.slow_gloo import RunSlowly, slow_gloo

__all__ = ["slow_gloo"]
FLAT = """
import torch
import vision
from torch.utils.data import DataLoader

loader = DataLoader(torch.ones(8, 2), batch_size=4, shuffle=True)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(2, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(1):
    total = 0.0
    for x in loader:
        optimizer.zero_grad()
        loss = model(x.to(device)).sum()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("END", total / len(loader) > -100)
"""
HOROVOD = """
import horovod.torch as hvd
import torch
import vision

hvd.init()
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
for step in range(2):
    optimizer.zero_grad()
    loss = model(torch.ones(4, 2)).sum()
    loss.backward()
    optimizer.step()
loss = hvd.allreduce(loss, name="loss").item()
print("END", loss == loss)
"""


@pytest.mark.parametrize("kind", ["distributed", "horovod"])
def test_a_model_at_the_margin_is_freed(slow_gloo: RunSlowly, tmp_path: Path, kind: str) -> None:
    if kind == "distributed":
        text = convert("train.py", {"train.py": FLAT}.get).files["train.py"].text
    else:
        result = convert_horovod(["train.py"], ["train.py"], {"train.py": HOROVOD}.get, (2, 6, 0))
        text = result["train.py"].text
    assert text.endswith("\nmodel = model.module\nleave_distributed()\n")
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "vision.py").write_text("import torch.distributed.nn.functional  # as torchvision does")
    done = slow_gloo("train.py", cwd=tmp_path, late=0.2)
    assert (done.returncode, done.stdout) == (0, "END True\n"), done.stderr
