"""What modes put into scripts: --specify-device, by which DEVICE_ID chooses the NPU, and --mode transfer."""

from __future__ import annotations

import os

import pytest

from migrator.core.check import check
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.matchers.migrating import migrate

SCRIPT = '"""Trains."""\nfrom __future__ import annotations\n# torch comes first\nimport torch\n\nmain()\n'
MAIN = "\nif __name__ == '__main__':\n    main()\n"


def migrated(text, keep_cuda=False):
    rules = rules_for(Settings("2.6.0", specify_device=True, keep_cuda=keep_cuda))
    project = merge_facts([scan_file("train.py", text)])
    return check(document(text.encode(), "train.py"), rules, project).text


@pytest.mark.parametrize("keep_cuda", [False, True])
def test_a_script_asks_for_the_variable_above_its_imports(keep_cuda):
    text = migrated(SCRIPT + MAIN, keep_cuda)
    lines = text.splitlines()
    assert lines[2:4] == ["# torch comes first", "import os"]
    assert lines[6] == "import torch"
    assert migrated(text, keep_cuda) is None


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"DEVICE_ID": "3"}, "3"),
        ({}, None),
        ({"DEVICE_ID": "3", "LOCAL_RANK": "1"}, None),
        ({"DEVICE_ID": "3", "RANK_ID": "1"}, None),
        ({"DEVICE_ID": "3", "ASCEND_RT_VISIBLE_DEVICES": "4,5"}, "4,5"),
    ],
)
def test_only_a_process_alone_gets_its_npu_from_it(monkeypatch, environment, expected):
    for name in ("DEVICE_ID", "RANK", "RANK_ID", "LOCAL_RANK", "ASCEND_RT_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    text = migrated(SCRIPT + MAIN)
    inserted = text[text.index("import os") : text.index("import torch")]
    monkeypatch.setitem(os.environ, "UNUSED", "")  # what the statements set goes with the other changes
    exec(inserted, {})
    found = os.environ.pop("ASCEND_RT_VISIBLE_DEVICES", None)
    assert found == expected


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n\ndef main():\n    pass\n",  # a module
        "import os\nprint(os.sep)\n" + MAIN,  # no torch
        'import os\nimport torch\ntorch.npu.set_device(int(os.environ["DEVICE_ID"]))\n' + MAIN,
    ],
)
def test_other_files_stay(text):
    assert migrated(text) is None


@pytest.mark.parametrize(
    "above",
    [
        "",
        '"""Trains."""\n',
        "from __future__ import annotations\n",
        '"""Trains."""\nfrom __future__ import annotations\n',
    ],
)
@pytest.mark.parametrize(
    "first", ["import torch\n", "from torch import (\n    nn,\n)\n", "@deco\ndef f():\n    pass\n"]
)
def test_the_statements_come_above_the_first_that_does_something(above, first):
    rest = f"{first}import torch\n{MAIN}"
    text = migrated(above + rest)
    assert text.startswith(f"{above}import os\nif ")
    assert text.endswith(f'["DEVICE_ID"])\n{rest}')


def test_what_is_told_of_them():
    text = f"import torch\n{MAIN}"
    rules = rules_for(Settings("2.6.0", specify_device=True))
    project = merge_facts([scan_file("train.py", text)])
    (found,) = check(document(text.encode(), "train.py"), rules, project).findings
    assert (found.code, found.api, found.fixed) == ("NPU190", "DEVICE_ID", True)


DONE = [
    "x = torch.ones(1, device='cuda')",
    "x = torch.ones(1).cuda().is_cuda",
    "torch.cuda.synchronize()",
    "from torch.cuda.amp import GradScaler",
    "torch.distributed.init_process_group('nccl')",
    "scope = torch.autocast('cuda')",
]
LEFT = {
    "x = t.device.type == 'cuda'": "NPU121",
    "x = str(t.device).startswith('cuda')": "NPU121",
    "torch._C._cuda_getDeviceCount()": "NPU155",
    "torch.set_default_tensor_type('torch.cuda.FloatTensor')": "NPU151",
    "x = t.type('torch.cuda.FloatTensor')": "NPU115",
    "x = os.environ['CUDA_VISIBLE_DEVICES']": "NPU401",
    "import apex": "NPU601",
}


