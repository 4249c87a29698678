"""Keys of configurations, by the Python that reads them."""

from __future__ import annotations

import pytest

from migrator.project.facts import scan_file
from migrator.project.project import merge_facts
from tests.checking import check_text, migrate_text
from tests.matchers.migrating import engine

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


def test_what_cannot_be_replaced_in_place_is_reported() -> None:
    text = 'device: "cuda\\x3a1"  # cuda\nbackend: >-\n  nccl\n'
    found = check_text(engine("2.6"), "conf/a.yaml", text, merge_facts([]))
    assert [(item.line, item.fix, item.advice) for item in found.findings] == [
        (1, None, "Write npu:1."),
        (2, None, "Write hccl."),
    ]
