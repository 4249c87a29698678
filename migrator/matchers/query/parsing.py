"""From the text of a condition or an action to what it asks or does; nothing of it is run by Python.

A condition is calls of what ``conditions`` has, joined by ``and``, ``or``, ``not``; an action is calls of
what ``actions`` has, joined by ``+``. All arguments are literals of the types that the functions declare.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import field
from functools import cache
from itertools import count
from types import FunctionType, ModuleType
from typing import Any, Literal, Optional

from migrator.findings.finding import Edit
from migrator.language import N_, _, did_you_mean
from migrator.light import Frozen, NamedTuple
from migrator.matchers.options import OptionError, check_expression, typed
from migrator.matchers.packs import Rule
from migrator.matchers.query import actions, conditions
from migrator.matchers.query.shapes import letters_of
from migrator.matchers.query.uses import FIELD, Use
from migrator.names.tree import summands

Test = Callable[[Use], bool]
Change = Callable[[Use], Optional[list[Edit]]]
_OF_CALLS = frozenset({"call", "base", "decorator"})
_LITERALS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("Argument", "Regex", "Shape", "Template", "str"), (str,)),
    "int": (int,),
    "Literal": (str, int, float, bool, type(None)),
}


class QueryError(ValueError):
    """A condition, an action or a case that cannot be used; ``keys`` are where it stands in the rule."""

    def __init__(self, text: str, *keys: str | int) -> None:
        super().__init__(text)
        self.keys = keys


class Fields(Frozen):
    """A case as a pack writes it: what it says is otherwise than in the rule.

    ``at`` is the argument at which it is reported, ``api`` what the finding calls the API, and ``fields`` are
    values of fields of the message and the advice.
    """

    where: str = ""
    do: tuple[str, ...] = ()
    skip: bool = False
    at: str = ""
    api: str = "{api}"
    message: str = ""
    advice: str = ""
    severity: Literal["", "blocker", "error", "warning", "info"] = ""
    fix: Literal["", "safe", "unsafe"] = ""
    fields: dict[str, str] = field(default_factory=dict)


class Case(NamedTuple):
    """A case: what it asks, what it writes, and what it says."""

    where: Test
    do: tuple[Change, ...]
    inserts: bool
    says: Fields


class Plan(NamedTuple):
    """A rule's condition and its cases."""

    where: Test
    cases: tuple[Case, ...]


def plan_of(rule: Rule) -> Plan:
    """The parsed condition and cases of a rule. Raises QueryError for what cannot be used."""
    if rule.cases and rule.do:
        raise QueryError(_("each case has its own 'do'"), "do")
    reader = _Reader(rule)
    if "expression" in rule.on:
        if not rule.words:
            said = _("the field 'words' is missing: the expression has no name to start from")
            raise QueryError(said, "match")
        for text in rule.match:
            reader.letters(text)
    where = reader.condition(rule.where, "where")
    given = rule.cases or ({"do": rule.do},)
    places = (("cases", number) if rule.cases else () for number in count())
    cases = [reader.case(each, *place) for each, place in zip(given, places)]
    for number, case in enumerate(cases):
        if not case.says.where and number + 1 < len(cases):
            raise QueryError(_("cases after this one are never reached: it has no 'where'"), "cases", number)
    if cases[-1].says.skip:
        raise QueryError(_("'skip' in the last case has no effect"), "cases", len(cases) - 1)
    acting = [case.says.fix or rule.fix for case in cases if case.do]
    if "none" in acting:
        raise QueryError(_("'do' needs a fix that is safe or unsafe"), "do")
    if rule.fix != "none" and not acting:
        raise QueryError(_("no case has 'do', so there is no fix"), "fix")
    last = max((place for place, name in enumerate(rule.args) if name in reader.used), default=-1)
    for name in rule.args[last + 1 :]:
        raise QueryError(_("the argument {name!r} is not used", name=name), "args")
    return Plan(where, tuple(cases))


