"""Rules with ``on``: what their first case that holds says of each use of an API."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Rule
from migrator.matchers.query.parsing import Case
from migrator.matchers.query.uses import Use, filled, uses


def find(context: FileContext, rules: list[Rule]) -> Iterator[Match]:
    """What the rules say of the uses of their APIs."""
    done: set[tuple[str, ast.AST | None]] = set()
    for use in uses(context, rules):
        plan, place = use.rule.plan, _place(use)
        if place not in done and plan.where(use):
            case = next((each for each in plan.cases if each.where(use)), None)
            if case is not None and not case.says.skip:
                done.add(place)
                yield _match(use, case)


def _place(use: Use) -> tuple[str, ast.AST | None]:
    """What has one finding of a rule: the use, its function or the file; of all rules a string has one."""
    if use.on == "string":
        return "", use.node
    if use.rule.once == "file":
        return use.rule.code, None
    function = use.index.function_of(use.node) if use.rule.once == "function" else None
    return use.rule.code, function or use.node


def _match(use: Use, case: Case) -> Match:
    made, says = [action(use) for action in case.do], case.says
    edits = [edit for each in made for edit in each or ()] if None not in made else []
    api = filled(use, says.api)
    fields = {**says.fields, "api": api}
    match = found(
        use.context,
        use.rule,
        (use.argument(says.at) if says.at else None) or use.node,
        api=api,
        edits=sorted(edits),
        message=filled(use, says.message or use.rule.message, fields),
        advice=filled(use, says.advice or use.rule.advice, fields),
        severity=says.severity,
        safety=says.fix,
        form=("function" if use.api.startswith(".") else "torch") if use.on in ("call", "decorator") else "",
    )
    if case.inserts and match.finding.fix is not None:
        match = match._replace(
            finding=match.finding._replace(fix=match.finding.fix._replace(operation="INSERT"))
        )
    return match
