"""Rule packs that are wrong: one line that says where and what."""

from __future__ import annotations

import pytest

from migrator.matchers.packs import RuleError, load, load_all
from migrator.matchers.structural.handlers import HANDLERS, handler

RULE = """\
- code: ACME101
  name: acme-cuda
  summary: acme.cuda has an NPU form
  kind: name
  match: acme.cuda.*
  examples:
    - {example}
"""


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("{before: x, afterwards: y}", "unknown field 'afterwards'; the fields are before, after,"),
        ("{before: x, after: y, version: 2.6}", "'version' is a text; write a number in quotes"),
        ("{before: x}", "it has both before and after, or only unchanged, or only reported"),
        (
            "{before: x, after: y, unchanged: z}",
            "it has both before and after, or only unchanged, or only reported",
        ),
    ],
)
def test_examples(tmp_path, example, message):
    pack = tmp_path / "rules.yaml"
    pack.write_text(RULE.format(example=example))
    with pytest.raises(RuleError) as error:
        load(pack)
    assert str(error.value).startswith(f"{pack}:1: example 0 of ACME101: {message}")


def test_an_option_that_yaml_takes_for_something_else(tmp_path):
    pack = tmp_path / "rules.yaml"
    pack.write_text("- {code: ACME101, name: a, summary: s, kind: call, match: a.b, options: {on: [x]}}\n")
    with pytest.raises(RuleError) as error:
        load(pack)
    assert str(error.value) == f"{pack}:1: the option True is no text: write it in quotes"


def test_every_handler_that_a_rule_names_is_there():
    named = {rule.options["handler"] for rule in load_all() if "handler" in rule.options}
    assert named - {"none"} == set(HANDLERS)
    assert all(callable(handler(name)) for name in HANDLERS)
    assert handler("none") is None
