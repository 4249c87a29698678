"""Rules about some versions of a library: what they find depends on the version that the project asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Optional

from migrator.core.fix_guards import without_fix
from migrator.core.rules import Rules
from migrator.language import _
from migrator.matchers.context import Match
from migrator.project.project import Project


def of_wanted_versions(matches: list[Match], rules: Rules, project: Project) -> Iterator[Match]:
    """The matches without those for versions that the project does not ask for.

    Where its requirements allow such versions and others, or name none, they are reported without a fix.
    """
    for item in matches:
        library = rules.every[item.finding.code].library
        holds = _holds(library, project.requirements) if library else True
        if holds:
            yield item
        elif holds is None and item.edits:
            reason = _("the requirements do not say whether it is {library}", library=library)
            yield without_fix(item, reason, "warning")
        elif holds is None:
            yield item


def _holds(library: str, requirements: tuple[str, ...]) -> Optional[bool]:
    """Whether the requirements ask for a version such as ``transformers <4.51``; None where that is open."""
    if not requirements:
        return None
    from migrator.project.wanted_versions import limits_hold, wanted_of

    name, conditions = library.split(" ", 1)
    limits = wanted_of(requirements, frozenset({name})).get(name)
    return None if limits is None else limits_hold(conditions, limits)
