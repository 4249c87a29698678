"""Dotted patterns against dotted names, and which rule a name belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from migrator.matchers.packs import OptionsOf, Rule


@cache
def pattern_fits(pattern: str, name: str) -> bool:
    """Whether ``torch.cuda.*`` fits ``torch.cuda.amp.autocast``.

    A ``*`` at the end stands for the name itself and everything below it;
    elsewhere for exactly one component, and behind a beginning (``_cuda_*``) for
    the rest of one.
    """
    wanted, have = pattern.split("."), name.split(".")
    for place, part in enumerate(wanted):
        if part == "*" and place == len(wanted) - 1:
            return True
        if place >= len(have):
            return False
        begins = part.endswith("*") and have[place].startswith(part[:-1])
        if not begins and part != have[place]:
            return False
    return len(have) == len(wanted)


def rule_of(rules: Iterable[Rule[OptionsOf]], name: str) -> Optional[Rule[OptionsOf]]:
    """The rule that a name belongs to: the most specific one, and of several the first in ``rules``."""
    return min((rule for rule in rules if rule.fits(name)), key=lambda rule: rank(rule, name), default=None)


def rank(rule: Rule, name: str) -> tuple[int, bool]:
    """How specific a rule is for a name, by the length of its pattern: the most specific one comes first."""
    pattern = fitting(rule.match, rule.excluded, name)
    return -len(pattern.replace("*", "").rstrip(".")), "*" in pattern


@cache
def fitting(patterns: tuple[str, ...], excluded: tuple[str, ...], name: str) -> str:
    """The longest of the patterns that fits a name; empty where none does, or one that is excluded."""
    if any(pattern_fits(pattern, name) for pattern in excluded):
        return ""
    # Most patterns have no star: to compare them here takes a fifth of the time.
    fit = (each for each in patterns if each == name or ("*" in each and pattern_fits(each, name)))
    return max(fit, key=lambda pattern: len(pattern.replace("*", "").rstrip(".")), default="")
