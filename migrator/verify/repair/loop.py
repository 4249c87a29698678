"""Runs a program, repairs it by what the run showed, and runs it again until it ends well or no rule fits."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from migrator.files.replacing import replace_file
from migrator.files.source import encode
from migrator.findings.edits import apply, in_order
from migrator.findings.finding import Finding, Fix
from migrator.language import _
from migrator.matchers.options import typed
from migrator.verify.diagnosis import Failure
from migrator.verify.repair.fixes import FIXES
from migrator.verify.repair.origins import origin
from migrator.verify.repair.proposal import Proposal, Seen
from migrator.verify.repair.rules import RuntimeRule, load_all
from migrator.verify.repair.site import Sources
from migrator.verify.verdict import INTERRUPTED, NOT_COMPARED, NOT_ON_NPU, PASSED, Verdict

MOST_ROUNDS = 12
_OF_OTHERS = ("ChildFailedError", "ProcessRaisedException", "ProcessExitedException")
_GONE = "its peers end"  # what the emulated HCCL says of a rank that has ended
_IN_SOURCE = "It is written in the source: a static rule could have seen it"
_TOLD = frozenset("tensor module str device dtype NoneType int float bool list tuple dict".split())


@dataclass(frozen=True)
class Round:
    """One change that was tried. ``kept``: the trouble was gone, or another one came."""

    number: int
    rule: RuntimeRule
    saw: str
    finding: Finding
    origin: str
    diff: str
    kept: bool = True


@dataclass(frozen=True)
class Repaired:
    """What came of it. ``left`` are five lines for a person, where the program still does not end well."""

    verdict: Verdict
    rounds: tuple[Round, ...]
    left: tuple[str, ...] = ()

    @property
    def kept(self) -> list[Round]:
        """The rounds whose change stayed."""
        return [each for each in self.rounds if each.kept]


def repair(folder: Path, run: Callable[[], Verdict], say: Callable[[str], None]) -> Repaired:
    """Repair a migrated project in its folder; ``run`` runs the program and judges.

    Each fix is tried once. One after which the same trouble comes at the same place is taken back.
    """
    rules = load_all()
    tried: set[tuple[str, str, str]] = set()
    rounds: list[Round] = []
    verdict = run()
    while len(rounds) < MOST_ROUNDS:
        trouble = _trouble(verdict)
        if trouble is None or verdict.outcome == INTERRUPTED:
            return Repaired(verdict, tuple(rounds))
        found = next(_proposals(rules, trouble, folder, tried), None)
        if found is None:
            break
        rule, proposal, text = found
        made = _round(len(rounds) + 1, rule, proposal, text, trouble)
        place = f"{made.finding.file}:{made.finding.line}"
        say(_("round {number}: {its.code} {place}: {its.message}", number=made.number, its=rule, place=place))
        before = proposal.code.path.read_bytes()
        _write(proposal, text)
        verdict = run()
        after = _trouble(verdict)
        if verdict.outcome == INTERRUPTED:  # the change is not tried
            replace_file(proposal.code.path, before)
            return Repaired(verdict, (*rounds, replace(made, kept=False)))
        if after is not None and (after.key == trouble.key or _is_of_the_change(after, trouble, made)):
            replace_file(proposal.code.path, before)
            made = replace(made, kept=False)
            say(_("round {number}: the same trouble again, the change is taken back", number=made.number))
        rounds.append(made)
    trouble = _trouble(verdict)
    left = () if trouble is None else tuple(_left(rules, trouble, folder))
    return Repaired(verdict, tuple(rounds), left)


def _is_of_the_change(trouble: _Trouble, before: _Trouble, made: Round) -> bool:
    """Whether the changed lines fail as they did before, or with an error that the change has made."""
    frames = trouble.failure.frames if trouble.failure else ()
    own = next((f for f in reversed(frames) if f.file.endswith(f"/{made.finding.file}")), None)
    if own is None or trouble.failure is None or made.finding.fix is None:
        return False
    wrong: object = {"TypeError", "AttributeError", "NameError", "UnboundLocalError"} & set(
        trouble.failure.kinds
    )
    if before.failure is not None and before.failure.type == trouble.failure.type:
        wrong = _said_first(before.failure) == _said_first(trouble.failure)
    first, last = made.finding.fix.lines or (0, 0)
    return bool(wrong) and first <= own.line <= last + made.finding.fix.after.count("\n")


def _said_first(failure: Failure) -> str:
    """A message without what CANN adds to it: times and numbers of processes."""
    return failure.text.partition("[ERROR]")[0].strip()


@dataclass(frozen=True)
class _Trouble:
    """Why a run was not well: ``kind`` as in the signs of rules, what was seen, and a key to know it by."""

    kind: str
    saw: str
    verdict: Verdict
    failure: Failure | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """Two runs with one key had the same trouble."""
        if self.failure is None:
            return (self.kind, *self.verdict.reasons[:2])
        written = self.failure.written[-2:]
        inner = [f"{frame.file}:{frame.function}:{frame.source}" for frame in written]
        return (self.kind, self.failure.type, *inner)


def _trouble(verdict: Verdict) -> _Trouble | None:
    course = verdict.course
    if verdict.outcome in (PASSED, NOT_COMPARED) and not course.lost:
        return None
    if verdict.ended.code and course.failures and not verdict.ended.timed_out:
        failure, waited = _first(course.failures)
        return _Trouble("waits" if waited else "failure", f"{failure.who}: {failure.line}", verdict, failure)
    if verdict.ended.still:
        return _Trouble("waits", "; ".join(course.lack.lines) if course.lack else _("it waits"), verdict)
    if course.lost:
        return _Trouble("lost", course.lost[0].line, verdict, course.lost[0])
    if verdict.outcome == NOT_ON_NPU:
        return _Trouble("cpu", "; ".join(verdict.reasons), verdict)
    return _Trouble("other", "; ".join(verdict.reasons) or verdict.outcome, verdict)


def _first(failures: Sequence[Failure]) -> tuple[Failure, bool]:
    """The failure that was there first, and whether it is only that a rank waited for one that has gone.

    Not what a process says of those that it has started.
    """
    own = [each for each in failures if each.type not in _OF_OTHERS] or list(failures)
    first = next((each for each in own if _GONE not in each.text), own[0])
    return first, _GONE in first.text


def _proposals(
    rules: Sequence[RuntimeRule], trouble: _Trouble, folder: Path, tried: set[tuple[str, str, str]]
) -> Iterator[tuple[RuntimeRule, Proposal, bytes]]:
    """The changes that fit and were not tried; the text is what becomes of the file, and can be parsed."""
    sources = Sources(folder)
    seen = Seen(sources, trouble.failure, trouble.verdict.course.stacks)
    for rule in rules:
        if not _fits(rule, trouble) or not rule.fix:
            continue
        fixer = FIXES[rule.fix]
        for proposal in fixer.propose(seen, typed(fixer.options, rule.options)):
            edited = [proposal.code.lines.place(edit.start)[0] for edit in proposal.edits]
            key = (rule.code, proposal.code.name, f"{edited} {[edit.text for edit in proposal.edits]}")
            if key in tried:
                continue
            tried.add(key)
            newline = "\r\n" if "\r\n" in proposal.code.text else "\n"
            edits = [edit._replace(text=edit.text.replace("\n", newline)) for edit in proposal.edits]
            text = apply(proposal.code.lines.data, edits)
            try:
                ast.parse(text)
            except SyntaxError:
                continue
            if text != proposal.code.lines.data:
                yield rule, proposal, text


def _fits(rule: RuntimeRule, trouble: _Trouble) -> bool:
    of_kind = rule.signs.run == trouble.kind
    return of_kind and (trouble.failure is None or rule.signs.fit(trouble.failure))


def _write(proposal: Proposal, text: bytes) -> None:
    """In the encoding of the file."""
    replace_file(proposal.code.path, encode(proposal.code.origin, text.decode("utf-8")))


def _round(number: int, rule: RuntimeRule, proposal: Proposal, text: bytes, trouble: _Trouble) -> Round:
    code = proposal.code
    start, end = code.start(proposal.node), code.end(proposal.node)
    edits = in_order(proposal.edits)
    first, last = code.lines.line_of(edits[0].start), code.lines.line_of(edits[-1].end)
    shift = len(text) - len(code.lines.data)
    begin, stop = code.lines.span(first, last)
    before = code.lines.data[begin:stop].decode("utf-8").strip()
    after = text[begin : stop + shift].decode("utf-8").strip()
    came = _(" It came from {origin}.", origin=proposal.origin) if proposal.origin else ""
    if isinstance(proposal.node, ast.Constant):
        came += f" {_IN_SOURCE}."
    line, column = code.lines.place(start)
    end_line, end_column = code.lines.place(end)
    finding = Finding(
        rule.code,
        f"{rule.message}: {trouble.saw}. {proposal.evidence}.{came}",
        line,
        column,
        end_line,
        end_column,
        "error",
        rule.name,
        advice=rule.advice,
        fix=Fix(
            tuple(edits),
            "unsafe",
            message=rule.message,
            made=True,
            before=before,
            after=after,
            lines=(first, last),
        ),
        span=(start, end),
        file=code.name,
    )
    diff = difflib.unified_diff(
        code.text.splitlines(keepends=True),
        text.decode("utf-8").splitlines(keepends=True),
        f"a/{code.name}",
        f"b/{code.name}",
    )
    return Round(number, rule, trouble.saw, finding, proposal.origin, "".join(diff))


def _left(rules: Sequence[RuntimeRule], trouble: _Trouble, folder: Path) -> Iterator[str]:
    """What was seen, where, what the values were, where these came from, what to write."""
    yield f"saw:    {trouble.saw}"
    failure = trouble.failure
    sources = Sources(folder)
    sites = sources.sites(failure.frames) if failure else []
    if not sites:
        own = [(stack, stack.own(folder)) for stack in trouble.verdict.course.stacks]
        places = [f"{s.who} at {Path(o[1].file).name}:{o[1].line}" for s, o in own if o is not None]
        yield f"where:  {'; '.join(places) or 'no line of the project is known'}"
        yield _("values: none were seen")
        yield _("from:   not known")
    else:
        site = sites[0]
        yield f"where:  {site.code.place(site.statement)}"
        values = [(node, value) for node, value in site.values() if value["kind"] in _TOLD]
        shown = [f"{ast.unparse(node)} {_value(value)}" for node, value in values[:4]]
        yield f"values: {'; '.join(shown) or 'none were seen'}"
        made = next((origin(site, node, sources) for node, _ in values), None)
        yield f"from:   {made.line if made else 'not known'}"
    advice = next((rule.advice for rule in rules if rule.advice and _fits(rule, trouble)), "")
    lack = trouble.verdict.course.lack
    yield f"write:  {advice or (lack.advice if lack else 'no rule knows this: look at the place above')}"


def _value(value: Mapping[str, Any]) -> str:
    if value["kind"] == "tensor":
        return f"({value['dtype']} on {value['device']}, {value['shape']})"
    return f"({value.get('value', value.get('class', value['kind']))})"
