"""Rule packs that are wrong: one line that says where and what."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from migrator.core.rules import FROM_PROJECT, Rules
from migrator.core.settings import Settings
from migrator.matchers.finders import KINDS
from migrator.matchers.kinds.env import EnvOptions
from migrator.matchers.packs import Options, RuleError, load
from migrator.matchers.starting_words import line_words, starting_words
from migrator.project.facts import LIBRARIES, scan_file
from migrator.project.project import merge_facts
from tests.checking import every_rule, load_pack, migrate_text
from tests.timing import grows_evenly

EVERY = every_rule()
HEAD = "- code: ACME101\n  name: acme-cuda\n  summary: acme.cuda has an NPU form\n"
NAME = "  kind: name\n  match: a.b\n"
HINT = "  kind: string\n  match: cuda\n  options: {{places: {{hints: ['{}']}}}}\n"


def refused(tmp_path: Path, more: str) -> str:
    """What is said of a pack, behind the name of its file."""
    pack = tmp_path / "rules.yaml"
    pack.write_text(HEAD + more)
    with pytest.raises(RuleError) as error:
        load(pack)
    return str(error.value).removeprefix(f"{pack}:")


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("{before: x, afterwards: y}", "unknown field 'afterwards'; the fields are before, after,"),
        ("{before: x, after: y, version: 2.6}", "'version' is a string: put numbers in quotes"),
        ("{before: x}", "it must have before and after, or unchanged, or reported"),
        ("{before: x, after: y, unchanged: z}", "it must have before and after, or unchanged, or"),
    ],
)
def test_examples(tmp_path, example, message):
    said = refused(tmp_path, f"{NAME}  examples:\n    - {example}\n")
    assert said.startswith(f"1: example 0 of ACME101: {message}")


@pytest.mark.parametrize(
    ("more", "line", "message"),
    [
        (NAME + "  options: {true: [x]}", 6, "the option True is not a string: write it in quotes"),
        (
            NAME + "  options:\n    file_has: [a]\n    only_caled: true",
            8,
            "unknown option 'only_caled'; did you mean 'only_called'?",
        ),
        (NAME + "  options: {position: 0}", 6, "unknown option 'position'"),
        ("  kind: method\n  match: .b\n  options: {file_hass: b}", 6, "unknown option 'file_hass'; did you"),
        ("  kind: cuda-brunch", 1, "unknown kind 'cuda-brunch'; did you mean 'cuda-branch'?"),
        (
            "  kind: structural\n  options:\n    handler: cuda-branch",
            1,
            "unknown kind 'structural'; did you mean 'cuda-branch'?",
        ),
        ("  kind: structural\n  options: {handler: [none]}", 1, "unknown kind 'structural'"),
        ("  on: call\n  match: a.b\n  args: {a: 1}", 6, "'args' is a list, each item a string, not {'a': 1}"),
        (
            "  kind: library-equivalent\n  match: a\n  options: {names: {f: {nam: g}}}",
            6,
            "names: unknown option 'nam'; did you mean 'name'?",
        ),
        (
            "  kind: env\n  options: {verdict: sure}",
            5,
            "'verdict' is one of 'certain', 'likely', 'report', not",
        ),
        (NAME + "  options: {only_called: 'yes'}", 6, "'only_called' is true or false, not 'yes'"),
        (NAME + "  options: {file_has: [1]}", 6, "'file_has' is a string, not 1"),
        (NAME + "  options: {file_has: 1}", 6, "'file_has' is a list, each item a string, not 1"),
        (
            "  kind: string\n  match: a\n  options:\n    places: {keyword: [a]}",
            7,
            "places: unknown option 'keyword'; did you mean 'keywords'?",
        ),
        ("  kind: names", 1, "unknown kind 'names'; did you mean 'name'?"),
        (NAME + "  fix: save", 6, "'fix' is one of 'safe', 'unsafe', 'none', not 'save'"),
        (NAME + "  opt_in: 'no'", 6, "'opt_in' is true or false, not 'no'"),
        (NAME + "  versions: 2.1", 6, "'versions' is a string, not 2.1"),
        ("  kind: name\n  match: {a: b}", 5, "'match' is a list, each item a string, not {'a': 'b'}"),
        ("  kind: name\n  matches: a.b", 1, "unknown field 'matches'; did you mean 'match'?"),
        ("  kind: name", 1, "the field 'match' is missing or empty"),
        ("  kind: name\n  match: []", 5, "the field 'match' is missing or empty"),
        ("  kind: name\n  words: [a]\n  match: [a.b, '']", 6, "the field 'match' is missing or empty"),
        ("  kind: env\n  match: environ", 5, "the kind 'env' does not use the field 'match'"),
        ("  kind: import\n  match: a\n  replace: b", 6, "the kind 'import' does not use the field 'replace'"),
        ("  kind: method\n  match: .a", 1, "the field 'replace' is missing"),
        (
            "  kind: api-verdicts\n  words: [torch]",
            5,
            "the kind 'api-verdicts' does not use the field 'words'",
        ),
        (
            "  kind: setting\n  match: a\n  options: {of: [option], file_has: [num-layers]}",
            6,
            "'file_has': 'num-layers' is not one word of letters, digits and _",
        ),
        (
            HINT.format(r"(\w+)+!"),
            6,
            r"'hints': the regular expression '(\\w+)+!' may take too long: repeat only",
        ),
        (
            HINT.format(r"\w*\w*\w*!"),
            6,
            r"'hints': the regular expression '\\w*\\w*\\w*!' may take too long:",
        ),
        (HINT.format("(ab|ab){20}!"), 6, "'hints': the regular expression '(ab|ab){20}!' may take too long:"),
        (HINT.format("(ab|ab|c)" * 40), 6, "'hints': the regular expression '(ab|ab|c)"),
        (
            HINT.format("(device"),
            6,
            "'hints': '(device' is not a regular expression: missing ), unterminated",
        ),
        (
            HINT.format("device{9999999999}"),
            6,
            "'hints': 'device{9999999999}' is not a regular expression: the",
        ),
        (
            "  on: string\n  match: CUDA\n  where: \"goes_on('(a*)*b')\"\n",
            6,
            "'goes_on': the regular expression '(a*)*b' may take too",
        ),
    ],
)
def test_what_the_code_would_not_use(tmp_path, more, line, message):
    assert refused(tmp_path, more).startswith(f"{line}: {message}")


def test_options_are_typed(tmp_path):
    pack = tmp_path / "rules.yaml"
    options = "{verdict: likely, needs_npu: true, file_has: torch}"
    pack.write_text(f"{HEAD}  kind: env\n  options: {options}")
    (rule,) = load(pack)
    expected = {"verdict": "likely", "needs_npu": True, "file_has": ("torch",)}
    assert vars(rule.options) == vars(EnvOptions(**expected))


@pytest.mark.parametrize("rule", [rule for rule in EVERY if rule.words], ids=lambda rule: rule.code)
def test_words_are_written_only_where_they_are_not_those_of_the_names(rule):
    assert set(rule.words) != starting_words(replace(rule, words=()))


@pytest.mark.parametrize("rule", EVERY, ids=lambda rule: rule.code)
def test_every_rule_starts_from_words(rule):
    words = starting_words(rule) | line_words(rule)
    from_elsewhere = rule.kind == "none" or rule.finder.words_from in FROM_PROJECT
    assert bool(starting_words(rule)) != from_elsewhere
    assert all(word.isidentifier() for word in words)


@pytest.mark.parametrize("rule", [rule for rule in EVERY if rule.match], ids=lambda rule: rule.code)
def test_the_code_looks_at_the_names_of_every_rule(rule):
    """With other names a rule finds less in one of its examples."""
    if rule.code == "NPU711" or (rule.kind == "pattern" and rule.options.definitions):
        return  # the name is what it advises; definitions are found by their names
    if rule.kind == "own-module" and not rule.options.reports:
        return  # it needs a result
    other = replace(rule, match=("nothing.like.it",), words=tuple(starting_words(rule)))
    shown = [example for example in rule.examples if "unchanged" not in example]
    assert any(count(rule, example) > count(other, example) for example in shown)


def count(rule, example):
    def load(path):
        return [rule if one.code == rule.code else one for one in EVERY if one.origin.startswith(f"{path}:")]

    rules = Rules(Settings(example.get("version", "2.6"), ("ALL", rule.code)), load)
    text, name = example.get("before") or example["reported"], example.get("file", "a.py")
    facts = [scan_file(name, text) if name.endswith(".py") else scan_file("a.py", example.get("program", ""))]
    result = migrate_text(rules, name, text, merge_facts(facts))
    return [finding.code for finding in result.findings].count(rule.code)


def test_every_kind_has_a_rule():
    assert {rule.kind for rule in EVERY} == {*KINDS}


@pytest.mark.parametrize("finder", KINDS.values(), ids=str)
def test_code_reads_every_option_that_it_declares(finder):
    """An option that is declared and not read would load silently, and do nothing."""
    if finder.declared is Options:
        return
    tree = ast.parse(Path(inspect.getfile(finder.declared)).read_text())
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    own = {field.name for field in fields(finder.declared)} - {field.name for field in fields(Options)}
    assert own
    assert own <= read


@pytest.mark.parametrize("page", ["rule_format.md", "rule_format.zh.md"])
def test_the_documents_name_every_option_of_a_kind(page):
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    shared = (finder for finder in KINDS.values() if not finder.each)  # others serve one rule or two
    declared = {field.name for finder in shared for field in fields(finder.declared)}
    assert {name for name in declared if not re.search(rf"`{name}[`:]", text)} == set()


@pytest.mark.parametrize(
    "hint", [r".*cuda.*", r"(^|_)(?:gpu|dev)s?(?=$|_)", r"[a-z]+\d{1,3}(?!x)", r"map_?location"]
)
def test_regular_expressions_of_people_are_taken_and_are_fast(tmp_path, hint):
    pack = tmp_path / "rules.yaml"
    pack.write_text(HEAD + HINT.format(hint))
    load(pack)
    engine = Rules(Settings(version="2.6", rule_files=(str(pack),)), load_pack)

    def migrate_one(text):
        migrate_text(engine, "a.py", text, merge_facts([scan_file("a.py", text)]))

    def long_names(size):
        return f"x = 'cuda'\n{'a' * 100 * size} = 'cuda'\nf({'cuda' * size}='cuda')\n"

    assert grows_evenly(migrate_one, long_names, 1_000)


def test_a_finder_says_whose_options_ask_the_project():
    asking = {
        name
        for name, finder in KINDS.items()
        if finder.module and finder.declared.words_in is not Options.words_in
    }
    assert {name for name, finder in KINDS.items() if finder.asks_project} == asking


def test_files_show_the_imports_of_every_library_for_which_a_module_is_added():
    """Another one would never be seen, and its module never added."""
    adding = [rule.options.added.libraries for rule in EVERY if rule.kind == "own-module"]
    assert adding
    assert {name for names in adding for name in names} <= {*LIBRARIES}
