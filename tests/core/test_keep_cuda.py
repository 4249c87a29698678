"""--keep-cuda: one source for CUDA, NPUs and the CPU, from the same findings."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from migrator.core.check import check
from migrator.core.examples import with_one_source
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.project.added_package import places
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import every_rule

EXAMPLES = [
    pytest.param(example, id=f"{rule.code}-{number}")
    for rule in every_rule()
    for number, example in enumerate(rule.examples)
    if not rule.opt_in and "file" not in example
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_becomes_a_source_that_stays(example):
    before = next(example[key] for key in ("before", "unchanged", "reported") if key in example)
    version = example.get("version", "2.6")
    result = with_one_source(before, version)
    assert not result.skipped
    if "before" not in example:
        assert result.text is None
    elif result.text is not None:
        ast.parse(result.text)
        assert with_one_source(result.text, version).text is None


def shared(files, name, version="2.6.0"):
    """What becomes of a file among others."""
    rules = rules_for(Settings(version, keep_cuda=True))
    project = merge_facts([scan_file(each, text) for each, text in files.items()], files=files)
    project = replace(project, places=places(files, files.get))
    return check(document(files[name].encode(), name), rules, project)


CALL = "import torch\ntorch.cuda.empty_cache()\n"


@pytest.mark.parametrize(
    ("files", "name", "expected"),
    [
        ({"train.py": CALL}, "train.py", ["import shared_device"]),
        ({"acme/__init__.py": "", "acme/nms.py": CALL}, "acme/nms.py", ["from acme import shared_device"]),
        (
            {
                "acme/__init__.py": "from . import nms",
                "acme/nms.py": "from . import ops\nfrom torch.cuda import Event",
            },
            "acme/nms.py",
            ["from .shared_device import Event"],
        ),
    ],
)
def test_each_file_imports_the_module_where_its_copy_lies(files, name, expected):
    assert set(expected) < set(shared(files, name).text.splitlines())


@pytest.mark.parametrize(
    ("version", "expected"), [("2.6.0", "shared_device"), ("2.9.0", "torch.accelerator")]
)
def test_torch_accelerator_where_the_version_has_the_name(version, expected):
    before = "import torch\nif torch.cuda.is_available():\n    torch.cuda.empty_cache()\n"
    assert f"    {expected}.empty_cache()" in shared({"train.py": before}, "train.py", version).text


def test_before_torch_accelerator_the_module_answers():
    text = shared({"train.py": "import torch\nuse = torch.cuda.is_available()\n"}, "train.py", "2.1.0").text
    assert "use = shared_device.is_available()" in text


def test_a_method_of_the_programs_own_is_called_where_a_value_has_it():
    model = "import torch\nclass Batch(torch.nn.Module):\n    def cuda(self):\n        return self\n"
    files = {"model.py": model, "train.py": "import torch\ndef run(batch):\n    return batch.cuda(0)\n"}
    assert shared(files, "model.py").text is None
    assert "return shared_device.move(batch, 0)" in shared(files, "train.py").text


def test_what_a_type_allows_is_what_the_machine_has():
    before = 'from typing import Literal\nimport torch\ndevice: Literal["cuda", "cpu"] = "cuda"\n'
    result = shared({"train.py": before}, "train.py")
    assert 'Literal[shared_device.ACCELERATOR, "cpu"] = shared_device.TYPE' in result.text


def test_other_files_stay_and_say_what_an_npu_needs():
    script = "export CUDA_VISIBLE_DEVICES=0\npython train.py --device cuda\n"
    result = shared({"run.sh": script}, "run.sh")
    assert result.text is None
    assert {finding.code for finding in result.findings} >= {"NPU410"}
    assert all("--keep-cuda changes Python only" in finding.message for finding in result.findings)
    told = {finding.code: finding.advice for finding in result.findings}
    assert "with ASCEND_RT_VISIBLE_DEVICES here" in told["NPU410"]


def test_a_line_that_npus_do_without_is_left_out_of_their_copy():
    files = {"requirements.txt": "nvidia-cublas-cu12\n", "train.py": "import torch\n"}
    result = shared(files, "requirements.txt")
    [finding] = result.findings
    assert result.text is None
    assert finding.advice.startswith("Keep a second copy of the file for NPU machines, without this.")


def test_settings_that_no_file_imports_stay():
    files = {"train.py": CALL, "configs/run.py": "dist_params = dict(backend='nccl')\n"}
    result = shared(files, "configs/run.py")
    assert result.text is None
    assert [finding.advice for finding in result.findings] == [
        "Keep a second copy of the file for NPU machines, with hccl here."
    ]


def test_code_for_npus_of_the_programs_own_stays():
    before = "import torch\nif npu:\n    torch.npu.synchronize()\nelse:\n    torch.cuda.synchronize()\n"
    assert shared({"train.py": before}, "train.py").text is None
