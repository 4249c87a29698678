"""The examples of rules, as tests: what must change changes so, and what must not stays."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from migrator.api_support.versions import UnknownVersion, resolve
from migrator.core.check import check
from migrator.core.rules import Rules, rules_for
from migrator.core.settings import Settings
from migrator.files.document import Document, document
from migrator.files.naming import EQUIVALENTS
from migrator.findings.finding import Result
from migrator.language import _
from migrator.light import Frozen
from migrator.matchers.packs import Rule, load_all
from migrator.project.added_package import Place
from migrator.project.facts import scan_file
from migrator.project.programs import of_text
from migrator.project.project import Project, merge_facts

_NAME = "example.py"
_VERSION = "2.6"


class Failure(Frozen):
    """What an example says, and what came instead: source, or a line of words."""

    expected: str
    came: str


def failure(rule: Rule, number: int, packs: tuple[str, ...] = ()) -> Failure | None:
    """What is wrong with an example of a rule, by its number; None where it is as it should be.

    ``packs`` are the files of a user's own rules. Raises RuleError where they cannot be used.
    """
    example = rule.examples[number]
    version, name = example.get("version", _VERSION), example.get("file", _NAME)
    program, wanted = example.get("program", ""), example.get("requirements", "")
    before = next(example[key] for key in ("before", "unchanged", "reported") if key in example)
    try:
        result = migrated(before, version, rule.opt_in, packs, name, program, wanted)
    except UnknownVersion as error:
        return Failure("a version of torch", str(error))
    said = any(finding.code == rule.code for finding in result.findings)
    if result.skipped:
        return Failure("a program", result.skipped)
    if "before" not in example:
        wanted = "reported" in example
        if result.text is None and said == wanted:
            return None
        value = "a" if wanted else "no"
        expected = _("no change, and {value} finding of {code}", value=value, code=rule.code)
        return Failure(expected, _findings(result) if result.text is None else result.text)
    after = before if result.text is None else result.text
    if after != example["after"]:
        return Failure(example["after"], after)
    if not said:
        return Failure(_("a finding of {code}", code=rule.code), _findings(result))
    again = migrated(after, version, rule.opt_in, packs, name, program, wanted)
    if again.text is not None:
        return Failure(_("no change by a second migration"), again.text)
    if "keep_cuda" not in example:
        return None
    came, expected = with_one_source(before, version).text, example["keep_cuda"]
    if came != expected:
        return Failure(expected, came or before)
    twice = with_one_source(expected, version).text
    return None if twice is None else Failure("no change by a second migration with --keep-cuda", twice)


def with_one_source(text: str, version: str) -> Result:
    """A program as --keep-cuda leaves it."""
    rules = rules_for(Settings(resolve(version).text, keep_cuda=True))
    return check(document(text.encode("utf-8"), _NAME), rules, merge_facts([scan_file(_NAME, text)]))


def _findings(result: Result) -> str:
    lines = [f"line {item.line}: {item.code} {item.message}" for item in result.findings]
    return "\n".join(lines) or _("no finding")


def migrated(
    text: str,
    version: str,
    opt_in: bool,
    packs: tuple[str, ...] = (),
    name: str = _NAME,
    program: str = "",
    requirements: str = "",
) -> Result:
    """A program as all rules leave it at a version, or all that are off until they are asked for.

    ``name`` is that of its file, which shows its type; ``program``: the Python beside one of another type,
    ``requirements`` the lines of its project's requirements.
    """
    item = document(text.encode("utf-8"), name)
    return check(item, _rules(version, opt_in, packs), project_of(item, program, requirements))


def project_of(item: Document, program: str = "", requirements: str = "") -> Project:
    """The project of an example: itself, or the Python beside a file that is none, and its requirements."""
    facts = [scan_file(_NAME, program)] if item.type else [scan_file(item.name, item.text)]
    return replace(
        merge_facts(facts, files=[_NAME] if program else ()),
        added={EQUIVALENTS: EQUIVALENTS},
        places={item.name: Place("")},
        requirements=tuple(requirements.splitlines()),
        programs=of_text(_NAME, program) if program else None,
    )


@cache
def _rules(version: str, opt_in: bool, packs: tuple[str, ...]) -> Rules:
    """All rules, or all that are off until they are asked for."""
    asked_for = tuple(rule.code for rule in load_all(packs) if rule.opt_in) if opt_in else ("ALL",)
    return Rules(Settings(version, asked_for, rule_files=packs))
