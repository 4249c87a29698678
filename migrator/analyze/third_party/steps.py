"""The ways through a function's body: what is done on each of them, and on which condition.

A body is a sequence of steps, read from the tree and from what the rules have found in it. It can be asked
whether some way through it does without a set of uses: a function *cannot work* where every way that ends
well needs something that is unsupported on NPUs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Union

from migrator.findings.finding import Finding
from migrator.light import Frozen
from migrator.names.index import ModuleIndex
from migrator.names.tree import FUNCTIONS, LEAVING, LOOPS, bare_name, body_fields, chain
from migrator.project.modules import scopes_by_name, written

GUARDS = ("device", "import")
_UNUSUAL = {"empty": 0, "filled": 1}  # the way that is for empty input
_ON, _RETURN, _BREAK, _CONTINUE = 1, 2, 4, 8
# Tests after whose answer a program without CUDA goes another way.
_DEVICE_TEST = re.compile(
    r"is_available\(|\bis_cuda\b|\.is_npu\b|device(?:_type|\.type)?\s*[!=]=|[!=]=\s*['\"]c(?:uda|pu)|['\"](?:cuda|cpu)['\"]\s*[!=]="
    r"|in str\(.{0,99}device|\.device\.type|device_count\(|(?i:\b\w*(?:use|has|have|with|is)_?(?:cuda|gpu)\b)"
    r"|get_accelerator|CUDA_HOME"
    r"|IS_(?:CUDA|NPU|MLU|MPS)\w*|is_npu|platform"
)
# Tests for empty input and for wanted gradients: the usual answer is known.
_FILLED = re.compile(
    r"(?:numel\(\)|shape\[\d\]|size\(\d\)|len\([\w.]+\)|batch_size)\s*(?:==|>|!=|<=)\s*0\b"
    r"|\.any\(\)$|needs_input_grad"
)
_IMPORT_TEST = re.compile(
    r"(?:^|_)(?:has|have|is|with)_.*|.*_(?:available|installed|found|exists|enabled)$|.*AVAILABLE.*", re.I
)
_IMPORT_ERRORS = frozenset(
    "ImportError ModuleNotFoundError Exception OSError RuntimeError BaseException AttributeError"
    " NameError".split()
)
_CALLS_ITS_ARGUMENT = frozenset({"checkpoint", "map", "vmap", "apply_along", "run_function"})


class Use(Frozen):
    """A call, or a place that a rule has found (``reason``: its number in the file's findings).

    ``target`` is what is called, as it is written: ``self.conv``, ``Conv()`` for a call of what a call gives,
    ``layers[]`` for one of what an index gives. ``called``: the reason is a call and not a
    mention.
    """

    line: int
    target: str = ""
    reason: int = -1
    called: bool = False


class Condition(Frozen):
    """What a branch depends on: its line, its text, and what it asks.

    ``guard`` is device or import; filled and empty, which ask for the usual case (there is some input, a
    gradient is wanted) or for its contrary; '' for anything else.
    """

    line: int
    text: str
    guard: str = ""


class Branch(Frozen):
    """One of several sequences: of ``if`` the first or the second, of ``try`` its body or a handler."""

    condition: Condition
    ways: tuple[Steps, ...]
    tries: bool = False


class Loop(Frozen):
    """``for`` and ``while``, which are taken to run; ``endless`` is ``while True``."""

    body: Steps
    endless: bool = False


Step = Union[Use, Branch, Loop, str]  # the end of a way: return, raise, break or continue
Steps = tuple[Step, ...]


class Place(Frozen):
    """A use in a body, and the conditions under which it is come by, the outermost first."""

    use: Use
    conditions: tuple[Condition, ...] = ()

    @property
    def guarded(self) -> bool:
        """Whether a test of the device, or of an import, decides about it."""
        return any(condition.guard in GUARDS for condition in self.conditions)


def can_end_well(steps: Steps, bad: Callable[[Use], bool] | None = None) -> bool:
    """Whether some way through the steps comes to a normal end and by nothing that is ``bad``.

    An abstract method, which only raises, comes to none at all.
    """
    return bool(_outcomes(steps, bad) & (_ON | _RETURN))


def _outcomes(steps: Steps, bad: Callable[[Use], bool] | None = None) -> int:
    """How the ways through the steps without a bad use may end."""
    found = 0
    for step in steps:
        if isinstance(step, Use):
            if bad and bad(step):
                return found
            continue
        if isinstance(step, str):
            return found | {"return": _RETURN, "break": _BREAK, "continue": _CONTINUE}.get(step, 0)
        ends = 0
        if isinstance(step, Branch):
            # Nothing is shown to work by a way that is for empty input only.
            unusual = _UNUSUAL.get(step.condition.guard) if bad else None
            for number, way in enumerate(step.ways):
                ends |= 0 if number == unusual else _outcomes(way, bad)
        else:
            inner = _outcomes(step.body, bad)
            goes_on = inner & _BREAK if step.endless else inner & (_ON | _BREAK | _CONTINUE)
            ends = (inner & _RETURN) | (_ON if goes_on else 0)
        found |= ends & ~_ON
        if not ends & _ON:
            return found
    return found | _ON


def places(steps: Steps, above: tuple[Condition, ...] = ()) -> Iterator[Place]:
    """Every use in the steps. What follows ``if x: return`` depends on that test too."""
    for step in steps:
        if isinstance(step, Use):
            yield Place(step, above)
        elif isinstance(step, Loop):
            yield from places(step.body, above)
        elif isinstance(step, Branch):
            below = above if step.condition.guard in _UNUSUAL else (*above, step.condition)
            recovers = not step.tries or any(map(_outcomes, step.ways[1:]))
            for number, way in enumerate(step.ways):
                yield from places(way, below if number or recovers else above)
            # One that leaves the function with a value: then what follows is another case.
            if not step.tries and len({_outcomes(way) == _RETURN for way in step.ways}) > 1:
                above = below


# -- reading -------------------------------------------------------------------------


def read_steps(index: ModuleIndex, findings: Sequence[Finding]) -> dict[str, Steps]:
    """The steps of a file's functions, and of the module itself (''). A finding is a use where it stands."""
    reader = _Reader(index, findings)
    # The outer ones first: what a finding's line leaves open is theirs.
    return {
        name: reader.function(scope.node)
        for name, scope in scopes_by_name(index).items()
        if not isinstance(scope.node, ast.ClassDef)
    }


class _Reader:
    def __init__(self, index: ModuleIndex, findings: Sequence[Finding]) -> None:
        self.findings = findings
        self.at_place: dict[tuple[int, int], list[int]] = {}
        self.on_line: dict[int, list[int]] = {}
        for number, finding in enumerate(findings):
            self.at_place.setdefault((finding.line, finding.column), []).append(number)
            self.on_line.setdefault(finding.line, []).append(number)
        self.taken: set[int] = set()
        self.flags = _flags(index)

    def function(self, node: Any) -> Steps:
        """The steps of a function, or of a module."""
        steps = self._steps(node.body)
        if isinstance(node, ast.Module):
            return steps
        first = node.lineno - len(node.decorator_list) - 1
        return (*self._rest(first, node.body[0].lineno - 1), *steps)  # a kernel's

    # -- statements -----------------------------------------------------------

    def _steps(self, body: Iterable[ast.stmt]) -> Steps:
        return tuple(step for node in body for step in self._statement(node))

    def _statement(self, node: Any) -> Iterator[Step]:
        kind = node.__class__.__name__  # match and except* are of newer Pythons
        if isinstance(node, FUNCTIONS):
            defaults = filter(None, (*node.args.defaults, *node.args.kw_defaults))
            yield from self._expressions(*node.decorator_list, *defaults)
        elif isinstance(node, ast.ClassDef):
            yield from self._expressions(*node.decorator_list, *node.bases, *(k.value for k in node.keywords))
            yield from self._steps(node.body)
        elif isinstance(node, ast.If):
            yield from self._expressions(node.test)
            yield from self._rest(node.lineno, node.test.end_lineno or node.lineno)
            yield Branch(self._condition(node.test), (self._steps(node.body), self._steps(node.orelse)))
        elif isinstance(node, LOOPS):
            test = node.test if isinstance(node, ast.While) else node.iter
            yield from self._expressions(test)
            endless = isinstance(node, ast.While) and isinstance(test, ast.Constant) and bool(test.value)
            yield Loop(self._steps(node.body), endless)
            yield from self._steps(node.orelse)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from self._expressions(*(item.context_expr for item in node.items))
            yield from self._rest(node.lineno, node.body[0].lineno - 1)
            yield from self._steps(node.body)
        elif kind in ("Try", "TryStar"):
            guard = "import" if any(map(_catches_imports, node.handlers)) else ""
            body = self._steps([*node.body, *node.orelse])
            ways = (body, *(self._steps(handler.body) for handler in node.handlers))
            attempt = Branch(Condition(node.lineno, "try … except", guard), ways, tries=True)
            yield from (attempt,) if node.handlers else body
            yield from self._steps(node.finalbody)
        elif kind == "Match":
            yield from self._expressions(node.subject)
            steps: Steps = ()
            for case in reversed(node.cases):
                condition = Condition(node.lineno, f"match {_text(node.subject)}")
                steps = (Branch(condition, (self._steps(case.body), steps)),)
            yield from steps
        else:
            yield from self._expressions(*ast.iter_child_nodes(node))
            yield from self._rest(node.lineno, node.end_lineno or node.lineno)
            if isinstance(node, LEAVING):
                yield kind.lower()

    def _rest(self, first: int, last: int) -> Iterator[Use]:
        """Findings on these lines that no expression has taken."""
        for line in range(first, last + 1):
            for number in self.on_line.get(line, ()):
                if number not in self.taken:
                    self.taken.add(number)
                    yield Use(line, reason=number)

    # -- expressions ----------------------------------------------------------

    def _expressions(self, *nodes: ast.AST) -> Iterator[Step]:
        for node in nodes:
            if not isinstance(node, ast.Constant) and (self.at_place or not isinstance(node, ast.Name)):
                yield from self._expression(node)

    def _expression(self, node: ast.AST) -> Iterator[Step]:
        if isinstance(node, ast.IfExp):
            yield from self._expressions(node.test)
            ways = tuple(self._expressions(node.body)), tuple(self._expressions(node.orelse))
            yield Branch(self._condition(node.test), ways)
        elif isinstance(node, (ast.BoolOp, ast.Lambda)):
            first, *others = node.values if isinstance(node, ast.BoolOp) else (None, node.body)
            yield from self._expressions(*filter(None, (first,)))
            where = Condition(node.lineno, "lambda: where it is called")
            steps = tuple(self._expressions(*others))
            yield from (Branch(self._condition(first) if first else where, (steps, ())),) if steps else ()
        elif isinstance(node, (ast.DictComp, ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            yield from self._expressions(*(generator.iter for generator in node.generators))
            parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
            steps = tuple(self._expressions(*parts))
            tests = [test for generator in node.generators for test in generator.ifs]
            if tests and steps:
                yield from self._expressions(*tests)
                steps = (Branch(self._condition(tests[0]), (steps, ())),)
            yield from steps
        else:
            line = getattr(node, "lineno", 0)
            for number in self.at_place.get((line, node.col_offset + 1), ()) if line else ():  # type: ignore[attr-defined]
                if number not in self.taken:
                    self.taken.add(number)
                    yield Use(line, reason=number, called=_is_called(node, self.findings[number].api))
            if isinstance(node, ast.Call):
                target = written(node.func)
                calls = target.rpartition(".")[2] in _CALLS_ITS_ARGUMENT and node.args
                names = (target, written(node.args[0]) if calls else "")
                yield from (Use(line, name) for name in names if name)
            inner = ast.iter_child_nodes(node)
            yield from self._expressions(*(c for c in inner if isinstance(c, (ast.expr, ast.keyword))))

    def _condition(self, test: ast.expr) -> Condition:
        text = _text(test)
        names = _names(test)
        filled = _FILLED.search(text)
        if filled:
            empty = ("==" in filled.group() or "<=" in filled.group()) != isinstance(test, ast.UnaryOp)
            return Condition(test.lineno, text, "empty" if empty else "filled")
        guard = next((self.flags[name] for name in sorted(names) if name in self.flags), "")
        if not guard and _DEVICE_TEST.search(text):
            guard = "device"
        if not guard and (
            any(_IMPORT_TEST.fullmatch(name) and name.upper() == name for name in names)
            or re.search(r"\bis_\w+_(?:available|installed)\(|find_spec\(|\bhave_\w+\(", text)
        ):
            guard = "import"
        return Condition(test.lineno, text, guard)


def _is_called(node: Any, api: str) -> bool:
    """Whether an API with which an expression begins is called there: ``get_device_properties(0).name``."""
    calls = (each.func for each in chain(node) if isinstance(each, ast.Call))
    return any(isinstance(func, ast.Name) or bare_name(func) == api.rpartition(".")[2] for func in calls)


def _flags(index: ModuleIndex) -> dict[str, str]:
    """Names whose value depends on an import (``try: import x; HAS_X = True``) or a device (``use_cuda``)."""
    flags: dict[str, str] = {}
    for node in index.statements:
        if isinstance(node, ast.Try) and any(_catches_imports(handler) for handler in node.handlers):
            if any(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in _flat(node.body)):
                blocks = (node.body, node.orelse, *(handler.body for handler in node.handlers))
                flags.update((name, "import") for block in blocks for s in _flat(block) for name in _bound(s))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            tested = isinstance(node.value, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call))
            if tested and _DEVICE_TEST.search(ast.unparse(node.value)[:300]):
                flags.setdefault(node.targets[0].id, "device")
    return flags


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of the blocks in it, but of no function or class in it."""
    for node in body:
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            for part in body_fields(node.__class__):
                yield from _flat(getattr(node, part))


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_names(handler.type) & _IMPORT_ERRORS)


def _names(node: ast.expr) -> set[str]:
    """The names in an expression, and those behind its dots."""
    return {*map(bare_name, ast.walk(node))} - {""}


def _text(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else text[:77] + "…"
