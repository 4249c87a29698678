"""Which functions of a library cannot work on an NPU, which may, and by what way they come to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from migrator.analyze.third_party.steps import GUARDS, Condition, Place, Steps, Use, can_end_well, places
from migrator.findings.finding import Finding
from migrator.light import Frozen
from migrator.project.call_graph import Callees, CallGraph, Key
from migrator.report.csv_tables import with_advice

# It cannot work; it may not, and what calls it may not either; nobody knows, which says nothing of its
# callers; it works once it is migrated.
_MUST, _MAY, _DOUBT, _MIGRATE = "must", "may", "doubt", "migrate"
_STOPPING = ("blocker", "error")
_MEANING = {"blocker": _MUST, "error": _MUST, "warning": _MAY, "info": _MIGRATE}
_LIBRARY_IMPORTS = ("NPU60", "NPU61")
_OPERATORS = "NPU65"


class Reason(Frozen):
    """What a function comes to: an API or operator, with its message."""

    api: str
    kind: str  # api | cuda
    status: str
    tips: str


class Link(Frozen):
    """One step of the way: in ``key`` at ``line``, to the function ``after`` or else to the reason."""

    key: Key
    line: int
    after: Key | None
    reason: Reason | None
    condition: str = ""


class Verdict(Frozen):
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


class Judge:
    """Gives the verdict on each function (and module: its own statements) of which there is something to say.

    ``findings`` are the rules' findings by module, in the order to which the uses in the ``steps`` refer.
    """

    def __init__(
        self, library: CallGraph, steps: Mapping[Key, Steps], findings: Mapping[str, Sequence[Finding]]
    ) -> None:
        self.library, self.steps, self.findings = library, steps, findings
        # The names that a file imports from libraries that are made for CUDA.
        self.prefixes = {
            module: {
                name: finding
                for finding in found
                if finding.code.startswith(_LIBRARY_IMPORTS) and finding.severity in _STOPPING
                for name in finding.api.split(", ")
            }
            for module, found in findings.items()
        }
        self.callees: dict[tuple[Key, Use], Callees] = {}
        self.reasons: dict[tuple[Key, Use], tuple[str, Reason]] = {}
        self.state: dict[Key, str] = {}
        self.link: dict[Key, Link] = {}
        self.callers: dict[Key, set[Key]] = {}
        self.decorating: dict[Key, list[Use]] = {}
        named = [(module, name) for module, facts in library.modules.items() for name in facts.definitions]
        self.places = {key: self._places(key) for key in named if library.kind(key) != "class"}

    def _places(self, key: Key) -> list[Place]:
        # What stands around a function is run with it: the function that its decorator gives.
        function = self.library.definition(key)
        around = self.decorating[key] = []
        for decorator in function.decorators:
            for module, name in chain.from_iterable(self.library.callees((key[0], ""), decorator)):
                for given in self.library.definition((module, name)).returned:
                    around.append(Use(function.line, f"@{decorator}"))
                    self._calls(key, around[-1], [[(module, given)]])
        found = list(places(self.steps[key]))
        for use in (place.use for place in found):
            if use.reason >= 0:
                reason = _reason(self.findings[key[0]][use.reason], use.called)
                if reason is not None:
                    self.reasons[key, use] = reason
            elif use.target and (key, use) not in self.callees:
                callees = self.library.callees(key, use.target)
                if callees:
                    self._calls(key, use, callees)
                    continue
                full = name = self.library.outside_name(key, use.target)
                while name and name not in self.prefixes.get(key[0], ()):
                    name = name.rpartition(".")[0]
                if name:
                    begun = self.prefixes[key[0]][name]
                    tips = with_advice(begun.message, begun.advice)
                    self.reasons[key, use] = _MUST, Reason(full, "cuda", "unsupported", tips)
        return [*found, *map(Place, around)]

    def _calls(self, key: Key, use: Use, callees: Callees) -> None:
        self.callees[key, use] = callees
        for callee in self._called(key, use):
            self.callers.setdefault(callee, set()).add(key)

    def _called(self, key: Key, use: Use) -> list[Key]:
        """All that a use may call, whatever the alternative."""
        return [*chain.from_iterable(self.callees.get((key, use), ()))]

    # -- the spread of what cannot work -------------------------------------------

    def verdicts(self) -> dict[Key, Verdict]:
        """Spread what is known from the reasons to the callers, the nearest first."""
        for word, link_of in ((_MUST, self._must), (_MAY, self._may)):
            waiting = list(self.places)
            while waiting:
                links = ((key, link_of(key)) for key in waiting if key not in self.state)
                marked = {key: link for key, link in links if link is not None}
                self.state.update(dict.fromkeys(marked, word))
                self.link.update(marked)
                waiting = sorted({caller for key in marked for caller in self.callers.get(key, ())})
        found: dict[Key, Verdict] = {}
        for key in self.places:
            if key in self.state:
                word = "unsupported" if self.state[key] == _MUST else "unknown"
                verdict = self._verdict(word, self.link[key])
            else:
                verdict = self._migrated(key)
            if verdict is not None:
                found[key] = verdict
        return found

    def _verdict(self, word: str, link: Link) -> Verdict | None:
        way = [link]
        while link.after is not None and link.after in self.link and len(way) < 50:
            link = self.link[link.after]
            way.append(link)
        return Verdict(word, link.reason, tuple(way)) if link.reason is not None else None

    def _must(self, key: Key) -> Link | None:
        uses = [place for place in self.places[key] if self._is_bad(key, place.use)]
        steps = (*self.decorating[key], *self.steps[key])
        if not uses or not can_end_well(steps) or can_end_well(steps, lambda use: self._is_bad(key, use)):
            return None
        return self._linked(key, min(uses, key=lambda place: len(place.conditions)))

    def _is_bad(self, key: Key, use: Use) -> bool:
        if self.reasons.get((key, use), ("",))[0] == _MUST:
            return True
        callees = self.callees.get((key, use), [])
        return bool(callees) and all(
            any(self.state.get(callee) == _MUST for callee in alternative) for alternative in callees
        )

    def _may(self, key: Key) -> Link | None:
        for place in self.places[key]:
            use, conditions = place.use, place.conditions
            reasoned = self.reasons.get((key, use), ("",))[0]
            harms = reasoned in (_MUST, _MAY) or any(self._counts(key, one) for one in self._called(key, use))
            if harms and not place.guarded:
                return self._linked(key, place, conditions[-1:])
        return None

    def _counts(self, key: Key, callee: Key) -> bool:
        """Whether a callee's state says something of its caller.

        What depends on a condition is reported of the callers in the same file. Further on it would be
        reported of half a library, because of an option of one layer that nobody sets.
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
        guarded = (place for place in self.places[key] if place.guarded and self._is_bad(key, place.use))
        links = (
            self._linked(key, place, [c for c in place.conditions if c.guard in GUARDS][:1])
            for place in guarded
        )
        return next(filter(None, (self._verdict("migration_needed", link) for link in links)), None)

    def _linked(self, key: Key, place: Place, conditions: Sequence[Condition] = ()) -> Link:
        file = self.library.modules[key[0]].file
        condition = "; ".join(f"{each.text} ({file}:{each.line})" for each in conditions)
        word, reason = self.reasons.get((key, place.use), ("", None))
        if word in (_MUST, _MAY):
            return Link(key, place.use.line, None, reason, condition)
        callees = self._called(key, place.use)
        after = next((c for c in callees if self.state.get(c) == _MUST), None)
        after = after or next((c for c in callees if self._counts(key, c)), None)
        return Link(key, place.use.line, after, None, condition)


def _reason(finding: Finding, called: bool) -> tuple[str, Reason] | None:
    """What a finding means for the function that it is in: must, may or migrate; None for nothing.

    The documents call APIs unsupported that nobody tried (``torch.nn.MaxPool2d``): alone they prove nothing.
    """
    kind = "cuda" if finding.code.startswith((_OPERATORS, *_LIBRARY_IMPORTS)) else "api"
    reason = Reason(finding.api, kind, finding.status, with_advice(finding.message, finding.advice))
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
