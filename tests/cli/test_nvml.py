"""Programs that ask NVML: the module that answers in the result, and what imports it."""

from __future__ import annotations

import pytest

from tests.reading import rows

AFFINITY = """\
import math
import os
{imports}

class Device:
    words = math.ceil(os.cpu_count() / 64)
    def __init__(self, index):
        self.handle = {nvml}nvmlDeviceGetHandleByIndex(index)
    def cores(self):
        words = {nvml}nvmlDeviceGetCpuAffinity(self.handle, Device.words)
        return [i for i in range(64 * Device.words) if words[i // 64] >> i % 64 & 1]

{nvml}nvmlInit()
os.sched_setaffinity(0, Device(0).cores())
"""


@pytest.mark.parametrize(
    ("before", "after", "nvml"),
    [
        ("import pynvml", "import ascend_nvml as pynvml", "pynvml."),
        ("import pynvml as nvml", "import ascend_nvml as nvml", "nvml."),
        ("from pynvml import *", "from ascend_nvml import *", ""),
        ("import nvidia_smi", "import ascend_nvml as nvidia_smi", "nvidia_smi."),
        ("from py3nvml import py3nvml", "import ascend_nvml as py3nvml", "py3nvml."),
        ("import py3nvml.py3nvml as nvml", "import ascend_nvml as nvml", "nvml."),
    ],
)
def test_each_way_to_import_it(result_of, before: str, after: str, nvml: str) -> None:
    result = result_of({"affinity.py": AFFINITY.format(imports=before, nvml=nvml)})
    assert (result / "affinity.py").read_text() == AFFINITY.format(imports=after, nvml=nvml)
    assert (result / "ascend_nvml.py").is_file()
    assert not [row for row in rows(result, "manual_review") if row["Rule"] == "NPU633"]


@pytest.mark.parametrize(
    "more",
    [
        "watts = pynvml.nvmlDeviceGetPowerUsage(pynvml.nvmlDeviceGetHandleByIndex(0))\n",
        "degrees = pynvml.nvmlDeviceGetTemperature(0, pynvml.NVML_TEMPERATURE_GPU)\n",
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '1'\n",
    ],
)
def test_a_file_that_asks_for_more_stays(result_of, more: str) -> None:
    files = {
        "a.py": f"import pynvml\npynvml.nvmlInit()\n{more}",
        "b.py": "import torch\nx = torch.ones(1).cuda()\n",
    }
    result = result_of(files)
    assert "import pynvml\npynvml.nvmlInit()\n" in (result / "a.py").read_text()
    assert not (result / "ascend_nvml.py").exists()
    left = [row["Severity"] for row in rows(result, "manual_review") if row["Rule"] == "NPU633"]
    assert sorted(left) == ["blocker", "warning"]


def test_modules_of_the_project_are_no_library(result_of) -> None:
    files = {
        "pynvml.py": "def nvmlInit():\n    pass\n",
        "main.py": "import pynvml\nimport torch\npynvml.nvmlInit()\ntorch.ones(1).cuda()\n",
    }
    result = result_of(files)
    assert "import pynvml\n" in (result / "main.py").read_text()
    assert not (result / "ascend_nvml.py").exists()
