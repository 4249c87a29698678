"""--specify-device: DEVICE_ID chooses the NPU where nothing else does."""

from __future__ import annotations

import os

import pytest

from migrator.core.check import check
from migrator.core.rules import rules_for
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.project.facts import scan_file
from migrator.project.project import merge_facts

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
