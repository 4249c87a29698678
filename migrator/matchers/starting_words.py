"""The words from which rules start: a file without any is never parsed for them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Callable, Optional

from migrator.api_support import env_vars
from migrator.matchers.packs import Rule
from migrator.names.written_names import Written, may_give

_WORD = re.compile(r"[^\W\d]\w*")


def _programs() -> Iterable[str]:
    from migrator.api_support.libraries import programs  # of other files: a hook does not ask

    return programs()


_KNOWN: dict[str, Callable[[], Iterable[str]]] = {
    "env_vars": env_vars.known,
    "program_options": _programs,
    "torch_apis": lambda: {"torch"},
    "torch_names": lambda: {"torch", "torchvision"},
    "npu_names": lambda: {"npu", "torch_npu"},
    "training_loops": lambda: {"backward", "step", "training_step"},
}
# Conditions that hold only where an argument is written; a capital stands for a part of it.
_ASKED = re.compile(r"(?:^|\band )\s*(?:not off|given|value|written)\('(?![A-Z]')(\w+)'")
_CALLED = re.compile(r"(?<!\w)([^\W\d]\w*)\(")


def starting_words(rule: Rule) -> frozenset[str]:
    """The words of which a file must hold one for a rule to match in it.

    Those of operators and libraries are known when the project is, and none here; of the torch APIs that a
    verdict is passed on, or that a version does not have, the texts say more: ``core.rules``.
    """
    source = rule.finder.words_from
    if source in _KNOWN:
        return frozenset(_KNOWN[source]())
    return frozenset() if source else frozenset(rule.words or _derived(rule))


def line_words(rule: Rule) -> frozenset[str]:
    """The words with which a statement is looked at in a file in which a rule starts."""
    by_names = rule.words and not {"string", "expression"}.issuperset(rule.on)
    elsewhere = by_names or rule.finder.words_from == "training_loops"
    more = map(last_part, rule.match) if elsewhere else ()
    return frozenset((*rule.options.line_words, *more))


def written_as(rule: Rule) -> Optional[Callable[[Written, str], bool]]:
    """How a text has to show a word from which a rule starts; None where it may stand anywhere."""
    goes_by = rule.finder.goes_by
    if goes_by == "packages":
        return Written.may_import
    if rule.on == ("string",):
        marks = "\"'" if rule.where.startswith("whole() and ") else ("",)
        phrases = [f"{mark}{phrase}{mark}" for phrase in rule.match for mark in marks]
        own = {word: [each for each in phrases if word in each] for word in _derived(rule) - {*rule.words}}
        return lambda written, word: any(each in written.text for each in own.get(word, phrases))
    if rule.kind == "string":  # many a comment speaks of CUDA
        return lambda written, word: (
            not word.isupper() or any(f"{mark}{word}" in written.text for mark in "\"'")
        )
    if calls := rule.given.get("only_given"):
        return lambda written, word: word not in calls or written.is_given(word)
    # Words of other things than names are written elsewhere, too: an argument's.
    if goes_by != "names" or not starting_words(rule) <= set(".".join(rule.match).split(".")):
        return None
    return Written.may_end_torch if roots(rule) == {"torch"} else Written.may_end


def may_be_given(rule: Rule, text: str) -> bool:
    """Whether a text may have a call with each argument that a rule's ``where`` asks for in any case."""
    open_ends = " or " in rule.where or any(name.endswith("*") for name in rule.match)
    asked = () if rule.on != ("call",) or open_ends else _ASKED.findall(rule.where)
    names = set(map(last_part, rule.match)) if asked else set()
    # A method is not given what it belongs to.
    places = [(each, (at := rule.positions.get(each)) and at - ("self" in rule.positions)) for each in asked]
    return all(any(may_give(text, name, [argument], at) for name in names) for argument, at in places)


def roots(rule: Rule) -> frozenset[str]:
    """The packages of all names that a rule goes by; empty where it may find others, too."""
    if rule.finder.goes_by not in ("names", "packages") or not rule.finder.takes_match:
        return frozenset()
    first = frozenset([pattern.partition(".")[0] for pattern in rule.match])
    return first if all(map(str.isidentifier, first)) else frozenset()


def _derived(rule: Rule) -> set[str]:
    """What stands in a file wherever ``match`` or an option of the rule fits."""
    if "string" in rule.on:
        return {word.group() for phrase in rule.match if (word := _WORD.search(phrase))}
    if rule.kind == "setting" and rule.options.values:
        return {word for value in rule.options.values for word in _WORD.findall(value)[:1]}
    if rule.kind in ("requirement", "image"):  # of flash-attn the first word, of nvidia-* that
        known = rule.options.packages if rule.kind == "requirement" else rule.options.images
        return {word for name in known for word in _WORD.findall(name)[:1]}
    if rule.kind == "import":
        return {pattern.partition(".")[0] for pattern in rule.match}
    if rule.kind == "pattern":
        given = rule.given.get("definitions", [])  # most files need none of the code for these rules
        defined: list[str] = [given] if isinstance(given, str) else given
        names = {definition.partition(" ")[2].strip("*") for definition in defined}
        return names.union(*map(_CALLED.findall, rule.match)) - {"within"}
    return set(map(last_part, rule.match))


def last_part(pattern: str) -> str:
    """The last part of a dotted pattern that is not left open."""
    last = pattern.rpartition(".")[2]
    if last and "*" not in last:  # most are so, and each rule is asked at every start
        return last
    return [part for part in pattern.split(".") if part and "*" not in part][-1]
