"""Which rules may match in a text."""

from __future__ import annotations

import pytest

from migrator.core.rules import MODES, Rules
from migrator.core.settings import Settings
from migrator.matchers.packs import load_all
from migrator.project.project import Project
from tests.matchers.migrating import engine


def test_from_which_words_rules_start() -> None:
    rules = engine("2.6")
    assert rules.asks_for("cuda")
    assert not rules.asks_for("zebra")


def test_the_rules_of_a_file_are_those_of_the_framework_that_it_shows() -> None:
    text = 'import mindspore as ms\nms.set_context(device_target="GPU")\nmodel.cuda()\n'
    rules, _ = engine("2.6").starting(text, Project())
    assert rules
    assert {rule.framework for rule in rules} == {("mindspore",)}


def test_what_is_known_of_the_chosen_rules() -> None:
    rules = Rules(Settings(version="2.6", select=("NPU101", "NPU401", "NPU450")))
    assert rules.version.text == "2.6.0"
    assert rules.enabled == {"NPU101", "NPU401", "NPU450"}
    assert not rules.opt_in
    assert len(rules.every) > 200
    assert list(rules.order) == list(rules.every)
    assert list(rules.order.values()) == list(range(len(rules.every)))
    assert [rule.code for rule in rules.of_other_files("pip install torch", Project())] == ["NPU450"]
    found, words = rules.starting("import torch\ntorch.cuda.synchronize()\n", Project())
    assert [rule.code for rule in found] == ["NPU101"]
    assert words == {"cuda"}
    assert rules.is_relevant("torch.cuda.synchronize()")
    assert not rules.is_relevant("numpy.ones(2)")


def test_a_rule_that_is_asked_for_is_said_to_be_so() -> None:
    chosen = next(rule.code for rule in load_all() if rule.opt_in)
    assert Rules(Settings(version="2.6", select=(chosen,))).opt_in


@pytest.mark.parametrize("mode", ["transfer", "specify_device"])
def test_a_mode_starts_wherever_torch_is_named(mode: str) -> None:
    rules = Rules(Settings(version="2.6", **{mode: True}))
    assert rules.is_relevant("import torch")
    assert not rules.is_relevant("import numpy")
    found, words = rules.starting("import torch\n", Project())
    assert [rule.code for rule in found][-1] in MODES
    assert "torch" in words
    assert bool(rules.of_other_files("pip install torch", Project())) == (mode != "transfer")
