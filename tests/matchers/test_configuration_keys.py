"""Keys of configurations, by the Python that reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.project.facts import scan_file
from migrator.project.programs import of_text
from migrator.project.project import merge_facts
from tests.checking import check_text, migrate_text
from tests.matchers.migrating import engine
from tests.timing import bounded

CONFIG = "run_on: cuda:0\nWHERE: cuda\nlabel: cuda\n"


@pytest.mark.parametrize(
    "python",
    [
        "device = torch.device(cfg.train.run_on)\nx.to(opt['WHERE'])",
        'torch.load(p, map_location=args.get("where", "cpu"))\nmodel(device=config["a"]["run_on"])',
    ],
)
def test_a_key_that_goes_into_a_device_changes(python: str) -> None:
    project = merge_facts([scan_file("train.py", f"import torch\n{python}\nprint(cfg.label)\n")])
    result = migrate_text(engine("2.6"), "conf/a.yaml", CONFIG, project)
    assert result.text == "run_on: npu:0\nWHERE: npu\nlabel: cuda\n"
    assert {item.code for item in result.findings} == {"NPU427"}


def test_without_such_python_it_stays() -> None:
    for text in ("import torch\ntorch.device(x.label.dtype)\ncfg.run_on.lower()\n", "import os\n"):
        project = merge_facts([scan_file("train.py", text)])
        assert migrate_text(engine("2.6"), "conf/a.yaml", CONFIG, project).findings == ()


def test_what_cannot_be_replaced_in_place_is_reported() -> None:
    text = 'device: "cuda\\x3a1"  # cuda\nbackend: >-\n  nccl\n'
    found = check_text(engine("2.6"), "conf/a.yaml", text, merge_facts([]))
    assert [(item.line, item.fix, item.advice) for item in found.findings] == [
        (1, None, "Write npu:1."),
        (2, None, "Write hccl."),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '["cuda", "cpu"]\n'),
        ("a.json", '"cuda"\n'),
        ("a.json", '{"": "cuda", "a": {"": "cuda"}, "b": [["cuda"]]}\n'),
        ("a.yaml", "cuda\n"),
        ("a.yaml", "- cuda\n- [nccl]\n"),
        ("a.yaml", '"": cuda\na: {"": nccl, ? : cuda}\n: cuda\n'),
        ("a.toml", '"" = "cuda"\na."" = "nccl"\n[""]\n"" = ["cuda"]\n'),
        ("a.ini", "[]\n=cuda\n = nccl\n[a]\n: cuda\n"),
        (".env", "=cuda\n = nccl\nexport =cuda\n"),
        ("a.sh", 'python train.py "" --= "cuda" --="cuda" -- cuda\n=cuda python train.py\n'),
        ("Makefile", "=cuda\n:=nccl\n = cuda\n"),
    ],
)
def test_a_value_without_a_name_is_looked_up_by_no_program(name: str, text: str) -> None:
    program = "import os, torch\nx = cfg['']\nm.to(os.environ[''])\ntorch.device(cfg[0])\n"
    project = replace(merge_facts([scan_file("train.py", program)]), programs=of_text("train.py", program))
    with bounded(10):
        assert migrate_text(engine("2.6"), name, text, project).findings == ()
