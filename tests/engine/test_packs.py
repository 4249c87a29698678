"""Rule packs that are wrong: one line that says where and what."""

from __future__ import annotations

import pytest

from migrator.engine.packs import RuleError, load

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