class _Reader:
    """Reads the conditions and actions of a rule; ``used`` are the arguments that they name."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._place: tuple[str | int, ...] = ()
        self.used: set[str] = set()
        self._letters: set[str] = set()

    def case(self, case: dict[str, Any], *place: str | int) -> Case:
        """One case, which stands at a place of the rule."""
        try:
            says = typed(Fields, case)
        except OptionError as error:
            raise QueryError(str(error), *place, error.name) from None
        for name in case if says.skip else ():
            if name not in ("where", "skip"):
                raise QueryError(_("{name!r} has no effect beside 'skip'", name=name), *place, name)
        where = self.condition(says.where, *place, "where")
        self._place = (*place, "do")
        calls = [call for text in says.do for call in summands(self._parsed(text))]
        do = tuple(self._applied(actions, call) for call in calls)
        self._place = (*place, "at")
        if says.at:
            self._name(says.at)
        return Case(where, do, len(calls) == 1 and says.do[0].startswith("insert("), says)

    def condition(self, text: str, *place: str | int) -> Test:
        """A condition; without a text one that always holds."""
        self._place = place
        return self._test(self._parsed(text)) if text else lambda use: True

    def _test(self, node: ast.expr) -> Test:
        if isinstance(node, ast.BoolOp):
            tests = [self._test(each) for each in node.values]
            every = all if isinstance(node.op, ast.And) else any
            return lambda use: every(test(use) for test in tests)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._test(node.operand)
            return lambda use: not inner(use)
        return self._applied(conditions, node)

    def _wrong(self, text: str) -> QueryError:
        return QueryError(text, *self._place)

    def _parsed(self, text: str) -> ast.expr:
        code = " ".join(text.split())
        try:
            return ast.parse(code, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            column = getattr(error, "offset", 1) or len(code) + 1  # what is missing is missing at the end
            reason = getattr(error, "msg", error)
            raise self._wrong(_("column {column}: {error}", column=column, error=reason)) from None

    def _applied(self, module: ModuleType, node: ast.expr) -> Callable[[Use], Any]:
        """The call of a condition or an action as a function of the use that is looked at."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
            raise self._unfit(node)
        known, name = functions(module), node.func.id
        if name not in known:
            action, condition = N_("unknown action {name!r}{near}"), N_("unknown condition {name!r}{near}")
            said = condition if module is conditions else action
            raise self._wrong(_(said, name=name, near=did_you_mean(name, known)))
        signature = known[name]
        if signature.of_calls and not _OF_CALLS.issuperset(self._rule.on):
            on = ", ".join(self._rule.on)
            raise self._wrong(_("{name} needs a call, and the rule is on {on}", name=name, on=on))
        given = [self._literal(each) for each in node.args]
        least = len(signature.types) + bool(signature.rest)
        if len(given) < least or (len(given) > least and not signature.rest):
            said = N_("{name} takes {number} arguments, not {given}")
            raise self._wrong(_(said, name=name, number=least, given=len(given)))
        types = signature.types + [signature.rest] * (len(given) - len(signature.types))
        for value, wanted in zip(given, types):
            self._check(name, value, wanted)
        if name == "declared":
            self.used.update(self._rule.args)
        return lambda use: signature.function(use, *given)

    def _literal(self, node: ast.expr) -> Any:
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            raise self._unfit(node) from None

    def _unfit(self, node: ast.expr) -> QueryError:
        about = {"column": node.col_offset + 1, "code": ast.unparse(node)}
        return self._wrong(_("column {column}: {code!r} is not a condition or an action", **about))

    def _check(self, name: str, value: Any, wanted: str) -> None:
        if type(value) not in _LITERALS[wanted]:
            said = N_("{name}: {value!r} is not of type {wanted}")
            raise self._wrong(_(said, name=name, value=value, wanted=wanted))
        if wanted == "Argument":
            self._name(value)
        elif wanted == "Shape":
            self.letters(value)
        elif wanted == "Template":
            self.used.update(FIELD.findall(value))
        elif wanted == "Regex":
            try:
                check_expression(name, value)
            except OptionError as error:
                raise self._wrong(str(error)) from None

    def letters(self, shape: str) -> None:
        """Know the letters of a shape as arguments, for what is read behind it."""
        try:
            self._letters |= letters_of(shape)
        except (SyntaxError, ValueError) as error:
            about = {"text": shape, "error": getattr(error, "msg", error)}
            raise self._wrong(_("{text!r} is not an expression: {error}", **about)) from None

    def _name(self, name: str) -> None:
        if name in self._letters:
            return
        if name not in self._rule.args or name == "*":
            near = did_you_mean(name, self._rule.args)
            raise self._wrong(_("'args' does not declare {name!r}{near}", name=name, near=near))
        self.used.add(name)


class Signature(NamedTuple):
    """A condition or an action: the types of its arguments, and that of any number of further ones."""

    function: FunctionType
    of_calls: bool
    types: list[str]
    rest: str


@cache
def functions(module: ModuleType) -> dict[str, Signature]:
    """The conditions or the actions by name: the public functions of their module."""
    found = {}
    for name, function in vars(module).items():
        if isinstance(function, FunctionType) and function.__module__ == module.__name__ and name[0] != "_":
            code, annotations = function.__code__, function.__annotations__
            first, *types = [annotations[each] for each in code.co_varnames[: code.co_argcount]]
            has_rest = code.co_flags & 0x04  # *values
            rest = annotations[code.co_varnames[code.co_argcount]] if has_rest else ""
            found[name] = Signature(function, first == "Call", types, rest)
    return found
