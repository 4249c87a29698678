"""What is other with torch before 2.1, where torch_npu replaces names of torch."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

PLACES = [
    (
        "from torch import nn\nimport torch\nx = torch.zeros(1).cuda()\n",
        "import torch_npu\nfrom torch import nn\nimport torch\nx = torch.zeros(1).npu()\n",
    ),
    (
        "import torch\nfrom torch import nn\nx = torch.zeros(1).cuda()\n",
        "import torch\nimport torch_npu\nfrom torch import nn\nx = torch.zeros(1).npu()\n",
    ),
    (
        "import torch.nn as nn\nfrom torch import zeros\nx = zeros(1).cuda()\n",
        "import torch.nn as nn\nimport torch_npu\nfrom torch import zeros\nx = zeros(1).npu()\n",
    ),
    (
        "import os; from torch import zeros; x = zeros(1).cuda()\n",
        "import os; import torch_npu; from torch import zeros; x = zeros(1).npu()\n",
    ),
    (
        "def f():\n    from torch import zeros\n    return zeros(1).cuda()\n",
        "def f():\n    import torch_npu\n    from torch import zeros\n    return zeros(1).npu()\n",
    ),
    (
        "try:\n    from torch import load\nexcept ImportError:\n    load = None\n",
        "try:\n    import torch_npu\n    from torch import load\nexcept ImportError:\n    load = None\n",
    ),
    ("from torch import nn\nlayer = nn.Linear(1, 1)\n", "from torch import nn\nlayer = nn.Linear(1, 1)\n"),
]


@pytest.mark.parametrize(("before", "after"), PLACES)
@pytest.mark.parametrize("version", ["1.8.1", "1.11"])
def test_torch_npu_stands_above_names_of_torch(before: str, after: str, version: str) -> None:
    assert migrated(before, version) == after


def test_newer_releases_import_it_behind() -> None:
    text = migrated(PLACES[0][0], "2.1")
    assert text.startswith("from torch import nn\nimport torch_npu\n")


def test_patching_at_run_time_stands_above_them_too() -> None:
    text = "from torch import device\n\nif __name__ == '__main__':\n    print(device('cuda'))\n"
    result = migrate(text, "1.11", transfer=True)
    above = "import torch_npu\nfrom torch_npu.contrib import transfer_to_npu\n"
    assert result.text == above + text


def test_before_torch_1_13_a_loaders_iterator_had_next() -> None:
    text = "import torch\nloader = torch.utils.data.DataLoader(range(4))\nit = iter(loader)\nit.next()\n"
    assert migrated(text, "1.11") == text
