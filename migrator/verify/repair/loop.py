"""Runs a program, repairs it by what the run showed, and runs it again until it ends well or no rule fits."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from migrator.core.changes import described, planned
from migrator.files.replacing import replace_file
from migrator.files.source import Lines, encode
from migrator.files.unified_diff import unified_diff
from migrator.findings.edits import OffsetMap, apply, in_order
from migrator.findings.finding import Finding, Fix
from migrator.language import _
from migrator.light import Frozen
from migrator.report.csv_tables import CHANGES, add_rows, row_of
from migrator.verify.diagnosis import Failure
from migrator.verify.repair.fixes import RuntimeRule, load_all, proposals
from migrator.verify.repair.site import Proposal, Seen
from migrator.verify.verdict import INTERRUPTED, NOT_COMPARED, NOT_ON_NPU, PASSED, Verdict

MOST_ROUNDS = 12
_PATIENCE = 300.0  # seconds without progress
_FOLDER = "repair"
_OF_OTHERS = ("ChildFailedError", "ProcessRaisedException", "ProcessExitedException")
_GONE = "its peers end"  # what the emulated HCCL says of a rank that has ended
_IN_SOURCE = "It is written in the source: a static rule could have seen it"
_TOLD = tuple("tensor module str device dtype NoneType int float bool list tuple dict".split())
_OF_A_CHANGE = {"TypeError", "AttributeError", "NameError", "UnboundLocalError"}


class Round(Frozen):
    """One change that was tried. ``kept``: the trouble was gone, or another one came."""

    number: int
    rule: RuntimeRule
    saw: str
    finding: Finding
    origin: str
    diff: str
    kept: bool = True


class Repaired(Frozen):
    """What came of it. ``left`` are five lines for a person, where the program still does not end well."""

    verdict: Verdict
    rounds: tuple[Round, ...]
    left: tuple[str, ...] = ()


class _Trouble(Frozen):
    """Why a run was not well: ``kind`` as in the signs of rules, and what was seen."""

    kind: str
    saw: str
    verdict: Verdict
    failures: tuple[Failure, ...] = ()  # the first one is the reason of the others

    @property
    def failure(self) -> Failure | None:
        """What there was first."""
        return next(iter(self.failures), None)

    def key(self, folder: Path) -> tuple[object, ...]:
        """Two runs with one key had the same trouble; a tenth more of the work on NPUs is another one."""
        if self.kind == "cpu":
            shares = (self.verdict.shares.forward or 0.0, self.verdict.shares.backward or 0.0)
            return (self.kind, *(int(10 * share + 0.5) for share in shares))
        if self.failure is None:
            waiting = self.seen(folder)[0].waiting()
            lines = {(frame.file, frame.function, frame.source) for _who, frame in waiting}
            return (self.kind, *(sorted(lines) or self.verdict.reasons[:2]))
        inner = [f"{frame.file}:{frame.function}:{frame.source}" for frame in self.failure.written[-2:]]
        return (self.kind, self.failure.type, *inner)

    def seen(self, folder: Path) -> list[Seen]:
        """What is known of each failure, or of the run; only files that were loaded have to do with it."""
        files = [file for process in self.verdict.processes for file in process.files]
        return [Seen(folder, each, self.verdict.course, files) for each in self.failures or (None,)]

    def fits(self, rule: RuntimeRule, failure: Failure | None) -> bool:
        """Whether a rule is about it."""
        return rule.signs.run == self.kind and (failure is None or rule.signs.fit(failure))


def repair(
    folder: Path,
    run: Callable[[], Verdict],
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
) -> Repaired:
    """Repair a migrated project in its folder; ``run`` runs the program and judges.

    Each fix is tried once. One after which the same trouble comes at the same place, or an earlier one, is
    taken back. Without progress for five minutes it ends with what it has learnt.
    """
    rules = load_all()
    tried, met, rounds = set[tuple[str, str, str]](), set[tuple[object, ...]](), list[Round]()
    verdict = run()
    progress = clock()
    while (trouble := _trouble(verdict)) is not None and verdict.outcome != INTERRUPTED:
        met.add(trouble.key(folder))
        late = clock() - progress > _PATIENCE
        more = len(rounds) < MOST_ROUNDS and not late
        found = next(_proposals(rules, trouble, folder, tried), None) if more else None
        if found is None:
            left = [*_left(rules, trouble, trouble.seen(folder)[0])]
            left += [_("ended:  no progress for five minutes")] if late else []
            return Repaired(verdict, tuple(rounds), tuple(left))
        rule, proposal, text = found
        made = _round(len(rounds) + 1, rule, proposal, text, trouble)
        place = f"{made.finding.file}:{made.finding.line}"
        say(_("round {number}: {its.code} {place}: {its.message}", number=made.number, its=rule, place=place))
        before = proposal.code.path.read_bytes()
        replace_file(proposal.code.path, encode(proposal.code.origin, text.decode("utf-8")))
        try:
            verdict = run()
        except KeyboardInterrupt:  # before its processes begin, or after their end
            verdict = replace(verdict, outcome=INTERRUPTED, reasons=(_("the run was interrupted"),))
        after = _trouble(verdict)
        stays = verdict.outcome != INTERRUPTED  # nor does a change stay that was not tried to the end
        if stays and after is not None and (after.key(folder) in met or _is_of_change(after, trouble, made)):
            say(_("round {number}: the same failure again; change reverted", number=made.number))
            stays, verdict = False, trouble.verdict  # what is known of the program without the change
        if stays:
            progress = clock()
        else:
            replace_file(proposal.code.path, before)
        rounds.append(replace(made, kept=stays))
    return Repaired(verdict, tuple(rounds))


def _is_of_change(trouble: _Trouble, before: _Trouble, made: Round) -> bool:
    """Whether the changed lines fail as they did before, or with an error that the change has made."""
    now, then, fix = trouble.failure, before.failure, made.finding.fix
    frames = now.frames[::-1] if now else ()
    own = next((each for each in frames if each.file.endswith(f"/{made.finding.file}")), None)
    if own is None or now is None or fix is None:
        return False
    wrong = bool(_OF_A_CHANGE & set(now.kinds))
    if then is not None and then.type == now.type:
        # The same message, without what CANN adds to it: times and numbers of processes.
        wrong = len({each.text.partition("[ERROR]")[0].strip() for each in (then, now)}) == 1
    begin, end = made.finding.lines
    return wrong and begin <= own.line <= end + fix.after.count("\n")


def _trouble(verdict: Verdict) -> _Trouble | None:
    course = verdict.course
    if verdict.outcome in (PASSED, NOT_COMPARED) and not course.lost:
        return None
    if verdict.ended.code and course.failures and not verdict.ended.timed_out:
        # What was there first: not what a process says of those that it has started, nor, if there is
        # another one, that a rank waited for one that has gone.
        own = [each for each in course.failures if each.type not in _OF_OTHERS] or course.failures
        first, *others = sorted(own, key=lambda each: _GONE in each.text)
        kind = "waits" if _GONE in first.text else "failure"
        return _Trouble(kind, f"{first.who}: {first.line}", verdict, (first, *others))
    if verdict.ended.still:
        return _Trouble("waits", "; ".join(course.lack.lines) if course.lack else _("it waits"), verdict)
    if course.lost:
        return _Trouble("lost", course.lost[0].line, verdict, course.lost)
    kind = "cpu" if verdict.outcome == NOT_ON_NPU else "other"
    return _Trouble(kind, "; ".join(verdict.reasons) or verdict.outcome, verdict)


def _proposals(
    rules: Sequence[RuntimeRule], trouble: _Trouble, folder: Path, tried: set[tuple[str, str, str]]
) -> Iterator[tuple[RuntimeRule, Proposal, bytes]]:
    """The changes that fit and were not tried; the text is the file's next one, and can be parsed."""
    every = ((rule, seen) for seen in trouble.seen(folder) for rule in rules if rule.fix)
    for rule, seen in (each for each in every if trouble.fits(each[0], each[1].failure)):
        for proposal in proposals(rule, seen):
            code = proposal.code
            edited = [code.lines.line_of(edit.start) for edit in proposal.edits]
            key = (rule.code, code.name, f"{edited} {[edit.text for edit in proposal.edits]}")
            if key in tried:
                continue
            tried.add(key)
            text = apply(code.lines.data, proposal.edits)
            try:
                ast.parse(text)
            except SyntaxError:
                continue
            if text != code.lines.data:
                yield rule, replace(proposal, edits=in_order(proposal.edits)), text


