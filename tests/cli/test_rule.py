"""``npumigrate rule``, and the page made with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from migrator.data_folders import data_folder
from tests.checking import every_rule

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_one_rule(npumigrate):
    answer = npumigrate("rule", "NPU101")
    assert answer.code == 0
    assert answer.out.startswith("# NPU101: cuda-module\n")
    assert "torch.cuda.synchronize()" in answer.out
    assert "torch.npu.synchronize()" in answer.out
    assert "Left unchanged:" in answer.out


def test_several_by_codes_or_names_in_small_letters(npumigrate):
    assert npumigrate("rule", "cuda-module").out == npumigrate("rule", "npu101").out
    heads = re.findall(r"^# (\w+)", npumigrate("rule", "NPU201", "NPU101").out, re.M)
    assert heads == ["NPU201", "NPU101"]


def test_json(npumigrate):
    (rule,) = json.loads(npumigrate("rule", "NPU101", "--output-format", "json").out)
    about = [rule[key] for key in ("code", "name", "fix", "severity")]
    assert about == ["NPU101", "cuda-module", "safe", "error"]
    assert rule["why"]
    assert {"before", "after"} <= set(rule["examples"][0])
    everything = json.loads(npumigrate("rule", "--all", "--output-format", "json").out)
    assert [one["code"] for one in everything] == [one.code for one in every_rule()]


def test_a_rule_of_ones_own(npumigrate, tmp_path):
    pack = tmp_path / "mine.yaml"
    pack.write_text(
        "- code: ACME101\n  name: mine\n  summary: our own\n  kind: name\n  match: acme.gpu\n"
        "  versions: '>=2.1'\n  references: acme.org/guide\n"
    )
    answer = npumigrate("rule", "ACME101", "--rules", pack)
    head, about, *rest = answer.out.split("\n\n")
    assert (head, about) == ("# ACME101: mine", "our own. Warning, no fix, for torch >=2.1.")
    assert rest == ["References:", "- acme.org/guide\n"]


EXAMPLES = """\
- code: ACME101
  name: acme-cuda
  summary: acme.cuda has an NPU form
  kind: name
  match: acme.cuda.*
  replace: acme.npu.*
  fix: safe
  examples:
    - before: |
        import acme
        acme.cuda.start()
      after: |
        import acme
        import torch_npu
        acme.npu.start()
    - unchanged: |
        from numba import cuda
        cuda.synchronize()
"""


def test_a_pack_is_tested_by_its_examples(npumigrate, tmp_path):
    pack = tmp_path / "acme.yaml"
    pack.write_text(EXAMPLES)
    answer = npumigrate("rule", "--check", pack)
    assert (answer.code, answer.out, answer.err) == (0, "examples: 2, failed: 0\n", "")


@pytest.mark.parametrize(
    ("example", "expected", "came"),
    [
        (
            "before: import acme as a; a.cuda.f()\n      after: import acme as a; a.npu.g()",
            "import acme as a; a.npu.g()",
            "import acme as a; import torch_npu; a.npu.f()",
        ),
        (
            "unchanged: import acme; acme.cuda.f()",
            "no change, and no finding of ACME101",
            "import acme; import torch_npu; acme.npu.f()",
        ),
        ("reported: x = 1", "no change, and a finding of ACME101", "no finding"),
        ("reported: cuda(", "a program", "line 1: not valid Python"),
        ("before: x = 1\n      after: x = 1", "a finding of ACME101", "no finding"),
        ("unchanged: x = 1\n      version: '77.1'", "a version of torch", "unknown torch version '77.1'"),
    ],
)
def test_an_example_that_fails(npumigrate, tmp_path, example, expected, came):
    pack = tmp_path / "acme.yaml"
    pack.write_text(f"{EXAMPLES}    - {example}\n")
    answer = npumigrate("rule", "--check", pack)
    lines = answer.out.splitlines()
    assert (answer.code, answer.err) == (1, "")
    assert lines[:4] == [f"{pack}:1: example 2 of ACME101", "  expected:", f"    {expected}", "  came:"]
    assert lines[4].startswith(f"    {came}")
    assert lines[5:] == ["examples: 3, failed: 1"]


def test_a_pack_of_ours_is_not_read_twice(npumigrate):
    pack = data_folder("rules") / "4_environment.yaml"
    assert npumigrate("rule", "--check", pack).code == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["NPU000"], "unknown rule 'NPU000'"),
        (["cuda-modul"], "did you mean cuda-module"),
        (["npu20"], "did you mean NPU201, NPU202"),
        (["--output-format", "json"], "no rule given"),
        (["NPU101", "--all"], "no rule given"),
        (["NPU101", "--check", "acme.yaml"], "--check tests a whole pack"),
        (["--check", "/nowhere.yaml"], "/nowhere.yaml: no such file or folder"),
        (["NPU101", "--rules", "/nowhere.yaml"], "/nowhere.yaml: no such file or folder"),
    ],
)
def test_wrong_use(npumigrate, arguments, line):
    answer = npumigrate("rule", *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert line in answer.err
    assert answer.err.count("\n") == 1


def test_the_page_in_docs_is_up_to_date(npumigrate):
    made = npumigrate("rule", "--all", "--output-format", "markdown").out
    assert PAGE.read_text(encoding="utf-8") == made, (
        "npumigrate rule --all --output-format markdown > docs/rules.md"
    )


def test_the_links_of_the_page_lead_to_its_headings():
    text = PAGE.read_text(encoding="utf-8")
    # GitHub's anchors: small letters, no punctuation but dashes, dashes for blanks.
    heads = {
        re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-")
        for head in re.findall(r"^#+ (.+)$", text, re.M)
    }
    links = re.findall(r"\]\(#([^)]+)\)", text)
    assert len(links) == len(every_rule())
    assert set(links) <= heads
