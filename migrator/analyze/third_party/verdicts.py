"""Which functions of a library cannot work on an NPU, which may, and by what way they come to that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from migrator.analyze.third_party.flow import GUARDS, Place, Steps, Use, can_end_well, places
from migrator.findings.finding import Finding
from migrator.project.call_graph import Callees, CallGraph, Key

# It cannot work; it may not, and what calls it may not either; nobody knows, which says nothing of its
# callers; it works once it is migrated.
_MUST, _MAY, _DOUBT, _MIGRATE = "must", "may", "doubt", "migrate"
_STOPPING = ("blocker", "error")
_MEANING = {"blocker": _MUST, "error": _MUST, "warning": _MAY, "info": _MIGRATE}
_LIBRARY_IMPORTS = ("NPU60", "NPU61")
_OPERATORS = "NPU65"


@dataclass(frozen=True)
class Reason:
    """What a function comes to: an API or operator, with what is said of it."""

    api: str
    kind: str  # api | cuda
    status: str
    tips: str


@dataclass(frozen=True)
class Link:
    """One step of the way: in ``key`` at ``line``, to the function ``after`` or else to the reason."""

    key: Key
    line: int
    after: Key | None
    reason: Reason | None
    condition: str = ""


@dataclass(frozen=True)
class Verdict:
    """What is known of one function.

    ``word`` is unsupported (every way through it that ends well needs something that is unsupported on NPUs),
    unknown (some ways do, or it is not known) or migration_needed (it works once it is migrated, or has
    another way where there is no CUDA). ``chain`` leads from the function to the reason.
    """

    word: str
    reason: Reason
    chain: tuple[Link, ...]

    @property
    def condition(self) -> str:
        """The conditions on the way, the first first."""
        return "; ".join(link.condition for link in self.chain if link.condition)


def judge(
    library: CallGraph, steps: Mapping[Key, Steps], findings: Mapping[str, Sequence[Finding]]
) -> dict[Key, Verdict]:
    """The verdict on each function (and module: its own statements) of which there is something to say.

    ``findings`` are the rules' findings by module, in the order to which the uses in the ``steps`` refer.
    """
    return _Judge(library, steps, findings).verdicts()


class _Judge:
    def __init__(
        self, library: CallGraph, steps: Mapping[Key, Steps], findings: Mapping[str, Sequence[Finding]]
    ) -> None:
        self.library = library
        self.steps = steps
        self.findings = findings
        self.prefixes = {module: _cuda_libraries(found) for module, found in findings.items()}
        self.keys = list(library.runnable())
        self.callees: dict[tuple[Key, Use], Callees] = {}
        self.reasons: dict[tuple[Key, Use], tuple[str, Reason]] = {}
        self.state: dict[Key, str] = {}
        self.link: dict[Key, Link] = {}
        self.callers: dict[Key, set[Key]] = {}
        self.places = {key: self._places(key) for key in self.keys}

    def _places(self, key: Key) -> list[Place]:
        found = list(places(self.steps[key]))
        found += [Place(use) for use in self._decorating(key)]
        for place in found:
            use = place.use
            if use.reason >= 0:
                reason = _reason(self.findings[key[0]][use.reason], use.called)
                if reason is not None:
                    self.reasons[key, use] = reason
            elif use.target:
                self._follow(key, use)
        return found

    def _decorating(self, key: Key) -> Iterator[Use]:
        """What stands around a function is run with it: the function that its decorator gives."""
        function = self.library.definition(key)
        for decorator in function.decorators:
            for callees in self.library.callees((key[0], ""), decorator):
                for module, name in callees:
                    for given in self.library.definition((module, name)).returned:
                        use = Use(function.line, f"@{decorator}")
                        self.callees[key, use] = [[(module, given)]]
                        self.callers.setdefault((module, given), set()).add(key)
                        yield use

    def _follow(self, key: Key, use: Use) -> None:
        if (key, use) in self.callees:
            return
        callees = self.library.callees(key, use.target)
        if callees:
            self.callees[key, use] = callees
            for callee in self._called(key, use):
                self.callers.setdefault(callee, set()).add(key)
            return
        full = name = self.library.outside_name(key, use.target)
        known = self.prefixes.get(key[0], {})
        while name and name not in known:
            name = name.rpartition(".")[0]
        if name:
            self.reasons[key, use] = _MUST, Reason(full, "cuda", "unsupported", _tips(known[name]))

    def _called(self, key: Key, use: Use) -> list[Key]:
        """All that a use may call, whatever the alternative."""
        return [callee for alternative in self.callees.get((key, use), ()) for callee in alternative]

    # -- the spread of what cannot work -------------------------------------------

    def verdicts(self) -> dict[Key, Verdict]:
        """Spread what is known from the reasons to the callers, the nearest first."""
        self._spread(_MUST)
        self._spread(_MAY)
        found: dict[Key, Verdict] = {}
        for key in self.keys:
            if key in self.state:
                chain = self._chain(key)
                reason = chain[-1].reason
                if reason is not None:
                    found[key] = Verdict(
                        "unsupported" if self.state[key] == _MUST else "unknown", reason, chain
                    )
                continue
            migrated = self._migrated(key)
            if migrated is not None:
                found[key] = migrated
        return found

    def _spread(self, word: str) -> None:
        waiting = self.keys
        while waiting:
            marked = []
            for key in waiting:
                if key not in self.state:
                    link = self._must(key) if word == _MUST else self._may(key)
                    if link is not None:
                        marked.append((key, link))
            for key, link in marked:
                self.state[key] = word
                self.link[key] = link
            waiting = sorted({caller for key, _ in marked for caller in self.callers.get(key, ())})

    def _must(self, key: Key) -> Link | None:
        uses = [place for place in self.places[key] if self._is_bad(key, place.use)]
        if not uses:
            return None
        steps = (*self._decorating(key), *self.steps[key])
        if not can_end_well(steps) or can_end_well(steps, lambda use: self._is_bad(key, use)):
            return None
        return self._linked(key, min(uses, key=lambda place: len(place.conditions)), "")

    def _is_bad(self, key: Key, use: Use) -> bool:
        if self.reasons.get((key, use), ("",))[0] == _MUST:
            return True
        callees = self.callees.get((key, use), [])
        return bool(callees) and all(
            any(self.state.get(callee) == _MUST for callee in alternative) for alternative in callees
        )

    def _may(self, key: Key) -> Link | None:
        for place in self.places[key]:
            if place.guarded:
                continue
            use = place.use
            reasoned = self.reasons.get((key, use), ("",))[0]
            if reasoned in (_MUST, _MAY) or any(self._counts(key, each) for each in self._called(key, use)):
                asked = place.conditions[-1:] if self._is_bad(key, use) or place.conditions else ()
                file = self.library.modules[key[0]].file
                return self._linked(key, place, "; ".join(f"{c.text} ({file}:{c.line})" for c in asked))
        return None

    def _counts(self, key: Key, callee: Key) -> bool:
        """Whether a callee's state says something of its caller.

        What depends on a condition is told of the callers in the same file. Further on it would be
        told of half a library, because of an option of one layer that nobody sets.
        """
        state = self.state.get(callee)
        return state == _MUST or (state == _MAY and callee[0] == key[0])

    def _migrated(self, key: Key) -> Verdict | None:
        """What is doubtful, changed by a migration, or guarded by a test, in the function itself."""
        known = [(place, *self.reasons.get((key, place.use), ("", None))) for place in self.places[key]]
        for wanted, verdict in ((_DOUBT, "unknown"), (_MIGRATE, "migration_needed")):
            for place, word, reason in known:
                if word == wanted and reason is not None:
                    return Verdict(verdict, reason, (Link(key, place.use.line, None, reason),))
        for place, _, _ in known:
            if place.guarded and self._is_bad(key, place.use):
                file = self.library.modules[key[0]].file
                condition = next(c for c in place.conditions if c.guard in GUARDS)
                link = self._linked(key, place, f"{condition.text} ({file}:{condition.line})")
                chain = self._chain(key, link)
                if chain[-1].reason is not None:
                    return Verdict("migration_needed", chain[-1].reason, chain)
        return None

    def _linked(self, key: Key, place: Place, condition: str) -> Link:
        use = place.use
        reason = self.reasons.get((key, use))
        if reason is not None and reason[0] in (_MUST, _MAY):
            return Link(key, use.line, None, reason[1], condition)
        callees = self._called(key, use)
        after = next((c for c in callees if self.state.get(c) == _MUST), None)
        after = after or next((c for c in callees if self._counts(key, c)), None)
        return Link(key, use.line, after, None, condition)

    def _chain(self, key: Key, first: Link | None = None) -> tuple[Link, ...]:
        link = first or self.link[key]
        chain = [link]
        while link.after is not None and link.after in self.link and len(chain) < 50:
            link = self.link[link.after]
            chain.append(link)
        return tuple(chain)


def _reason(finding: Finding, called: bool) -> tuple[str, Reason] | None:
    """What a finding means for the function that it is in: must, may or migrate; None for nothing.

    The documents call APIs unsupported that nobody tried (``torch.nn.MaxPool2d``): alone they prove nothing.
    """
    kind = "cuda" if finding.code.startswith((_OPERATORS, *_LIBRARY_IMPORTS)) else "api"
    reason = Reason(finding.api, kind, finding.status, _tips(finding))
    if finding.safety:
        return _MIGRATE, reason
    if finding.code.startswith(_LIBRARY_IMPORTS):
        return (_MUST, reason) if finding.severity in _STOPPING else None
    if finding.code.startswith(_OPERATORS):
        return _MEANING[finding.severity], reason
    if finding.severity == "info" or not called:
        return None  # to import or mention a name does no harm
    if finding.status == "absent" or (finding.status == "unsupported" and finding.severity in _STOPPING):
        return _MUST, reason
    return (_DOUBT, reason) if finding.status in ("unsupported", "unknown") else None


def _cuda_libraries(findings: Sequence[Finding]) -> dict[str, Finding]:
    """The names that a file imports from libraries that are made for CUDA."""
    return {
        name: finding
        for finding in findings
        if finding.code.startswith(_LIBRARY_IMPORTS) and finding.severity in _STOPPING
        for name in finding.api.split(", ")
    }


def _tips(finding: Finding) -> str:
    return f"{finding.message.rstrip('.')}. {finding.advice}".strip() if finding.advice else finding.message