def _round(number: int, rule: RuntimeRule, proposal: Proposal, text: bytes, trouble: _Trouble) -> Round:
    code, edits = proposal.code, tuple(proposal.edits)
    came = _(" It came from {origin}.", origin=proposal.origin) if proposal.origin else ""
    if isinstance(proposal.node, ast.Constant):
        came += f" {_IN_SOURCE}."
    span = code.span(proposal.node)
    finding = Finding(
        rule.code,
        f"{rule.message}: {trouble.saw}. {proposal.evidence}.{came}",
        *code.lines.ends(span),
        "error",
        rule.name,
        advice=rule.advice,
        fix=Fix(edits, "unsafe", message=rule.message),
        span=span,
        file=code.name,
    )
    change, way = planned(finding, finding, code.lines, OffsetMap()), OffsetMap().then(edits)
    finding = described(change, code.lines, Lines(text.decode("utf-8")), way)
    diff = unified_diff(code.name, code.lines.data, text).decode("utf-8")
    return Round(number, rule, trouble.saw, finding, proposal.origin, diff)


def _left(rules: Sequence[RuntimeRule], trouble: _Trouble, seen: Seen) -> Iterator[str]:
    """What was seen, where, what the values were, where these came from, what to write."""
    course = trouble.verdict.course
    yield f"saw:    {trouble.saw}"
    site = next(iter(seen.sites()), None)
    values = site.values(*_TOLD) if site else []
    places = [f"{who} at {Path(frame.file).name}:{frame.line}" for who, frame in seen.waiting()]
    where = site.code.place(site.statement) if site else "; ".join(places)
    shown = [f"{ast.unparse(node)} {_value(value)}" for node, value in values[:4]]
    yield f"where:  {where or 'no line of the project'}"
    yield f"values: {'; '.join(shown)}" if shown else _("values: none recorded")
    yield f"from:   {site.origin(values[0][0]).line}" if site and values else _("from:   unknown")
    advice = next((rule.advice for rule in rules if rule.advice and trouble.fits(rule, seen.failure)), "")
    advice = advice or (course.lack.advice if course.lack else "")
    yield f"write:  {advice or 'no known fix: see the location above'}"


