"""nvidia-smi, NVML and libcudart: what is made of their answers, and what is left alone."""

from __future__ import annotations

import pytest

from tests.matchers.migrating import migrate, migrated

HEAD = "import os\nimport subprocess\nimport torch\n"


def become(expression: str) -> str:
    text = migrated(f"{HEAD}x = {expression}\n", select=("ALL",), ignore=("NPU901",))
    return text.partition("x = ")[2].rstrip("\n")


@pytest.mark.parametrize(
    "expression",
    [
        'len(os.popen("nvidia-smi -L").readlines())',
        'len(os.popen("nvidia-smi -L").read().strip().split("\\n"))',
        'len(subprocess.check_output(["nvidia-smi", "-L"]).decode().split("\\n")) - 1',
        'int(subprocess.check_output("nvidia-smi --list-gpus | wc -l", shell=True))',
        'int(os.popen("nvidia-smi --query-gpu=name --format=csv,noheader | wc -l").read())',
        'str(subprocess.check_output(["nvidia-smi", "-L"])).count("UUID")',
        'len(subprocess.check_output(["/usr/bin/nvidia-smi", "-L"]).splitlines())',
        'len(subprocess.run(["nvidia-smi", "-L"], stdout=subprocess.PIPE).stdout.splitlines())',
        'len(subprocess.check_output("nvidia-smi --query-gpu=name --format=csv".split()).splitlines()) - 1',
    ],
)
def test_a_count_of_the_lines_is_a_count_of_devices(expression):
    assert become(expression) == "torch.npu.device_count()"


def test_lines_keep_their_form():
    each = "for i in range(torch.npu.device_count())"
    name = "{torch.npu.get_device_name(i)}"
    query = '["nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader"]'
    assert become(f"subprocess.check_output({query})") == f'"".join(f"{{i}}, {name}\\n" {each}).encode()'
    assert become(f"subprocess.check_output({query}, text=True)") == f'"".join(f"{{i}}, {name}\\n" {each})'
    assert become(f"subprocess.check_output({query}).decode().splitlines()") == f'[f"{{i}}, {name}" {each}]'
    first = 'subprocess.getoutput("nvidia-smi -i 1 --query-gpu=memory.total --format=csv,noheader")'
    assert become(first) == 'f"{torch.npu.mem_get_info(1)[1] >> 20} MiB"'


@pytest.mark.parametrize(
    "expression",
    [
        'subprocess.check_output(["nvidia-smi", "--query-gpu=power.draw", "--format=csv"])',
        "subprocess.check_output(\"nvidia-smi -L | awk '{print $1}'\", shell=True)",
        'subprocess.Popen(["nvidia-smi", "-L"], stdout=subprocess.PIPE)',
        'os.popen("nvidia-smi -l 1")',
        'subprocess.check_output(["nvidia-smi", option])',
    ],
)
def test_what_is_not_known_of_the_output_is_reported(expression):
    result = migrate(f"{HEAD}x = {expression}\n")
    assert result.text is None
    assert [finding.code for finding in result.findings] == ["NPU600"]


@pytest.mark.parametrize(
    ("given", "errors"),
    [
        ("stdout=subprocess.PIPE, stderr=subprocess.PIPE", ', b""'),
        ("capture_output=True, text=True", ', ""'),
        ("stdout=subprocess.PIPE, stderr=subprocess.DEVNULL", ""),
        ("stdout=subprocess.PIPE", ""),
    ],
)
def test_errors_that_are_asked_for_are_empty(given, errors):
    after = become(f'subprocess.run(["nvidia-smi", "-L"], {given})\nprint(x.stderr)').partition("\n")[0]
    each = "for i in range(torch.npu.device_count())"
    lines = f'f"GPU {{i}}: {{torch.npu.get_device_name(i)}} (UUID: NPU-{{i}})\\n" {each}'
    encoded = "" if "text" in given else ".encode()"
    assert after == f'subprocess.CompletedProcess([], 0, "".join({lines}){encoded}{errors})'
    pipes = given.replace("capture_output=True", "stdout=subprocess.PIPE, stderr=subprocess.PIPE")
    pair = become(f'subprocess.Popen(["nvidia-smi", "-L"], {pipes}).communicate()')
    assert pair == f'("".join({lines}){encoded}{errors or ", None"})'


ELSEWHERE = "env -u ASCEND_RT_VISIBLE_DEVICES python3 -c"
FREE = "{torch.npu.mem_get_info(i)[0] >> 20}"
EACH = "for i in range(torch.npu.device_count())]"


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
    ],
)
def test_another_process_answers_a_program_that_chooses_its_devices(command, after):
    chooses = 'os.environ["ASCEND_RT_VISIBLE_DEVICES"] = "1"\n'
    head = f"import os\nimport subprocess\n{chooses}"
    result = migrate(f"{head}{command}\nimport torch\n")
    assert result.text == f"{head}{after}\nimport torch\n"
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


def test_a_pipe_whose_name_is_used_again():
    text = (
        f"{HEAD}p = subprocess.Popen(['uname'], stdout=subprocess.PIPE)\nsystem = p.communicate()[0]\n"
        "p = os.popen('nvidia-smi -L')\np = p.read().splitlines()\nprint(len(p), system)\n"
    )
    lines = migrated(text).splitlines()
    assert "system = p.communicate()[0]" in lines
    assert [line.partition(" = [f")[0] for line in lines if "GPU {i}" in line] == ["p"]
    twice = text.replace("p = p.read().splitlines()", "n = p.read()\nm = p.read()")
    assert migrate(twice).text is None


def test_visible_devices_do_not_matter_for_names():
    text = HEAD + "seen = os.environ.get('HIP_VISIBLE_DEVICES')\n"
    query = "subprocess.check_output(['nvidia-smi', '--query-gpu={}', '--format=csv'])\n"
    assert migrate(text + query.format("name")).text is not None
    assert ELSEWHERE.split()[2] in migrated(text + query.format("memory.used"))


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
