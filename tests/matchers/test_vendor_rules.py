"""Rule files of pytorch_gpu2npu.sh: used as a pack, and what has no equivalent is named."""

from __future__ import annotations

import json

import pytest

from migrator.core.check import check
from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.files.document import document
from migrator.matchers.vendor_rules import not_converted
from migrator.project.project import Project
from tests.checking import load_pack

RULES = {
    "ArgsModifyRule": [
        {"func_name": "lib.fused", "arg_idx": 1, "arg_new": "'slow'"},
        {"func_name": "place", "arg_idx": 0, "arg_new": '"npu"'},
        {"func_name": "lib.load", "arg_idx": -1, "arg_keyword": "where", "arg_new": '"npu"'},
    ],
    "FuncNameModifyRule": [{"old_name": "lib.old", "new_name": "new"}],
    "ModuleNameModifyRule": [{"old_name": "amp", "new_name": "npu_amp", "parent_module": "lib"}],
}


@pytest.fixture
def migrate(tmp_path):
    def run(text: str) -> str | None:
        file = tmp_path / "rules.json"
        file.write_text(json.dumps({"rules": RULES}))
        rules = Rules(Settings("2.6.0", rule_files=(str(file),)), load_pack)
        return check(document(text.encode(), "train.py"), rules, Project()).text

    return run


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("lib.fused(x, 'fast')", "lib.fused(x, 'slow')"),
        ("x.place('cuda', 1)", 'x.place("npu", 1)'),
        ("lib.load(x, where=1)", 'lib.load(x, where="npu")'),
        ("lib.old(x)", "lib.new(x)"),
        ("lib.amp.scale(x)", "lib.npu_amp.scale(x)"),
    ],
)
def test_what_the_rules_say_is_done(migrate, before, after):
    text = migrate(f"import lib\n{before}\n")
    assert text is not None
    assert text.splitlines()[-1] == after
    assert migrate(text) is None


def test_what_only_looks_like_it_stays(migrate):
    assert migrate("import lib\nlib.fused(x)\nother.old(x)\nlib.load(x, 1)\namp.scale(x)\n") is None


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"FuncNameModifyRule": [{"old_name": "func", "new_name": "g"}]}, "'func' has no module"),
        ({"ArgsModifyRule": [{"func_name": "a.b", "arg_idx": 0, "arg_new": ""}]}, "takes an argument of a.b"),
        ({"ArgsModifyRule": [{"func_name": "a.b", "arg_new": "1"}]}, "arg_idx or arg_keyword"),
        ({"ModuleNameModifyRule": [{"old_name": "a"}]}, "new_name are needed"),
        ({"ReplaceStringRule": []}, "ReplaceStringRule: no such rules"),
        ({"ModuleNameModifyRule": ["a"]}, "it is no object"),
    ],
)
def test_what_has_no_equivalent_is_named(tmp_path, rules, said):
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"rules": rules}))
    lines = not_converted(file)
    assert len(lines) == 1
    assert said in lines[0]
    assert Rules(Settings("2.6.0", rule_files=(str(file),)), load_pack).every  # the others are used
