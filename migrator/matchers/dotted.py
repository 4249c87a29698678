"""Dotted patterns against dotted names."""

from __future__ import annotations

from functools import cache

from migrator.matchers.packs import Rule


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


def rule_fits(rule: Rule, name: str) -> bool:
    """Whether a rule's ``match`` fits a qualified name, and its ``except`` does not."""
    return any(pattern_fits(pattern, name) for pattern in rule.match) and not any(
        pattern_fits(pattern, name) for pattern in rule.excluded
    )
