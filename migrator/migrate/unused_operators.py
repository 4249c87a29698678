"""CUDA operators that the migrated project does not call on NPUs: their sources stop nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from migrator.core.rules import Rules
from migrator.findings.finding import Finding, Result
from migrator.language import _
from migrator.project.operators import Catalog, builds

_BUILT, _DEFINED, _USED = "NPU651", "NPU652", "NPU653"
_REPLACES = ("operator-function", "operator-form", "cuda-way")


def settled(
    results: Iterable[tuple[Result, bool]], operators: Catalog, rules: Rules
) -> Iterator[tuple[Result, bool]]:
    """Results and whether their files changed, where an extension without any use left is only an info.

    In a project with extensions the first comes after the last was read.
    """
    if not operators.modules or _USED not in rules.enabled:
        yield from results
        return
    every = [*results]
    replaced, used = set[str](), set[str]()
    for finding in (each for result, _changed in every for each in result.findings):
        if finding.code == _USED:  # an info where NPUs take another way
            (used if finding.severity != "info" else replaced).update(finding.api.split("."))
        elif finding.fixed and rules.every[finding.code].handler in _REPLACES:
            replaced.add(finding.api)
    gone, none_left = replaced - used, bool(replaced) and not used

    def less(finding: Finding, file: str) -> Finding:
        if finding.code not in (_BUILT, _DEFINED):
            return finding
        known = operators.extensions
        sources = (each for each in known.values() if builds(each, file))
        extensions = sources if finding.code == _DEFINED else filter(None, [known.get((file, finding.line))])
        names = {each.short for each in extensions}
        if not (none_left or (names and names <= gone)):
            return finding
        message = _("{message}; the project does not call it on NPUs", message=finding.message)
        return finding._replace(severity="info", message=message)

    for result, changed in every:
        yield result._replace(findings=tuple(less(each, result.name) for each in result.findings)), changed
