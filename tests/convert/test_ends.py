"""Converted programs end where the threads of Gloo are late: models are freed before the process group."""

from __future__ import annotations

from pathlib import Path

from migrator.convert.distributed.convert import convert
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


def test_a_model_at_the_margin_is_freed(slow_gloo: RunSlowly, tmp_path: Path) -> None:
    text = convert("train.py", {"train.py": FLAT}.get).files["train.py"].text
    assert text.endswith("\nmodel = model.module\nleave_distributed()\n")
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "vision.py").write_text("import torch.distributed.nn.functional  # as torchvision does")
    done = slow_gloo("train.py", cwd=tmp_path, late=0.2)
    assert (done.returncode, done.stdout) == (0, "END True\n"), done.stderr
