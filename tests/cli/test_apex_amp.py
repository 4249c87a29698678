"""Programs with apex.amp: the module that stands for it in the result, and what imports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reading import python_files, rows

TRAIN = (
    "def train(net, optimizer, loss):\n"
    "    with {amp}.scale_loss(loss, optimizer) as scaled:\n        scaled.backward()\n"
)


@pytest.mark.parametrize(
    ("before", "amp", "after", "new"),
    [
        ("from apex import amp\n", "amp", "import ascend_amp as amp\n", "amp"),
        ("import apex.amp as mixed\n", "mixed", "import ascend_amp as mixed\n", "mixed"),
        ("import apex\n", "apex.amp", "import ascend_amp\n", "ascend_amp"),
        ("import apex.amp\n", "apex.amp", "import ascend_amp\n", "ascend_amp"),
        (
            "from apex import amp, optimizers\nprint(optimizers)\n",
            "amp",
            "from apex import optimizers\nimport ascend_amp as amp\nprint(optimizers)\n",
            "amp",
        ),
        (
            "import apex\nprint(apex.parallel)\n",
            "apex.amp",
            "import apex\nimport ascend_amp\nprint(apex.parallel)\n",
            "ascend_amp",
        ),
        (
            "try:\n    from apex import amp\nexcept ImportError:\n    amp = None\n",
            "amp",
            "try:\n    import ascend_amp as amp\nexcept ImportError:\n    amp = None\n",
            "amp",
        ),
    ],
)
def test_each_way_to_import_it(result_of, before: str, amp: str, after: str, new: str) -> None:
    result = result_of({"train.py": before + TRAIN.format(amp=amp)})
    assert (result / "train.py").read_text() == after + TRAIN.format(amp=new)
    assert (result / "ascend_amp.py").is_file()
    assert {row["Rule"] for row in rows(result, "change_list")} == {"NPU646"}


def test_single_functions_and_several_files(result_of) -> None:
    files = {
        "acme/__init__.py": "",
        "acme/start.py": "from apex.amp import initialize as start\n\nstart(1, 2)\n",
        "acme/step.py": "from . import start\nfrom apex import amp\n\namp.master_params(start)\n",
        "main.py": "import acme.step\nfrom acme.start import start\n",
    }
    result = result_of(files)
    assert "from acme.ascend_amp import initialize as start\n" in (result / "acme/start.py").read_text()
    assert "from . import ascend_amp as amp\n" in (result / "acme/step.py").read_text()
    assert (result / "acme/ascend_amp.py").is_file()
    assert (result / "main.py").read_text() == files["main.py"]


@pytest.mark.parametrize(
    ("beside", "version"),
    [
        ("from torch.amp import autocast\nprint(autocast)\n", "2.6"),
        ("handle = amp.init()\n", "2.6"),
        ("", "1.11"),
    ],
)
def test_what_the_module_does_not_serve_is_reported(result_of, beside: str, version: str) -> None:
    text = "from apex import amp\n" + beside + TRAIN.format(amp="amp")
    result = result_of({"train.py": text}, "-v", version)
    assert (result / "train.py").read_text() == text
    assert not (result / "ascend_amp.py").exists()
    found = [row for row in rows(result, "manual_review") if row["Rule"] == "NPU646"]
    named = {"from": "autocast", "hand": "amp.init"}.get(beside[:4], "")
    assert found
    assert any(f"in a file that has {named}" in row["Message"] for row in found) == bool(named)


def test_a_second_migration_changes_nothing(result_of, npumigrate, tmp_path: Path) -> None:
    first = result_of({"train.py": "from apex import amp\n" + TRAIN.format(amp="amp")})
    assert npumigrate(first, "-o", tmp_path / "again", "-v", "2.6").code == 0
    assert python_files(tmp_path / "again" / "p_msft_msft") == python_files(first)
