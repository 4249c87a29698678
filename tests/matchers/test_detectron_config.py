"""Configurations of detectron2, whose default device is "cuda"."""

from __future__ import annotations

import pytest

from migrator.findings.finding import Result
from migrator.project.project import Project
from tests.checking import migrate_text
from tests.matchers.migrating import engine

IMPORT = "from detectron2.config import get_cfg\n"


def migrated(text: str, packages: tuple[str, ...] = ()) -> Result:
    project = Project(packages=frozenset(packages))
    return migrate_text(engine("2.6"), "example.py", IMPORT + text, project)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("cfg = get_cfg()\ncfg.freeze()\n", 'cfg = get_cfg()\ncfg.MODEL.DEVICE = "npu"\ncfg.freeze()\n'),
        ("cfg = get_cfg(); x = 1\n", 'cfg = get_cfg(); cfg.MODEL.DEVICE = "npu"; x = 1\n'),
        (
            "class A:\n    def f(self):\n        self.cfg = get_cfg()\n",
            "class A:\n    def f(self):\n        self.cfg = get_cfg()\n"
            '        self.cfg.MODEL.DEVICE = "npu"\n',
        ),
    ],
)
def test_the_next_statement_names_the_npu(text: str, after: str) -> None:
    result = migrated(text)
    assert result.text == f"{IMPORT}import torch_npu\n{after}"
    assert [each.severity for each in result.findings if each.code == "NPU643"] == ["error"]
    again = migrate_text(engine("2.6"), "example.py", result.text, Project())
    assert (again.text, again.findings) == (None, ())


def test_what_gives_a_device_itself_is_left_alone() -> None:
    assert migrated("cfg = get_cfg()\ncfg.MODEL.DEVICE = name\n").findings == ()
    assert migrated("cfg = get_cfg()\n", packages=("detectron2",)).findings == ()


def test_a_configuration_without_a_name_is_reported() -> None:
    result = migrated("def f():\n    return get_cfg()\n")
    assert ([each.code for each in result.findings], result.text) == (["NPU643"], None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["MODEL.DEVICE", "cuda", "SOLVER.LR", 1]', '["MODEL.DEVICE", "npu", "SOLVER.LR", 1]'),
        ('["SOLVER.LR", 1, "MODEL.DEVICE", "cuda:1"]', '["SOLVER.LR", 1, "MODEL.DEVICE", "npu:1"]'),
        ('["MODEL.NAME", "cuda", "MODEL.DEVICE", "cpu"]', ""),
        ('["model.device", "cuda"]', ""),
    ],
)
def test_a_list_of_keys_and_values(before: str, after: str) -> None:
    result = migrated(f"def f(cfg):\n    cfg.merge_from_list({before})\n")
    assert (result.text is not None) is bool(after)
    assert after in (result.text or "")
