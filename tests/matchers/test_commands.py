"""nvidia-smi, NVML and libcudart: what is made of their answers, and what is left alone."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

HEAD = "import os\nimport subprocess\nimport torch\n"


@pytest.mark.parametrize(
    "expression",
    [
        'subprocess.check_output(["nvidia-smi", "--query-gpu=power.draw", "--format=csv"])',
        "subprocess.check_output(\"nvidia-smi -L | awk '{print $1}'\", shell=True)",
        'os.popen("nvidia-smi -l 1")',
        'subprocess.check_output(["nvidia-smi", option])',
    ],
)
def test_what_is_not_known_of_the_output_is_reported(expression):
    result = migrate(f"{HEAD}x = {expression}\n")
    assert result.text is None
    assert [finding.code for finding in result.findings] == ["NPU600"]


ELSEWHERE = "env -u ASCEND_RT_VISIBLE_DEVICES python3 -c"
FREE = "{torch.npu.mem_get_info(i)[0] >> 20}"
EACH = "for i in range(torch.npu.device_count())]"
NAMED = "GPU {i}: {torch.npu.get_device_name(i)} (UUID: NPU-{i})"


@pytest.mark.parametrize(
    ("command", "after"),
    [
        pytest.param(
            "os.system('nvidia-smi -q -d Memory |grep -A4 GPU|grep Free >tmp')",
            f"os.system(\"{ELSEWHERE} 'import torch, torch_npu; "
            f'[print(f\\"Free : {FREE} MiB\\") {EACH}\' > tmp")',
            id="a shell that writes a file",
        ),
        pytest.param(
            "x = subprocess.getoutput('nvidia-smi --query-gpu=memory.free --format=csv')",
            f"x = subprocess.getoutput(\"{ELSEWHERE} 'import torch, torch_npu; "
            f'print(\\"memory.free [MiB]\\"); [print(f\\"{FREE} MiB\\") {EACH}\' 2>/dev/null")',
            id="a header, and what reads the errors too",
        ),
        pytest.param(
            "c = 'nvidia-smi --query-gpu=memory.free --format=csv,noheader'\n"
            "x = subprocess.Popen(c.split(), stdout=subprocess.PIPE)",
            'x = subprocess.Popen(["env", "-u", "ASCEND_RT_VISIBLE_DEVICES", "python3", "-c", '
            f"'import torch, torch_npu; [print(f\"{FREE} MiB\") {EACH}'], stdout=subprocess.PIPE)",
            id="a text that becomes a list",
        ),
        pytest.param(
            'x = int(subprocess.check_output("nvidia-smi --list-gpus | wc -l", shell=True))',
            f"x = int(subprocess.check_output(\"{ELSEWHERE} 'import torch, torch_npu; "
            f'[print(f\\"{NAMED}\\") {EACH}\' | wc -l", shell=True))',
            id="what reads the lines in the shell",
        ),
        pytest.param(
            'x = subprocess.run(["/usr/bin/nvidia-smi", "-L"], timeout=5, capture_output=True).stdout',
            'x = subprocess.run(["env", "-u", "ASCEND_RT_VISIBLE_DEVICES", "python3", "-c", '
            f"'import torch, torch_npu; [print(f\"{NAMED}\") {EACH}'], "
            "timeout=5, capture_output=True).stdout",
            id="the other arguments stay",
        ),
    ],
)
def test_another_process_prints_the_lines(command, after):
    result = migrate(f"{HEAD}{command}\n")
    assert result.text == f"{HEAD}{after}\n"
    assert {finding.code for finding in result.findings} == {"NPU600"}


@pytest.mark.parametrize(
    "call",
    [
        "subprocess.check_output(c, stderr=subprocess.STDOUT, shell=True)",
        "subprocess.run([c], shell=True)",
        "subprocess.Popen(c)",
    ],
)
def test_no_other_process_where_more_than_its_lines_is_read_or_nothing_runs(call):
    line = "c = 'nvidia-smi --query-gpu=memory.free --format=csv'\n"
    text = f'import os\nimport subprocess\n{line}os.environ["ASCEND_RT_VISIBLE_DEVICES"] = {call}\n'
    result = migrate(text)
    assert result.text is None
    assert {finding.code for finding in result.findings} <= {"NPU600", "NPU622"}


def test_old_releases_lack_the_question():
    text = f'{HEAD}x = subprocess.check_output(["nvidia-smi", "--query-gpu=memory.free", "--format=csv"])\n'
    assert migrate(text, version="2.0").text is None
    assert "mem_get_info" in (migrate(text, version="2.1").text or "")


def test_a_library_of_cuda_is_needed_for_more_than_limits():
    text = (
        "import ctypes\nimport torch\ncudart = ctypes.CDLL('libcudart.so')\n"
        "cudart.cudaDeviceSetLimit(ctypes.c_int(5), ctypes.c_int(128))\n"
    )
    assert "if torch.version.cuda:\n    cudart = " in migrated(text)
    for more in (
        "cudart.cudaMalloc(p, 8)\n",
        "print(cudart)\n",
        "if x:\n    cudart.cudaDeviceSetLimit(1, 2)\n",
    ):
        result = migrate(text + more)
        assert result.text is None
        assert [finding.severity for finding in result.findings] == ["blocker"]


@pytest.mark.parametrize(
    "text",
    [
        "import os\nn = len(os.popen('nvidia-smi -L').read().splitlines())\nfrom torch.cuda import *\n",
        "import pynvml\nn = pynvml.nvmlDeviceGetCount()\nimport torch.cuda as t\n",
        "import os\ndevice = 'cuda'\nprint(os.popen('nvidia-smi -L').read())\nimport torch\n",
    ],
)
def test_what_stands_above_the_only_import_of_torch_stays_in_the_next_migration(text: str) -> None:
    once = migrated(text)
    assert migrate(once).text is None


def test_a_call_above_the_library_that_it_is_of() -> None:
    text = (
        "import ctypes\nimport torch\ndef limit():\n    cudart.cudaDeviceGetLimit(())\n"
        "    cudart = ctypes.CDLL('libcudart.so')\n"
    )
    result = migrate(text)
    assert [finding.code for finding in result.findings] == ["NPU625"]
    assert result.text is None
    assert not result.skipped