def _value(value: Mapping[str, Any]) -> str:
    if value["kind"] == "tensor":
        return f"({value['dtype']} on {value['device']}, {value['shape']})"
    return f"({value.get('value', value.get('class', value['kind']))})"


# -- what it leaves in the reports -----------------------------------------------------


def record(reports: Path, repaired: Repaired) -> None:
    """Add the changes to the migration's table, and each round's diff to its reports. Raises CannotWrite."""
    folder = reports / _FOLDER
    folder.mkdir(exist_ok=True)
    begun = len(list(folder.glob("round_*.diff")))
    for each in repaired.rounds:
        name = f"round_{begun + each.number:02}{'' if each.kept else '_taken_back'}.diff"
        replace_file(folder / name, each.diff.encode("utf-8", "backslashreplace"))
    add_rows(reports, CHANGES, (row_of(one.finding.file, one.finding) for one in repaired.rounds if one.kept))


def as_json(repaired: Repaired) -> dict[str, Any]:
    """The repair for the JSON file of ``verify``."""
    rounds = [
        {
            "round": each.number,
            "rule": each.finding.code,
            "name": each.rule.name,
            "file": each.finding.file,
            "line": each.finding.line,
            "saw": each.saw,
            "came_from": each.origin,
            "change": each.rule.message,
            "kept": each.kept,
            "diff": each.diff,
        }
        for each in repaired.rounds
    ]
    return {"rounds": rounds, "left": repaired.left}


def lines(repaired: Repaired) -> list[str]:
    """What was done and what is left, for the terminal."""
    found = (("kept" if one.kept else "taken back", one.finding, one.rule.message) for one in repaired.rounds)
    return [*(f"{kept}: {it.code} {it.file}:{it.line} {what}" for kept, it, what in found), *repaired.left]
