"""Which rules may match in a text."""

from __future__ import annotations

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