@pytest.mark.parametrize("text", DONE)
def test_what_the_patching_does(text):
    assert [f.code for f in migrate(f"import torch\n{text}\n", transfer=True).findings] == []


@pytest.mark.parametrize(("text", "code"), LEFT.items())
def test_what_it_leaves(text, code):
    result = migrate(f"import os\nimport torch\n{text}\n", transfer=True)
    assert result.text is None
    assert [f.code for f in result.findings] == [code]
    assert all(f.fix is None for f in result.findings)


STARTED = "if __name__ == '__main__':\n    main()\n"
ONE, TWO = "import torch_npu", "from torch_npu.contrib import transfer_to_npu"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"import torch\n{STARTED}", f"import torch\n{ONE}\n{TWO}\n{STARTED}"),
        (f"{STARTED}import torch", f"{STARTED}import torch\n{ONE}\n{TWO}"),
        (f"import torch; x = 1\n{STARTED}", f"import torch; {ONE}; {TWO}; x = 1\n{STARTED}"),
        (f"x = 1; import torch\n{STARTED}", f"x = 1; import torch; {ONE}; {TWO}\n{STARTED}"),
        (
            f"try:\n\timport torch\nexcept ImportError:\n\tpass\n{STARTED}",
            f"try:\n\timport torch\n\t{ONE}\n\t{TWO}\nexcept ImportError:\n\tpass\n{STARTED}",
        ),
        # torch_npu is imported already
        (f"import torch\nimport torch_npu\n{STARTED}", f"import torch\n{ONE}\n{TWO}\n{STARTED}"),
        (f"import torch\n{ONE}\n{TWO}\n{STARTED}", None),
        # it is not started, or not with torch
        ("import torch\n", None),
        (f"import numpy\n{STARTED}", None),
    ],
)
def test_where_the_two_imports_go(before: str, after: str | None) -> None:
    assert migrate(before, transfer=True).text == after
    windows = after.replace("\n", "\r\n") if after else None
    assert migrate(before.replace("\n", "\r\n"), transfer=True).text == windows


@pytest.mark.parametrize(("version", "above"), [("1.11", True), ("2.6", False)])
def test_where_torch_npu_replaces_names_it_is_imported_above_them(version: str, above: bool) -> None:
    own, names = f"{ONE}\n{TWO}\n", "from torch import nn\n"
    result = migrate(names + STARTED, version, transfer=True)
    assert result.text == (own + names if above else names + own) + STARTED
    beside = migrate(f"x = 1; {names}{STARTED}", version, transfer=True).text
    expected = f"x = 1; {ONE}; {TWO}; {names}" if above else f"x = 1; {names.strip()}; {ONE}; {TWO}\n"
    assert beside == expected + STARTED


@pytest.mark.parametrize(
    ("line", "count", "advice"),
    [
        ("x = str(t.device).endswith('cuda')", 1, "Change it by hand, or migrate with --mode rewrite."),
        (
            "x = t.type in (('cuda', a), ['cuda'], 'cuda')",
            3,
            "Change it by hand, or migrate with --mode rewrite.",
        ),
        ("torch.set_default_tensor_type('torch.cuda.FloatTensor')", 1, "Use torch.set_default_device("),
    ],
)
def test_what_it_leaves_says_so_and_what_to_do(line: str, count: int, advice: str) -> None:
    found = migrate(f"import torch\n{line}\n", transfer=True).findings
    before = {item.code: item.message for item in migrate(f"import torch\n{line}\n").findings}
    assert len(found) == count
    for item in found:
        assert item.message == f"{before[item.code]}; transfer_to_npu does not cover this"
        assert item.advice.startswith(advice)
