"""``npumigrate rule``, and the page made with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from migrator.matchers.packs import load_all

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_one_rule(npumigrate):
    answer = npumigrate("rule", "NPU101")
    assert answer.code == 0
    assert answer.out.startswith("# NPU101: cuda-module\n")
    assert "torch.cuda.synchronize()" in answer.out
    assert "torch.npu.synchronize()" in answer.out
    assert "Left alone:" in answer.out


def test_names_and_small_letters_do_as_well(npumigrate):
    assert npumigrate("rule", "cuda-module").out == npumigrate("rule", "npu101").out


def test_several(npumigrate):
    heads = re.findall(r"^# (\w+)", npumigrate("rule", "NPU201", "NPU101").out, re.M)
    assert heads == ["NPU201", "NPU101"]


def test_json(npumigrate):
    (rule,) = json.loads(npumigrate("rule", "NPU101", "--output-format", "json").out)
    assert (rule["code"], rule["name"], rule["fix"], rule["severity"]) == (
        "NPU101",
        "cuda-module",
        "safe",
        "error",
    )
    assert rule["why"]
    assert {"before", "after"} <= set(rule["examples"][0])
    everything = json.loads(npumigrate("rule", "--all", "--output-format", "json").out)
    assert [one["code"] for one in everything] == [one.code for one in load_all()]


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


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["NPU000"], "there is no rule 'NPU000'"),
        (["cuda-modul"], "did you mean cuda-module"),
        (["npu12"], "did you mean NPU121, NPU122"),
        ([], "which rule?"),
        (["NPU101", "--all"], "which rule?"),
        (["NPU101", "--rules", "/nowhere.yaml"], "/nowhere.yaml: cannot be read: no such file"),
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
    assert len(links) == len(load_all())
    assert set(links) <= heads
