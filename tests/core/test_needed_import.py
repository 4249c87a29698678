"""``import torch_npu`` in programs that import torch through other files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.project.facts import scan_file
from migrator.project.project import Project, merge_facts
from tests.checking import migrate_text
from tests.matchers.migrating import engine

MODEL = "import torch\nclass Net(torch.nn.Module):\n    pass\n"
STARTED = """\
import argparse
from model import Net
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
if __name__ == "__main__":
    Net().train(parser.parse_args())
"""
# A launcher: what it starts may be another Python's.
LAUNCHER = STARTED.replace("from model", "from others")
LIBRARY = STARTED.partition("if __name__")[0]


def migrated(text: str, version: str) -> str:
    facts = [scan_file("train.py", text), scan_file("model.py", MODEL)]
    project = replace(merge_facts(facts), packages=frozenset({"model"}))
    return migrate_text(engine(version), "train.py", text, project, False).text or text


@pytest.mark.parametrize(
    ("text", "version", "imports"),
    [
        (STARTED, "2.1", True),
        (STARTED, "2.6", False),  # torch imports torch_npu by itself
        (LAUNCHER, "2.1", False),
        (LIBRARY, "2.1", False),
    ],
)
def test_a_program_that_names_a_device_for_other_files(text: str, version: str, imports: bool) -> None:
    result = migrated(text, version)
    assert 'default="npu"' in result
    assert ("import torch_npu" in result) is imports


def test_an_import_for_another_change_is_enough() -> None:
    text = "import torch\nfrom options import args\ntorch.cuda.init()\nprint(torch.device(args.device))\n"
    assert migrated(text, "2.1").count("import torch_npu") == 1


@pytest.mark.parametrize("newline", ["\n", "\r", "\r\n"])
def test_a_blank_line_behind_the_import_stays_where_newlines_differ(newline: str) -> None:
    text = f"import torch\n\n# {newline}torch.cuda.init()\r# y\r"
    assert migrate_text(engine("2.6.0"), "a.py", text, Project()).text == (
        f"import torch\nimport torch_npu\n\n# {newline}torch.npu.init()\r# y\r"
    )


def test_a_name_that_is_written_is_bound() -> None:
    """An import of something of torch_npu loads it and does not bind its name."""
    head = "import torch\nfrom torch_npu.npu import Stream\n"
    text = head + "def norm(x, w):\n    return x * torch.rsqrt((x**2).mean(-1, keepdim=True) + 1e-6)\n"
    result = migrate_text(engine("2.6.0", select=("ALL", "NPU801")), "a.py", text, Project()).text
    assert result is not None
    assert "import torch_npu\n" in result
    assert "torch_npu.npu_rms_norm(" in result


def test_what_another_module_brings_is_not_imported_again() -> None:
    text = "import torch\nfrom .compat import torch_npu as npu\ntorch.cuda.synchronize()\n"
    result = migrate_text(engine("2.6.0"), "a.py", text, Project()).text
    assert result == text.replace("cuda", "npu")
