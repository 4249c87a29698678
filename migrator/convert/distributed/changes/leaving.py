"""The ranks leave a loop, and skip a batch, together: where a condition may differ, they ask each other."""

from __future__ import annotations

import ast
from typing import Any

from migrator.convert.distributed.changes.metrics import report_share
from migrator.convert.distributed.find.conditions import guards
from migrator.convert.distributed.find.training import Training, feeds
from migrator.convert.draft import DIST, Draft
from migrator.convert.program import File, Program
from migrator.convert.syntax import LOOPS, Loop, dotted, is_stored, walk_all
from migrator.findings.finding import Edit
from migrator.language import _


def leave_together(program: Program, draft: Draft, found: list[Training]) -> None:
    """Plan it for what leaves the loops over epochs and over batches, and skips a batch."""
    for training in found:
        file, loop = training.file, training.batches
        of_batches = feeds(program, training)
        _agree(draft, file, [test for test in _tests(file, loop) if of_batches(test)])
        around = [one for one in guards(file, training.backward, loop) if of_batches(one[0])]
        where = training.scopes[0][0]
        _agree(draft, where, [test for test, wanted in around if not wanted])
        _agree(draft, where, [test for test, wanted in around if wanted], "not ")
        if training.epochs:
            file, loop = training.epochs.file, training.epochs.loop
            changing = _changing(file, loop)
            tests = [test for test in _tests(file, loop) if changing & set(map(_base, ast.walk(test)))]
            _agree(draft, file, tests)
            own = feeds(program, training, _reduced(draft, training))
            for name in dict.fromkeys(dotted(node) for test in tests for node in ast.walk(test) if own(node)):
                if name:
                    report_share(draft, training, name)


def _reduced(draft: Draft, training: Training) -> set[str]:
    """What is of all ranks behind a loop over batches."""
    lines = draft.of(training.file).after.get(training.batches, [])
    return {line.strip().partition(" = sum_over_ranks")[0] for line in "\n".join(lines).split("\n")}


def _agree(draft: Draft, file: File, tests: list[ast.expr], before: str = "") -> None:
    """Plan it for conditions that have to hold on one rank, or, with "not " before them, on all."""
    changes, index = draft.of(file), file.index
    for test in tests:
        head, tail = f"{before}on_any_rank({before}", ")"
        if before and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, head = test.operand, "on_any_rank("
        elif before:
            head, tail = f"{head}(", "))"
        start, end = index.span(test)
        if any(edit.start == start and "on_any_rank" in edit.text for edit in changes.edits):
            continue
        changes.edits += [Edit(start, start, head), Edit(end, end, tail)]
        draft.call(file, "on_any_rank", "import torch", DIST)
        draft.changed(file, test, _("the ranks take the same way"))


def _tests(file: File, loop: Loop) -> list[ast.expr]:
    """The conditions by which a loop is left, or the rest of a round is."""
    function = file.function_of(loop)
    found = [loop.test] if isinstance(loop, ast.While) else []
    for node in walk_all(loop.body):
        leaving = isinstance(node, (ast.Break, ast.Continue, ast.Return))
        if not leaving or file.function_of(node) is not function:
            continue
        around = list(file.above(node))
        inner = next(up for _, up in around if isinstance(up, (*LOOPS, ast.AsyncFor)))
        if inner is loop or isinstance(node, ast.Return):
            within = around[: next(place for place, (_, up) in enumerate(around) if up is loop)]
            found += [up.test for _, up in within if isinstance(up, ast.If)]
    return list({id(one): one for one in found}.values())


def _changing(file: File, loop: Loop) -> set[str]:
    """The names that a loop sets, counters aside, and what it calls: they may differ between ranks."""
    counters = {id(node) for node in ast.walk(loop.target)} if isinstance(loop, ast.For) else set()
    found = set()
    for node in walk_all(loop.body):
        up = file.parent(node)
        counts = isinstance(up, ast.AugAssign) and isinstance(up.value, ast.Constant) and up in loop.body
        if isinstance(node, ast.Call):
            found.add(_base(node.func))
        elif is_stored(node) and id(node) not in counters and not counts:
            found.add(_base(node))
    return found - {""}


def _base(node: Any) -> str:
    """The object that a name belongs to: ``stopper`` of ``stopper.stop``, ``self.stopper`` likewise."""
    parts = dotted(node).split(".")
    return ".".join(parts[:2]) if parts[0] == "self" else parts[0]
