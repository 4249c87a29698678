"""The examples of the runtime rules, what a failure makes of a program; and rules that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.findings.edits import apply
from migrator.matchers.options import typed
from migrator.matchers.packs import RuleError
from migrator.verify.diagnosis import Failure, Frame
from migrator.verify.repair.fixes import FIXES
from migrator.verify.repair.proposal import Seen
from migrator.verify.repair.rules import load, load_all
from migrator.verify.repair.site import Sources

RULES = load_all()
EXAMPLES = {f"{rule.code}-{i}": (rule, each) for rule in RULES for i, each in enumerate(rule.examples)}


def failure_of(example, text: str, file: Path) -> Failure | None:
    """The failure that an example tells: at the place `at`, with `values` there."""
    if "at" not in example:
        return None
    before = text.partition(example["at"])[0]
    assert example["at"] in text
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2])
    frame = Frame(
        str(file),
        line,
        column,
        line,
        column + len(example["at"]),
        "f",
        text.splitlines()[line - 1].strip(),
        tuple(example.get("values", ())),
    )
    calls = Frame("/torch/distributed/distributed_c10d.py", 1, -1, 1, -1, "all_reduce", "")
    inner = (calls,) if "all_reduce" in example["at"] else ()
    kinds = (example["failure"], "Exception")
    return Failure(1, None, example["failure"], kinds, example["text"], (frame, *inner))


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    rule, example = EXAMPLES[name]
    text = example.get("before") or example["unchanged"]
    file = tmp_path / "train.py"
    file.write_text(text)
    failure = failure_of(example, text, file)
    results = []
    if failure is None or rule.signs.fit(failure):
        fixer = FIXES[rule.fix]
        for proposal in fixer.propose(Seen(Sources(tmp_path), failure), typed(fixer.options, rule.options)):
            results.append(apply(text.encode(), proposal.edits).decode())
    assert results[:1] == ([example["after"]] if "after" in example else [])


def test_each_rule_that_mends_has_an_example() -> None:
    lacking = [rule.code for rule in RULES if rule.fix not in ("", "all-ranks") and not rule.examples]
    assert lacking == []


def test_codes_are_those_of_runtime_rules_and_no_others() -> None:
    static = Rules(Settings("2.6", ("ALL",))).every
    assert all(1100 <= int(rule.code[3:]) < 1150 for rule in RULES)
    assert not static.keys() & {rule.code for rule in RULES}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            "code: NPU1149\n  name: x\n  summary: x\n  signs: {}\n  fix: rename\n  options: {value: {a: b}}",
            "unknown option 'value'; did you mean 'values'?",
        ),
        ("code: NPU1149\n  name: x\n  summary: x\n  signs: {txt: a}", "unknown option 'txt'"),
        ("code: NPU1149\n  name: x\n  summary: x\n  signs: {}\n  fix: renam", "unknown fix 'renam'"),
        ("code: NPU1149\n  name: x\n  summary: x\n  signs: {text: '('}", "missing )"),
        ("code: NPU1149\n  name: x\n  signs: {}", "'summary' is missing"),
        (
            "code: NPU1149\n  name: x\n  summary: x\n  signs: {}\n  examples: [{befor: x}]",
            "unknown field 'befor'",
        ),
    ],
)
def test_what_no_code_would_use_is_an_error(entry: str, said: str, tmp_path: Path) -> None:
    pack = tmp_path / "mine.yaml"
    pack.write_text(f"- {entry}\n")
    with pytest.raises(RuleError) as error:
        load(pack)
    assert str(error.value).startswith(f"{pack}:1: ")
    assert said in str(error.value)
