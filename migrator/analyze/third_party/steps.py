"""The ways through the functions of one Python file of a library, with what the rules have found on them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from migrator.analyze.third_party.flow import Attempt, Branch, Condition, End, Loop, Step, Steps, Use
from migrator.findings.finding import Finding
from migrator.names.index import ModuleIndex
from migrator.names.statements import LEAVING
from migrator.project.modules import scopes_by_name, written

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
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from self._expressions(
                [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]
            )
        elif isinstance(node, ast.ClassDef):
            yield from self._expressions(
                [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
            )
            yield from self._steps(node.body)
        elif isinstance(node, ast.If):
            yield from self._expression(node.test)
            yield from self._rest(node.lineno, node.test.end_lineno or node.lineno)
            yield Branch(self._condition(node.test), self._steps(node.body), self._steps(node.orelse))
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield from self._expression(node.iter)
            yield Loop(self._steps(node.body))
            yield from self._steps(node.orelse)
        elif isinstance(node, ast.While):
            yield from self._expression(node.test)
            endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
            yield Loop(self._steps(node.body), endless)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            yield from self._expressions(item.context_expr for item in node.items)
            yield from self._rest(node.lineno, node.body[0].lineno - 1)
            yield from self._steps(node.body)
        elif kind in ("Try", "TryStar"):
            guard = "import" if any(_catches_imports(handler) for handler in node.handlers) else ""
            body = self._steps([*node.body, *node.orelse])
            handlers = tuple(self._steps(handler.body) for handler in node.handlers)
            if handlers:
                yield Attempt(Condition(node.lineno, "try … except", guard), body, handlers)
            else:
                yield from body
            yield from self._steps(node.finalbody)
        elif kind == "Match":
            yield from self._expression(node.subject)
            steps: Steps = ()
            for case in reversed(node.cases):
                condition = Condition(node.lineno, f"match {_text(node.subject)}")
                steps = (Branch(condition, self._steps(case.body), steps),)
            yield from steps
        else:
            yield from self._expressions(ast.iter_child_nodes(node))
            yield from self._rest(node.lineno, node.end_lineno or node.lineno)
            if isinstance(node, LEAVING):
                yield End(kind.lower())

    def _rest(self, first: int, last: int) -> Iterator[Use]:
        """Findings on these lines that no expression has taken."""
        for line in range(first, last + 1):
            for number in self.on_line.get(line, ()):
                if number not in self.taken:
                    self.taken.add(number)
                    yield Use(line, reason=number)

    # -- expressions ----------------------------------------------------------

    def _expressions(self, nodes: Iterable[ast.AST]) -> Iterator[Step]:
        for node in nodes:
            yield from self._expression(node)

    def _expression(self, node: ast.AST) -> Iterator[Step]:
        if isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and not self.at_place):
            return
        if isinstance(node, ast.IfExp):
            yield from self._expression(node.test)
            ways = tuple(self._expression(node.body)), tuple(self._expression(node.orelse))
            yield Branch(self._condition(node.test), *ways)
        elif isinstance(node, ast.BoolOp):
            yield from self._expression(node.values[0])
            rest = tuple(self._expressions(node.values[1:]))
            if rest:
                yield Branch(self._condition(node.values[0]), rest)
        elif isinstance(node, ast.Lambda):
            body = tuple(self._expression(node.body))
            if body:
                yield Branch(Condition(node.lineno, "lambda: where it is called"), body)
        elif isinstance(node, ast.DictComp):
            yield from self._comprehension(node.generators, node.key, node.value)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            yield from self._comprehension(node.generators, node.elt)
        else:
            yield from self._found_at(node)
            if isinstance(node, ast.Call):
                yield from _calls(node)
            yield from self._expressions(
                child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.keyword))
            )

    def _found_at(self, node: Any) -> Iterator[Use]:
        line = getattr(node, "lineno", 0)
        for number in self.at_place.get((line, node.col_offset + 1), ()) if line else ():
            if number not in self.taken:
                self.taken.add(number)
                yield Use(line, reason=number, called=_is_called(node, self.findings[number].api))

    def _comprehension(self, generators: list[ast.comprehension], *parts: ast.expr) -> Iterator[Step]:
        yield from self._expressions(generator.iter for generator in generators)
        steps = tuple(self._expressions(parts))
        tests = [test for generator in generators for test in generator.ifs]
        if tests and steps:
            yield from self._expressions(tests)
            yield Branch(self._condition(tests[0]), steps)
        else:
            yield from steps

    def _condition(self, test: ast.expr) -> Condition:
        text = _text(test)
        names = _names(test)
        filled = _FILLED.search(text)
        if filled:
            return Condition(test.lineno, text, "empty" if _is_negative(test, filled.group()) else "filled")
        guard = next((self.flags[name] for name in sorted(names) if name in self.flags), "")
        if not guard and _DEVICE_TEST.search(text):
            guard = "device"
        if not guard and any(_IMPORT_TEST.fullmatch(name) and name.upper() == name for name in names):
            guard = "import"
        if not guard and re.search(r"\bis_\w+_(?:available|installed)\(|find_spec\(|\bhave_\w+\(", text):
            guard = "import"
        return Condition(test.lineno, text, guard)


def _is_called(node: ast.AST, api: str) -> bool:
    """Whether an API with which an expression begins is called there: ``get_device_properties(0).name``."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call):
            node = node.func
            if isinstance(node, ast.Name) or getattr(node, "attr", "") == api.rpartition(".")[2]:
                return True
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return False
    return False


def _is_negative(test: ast.expr, found: str) -> bool:
    return ("==" in found or "<=" in found) != isinstance(test, ast.UnaryOp)


def _flags(index: ModuleIndex) -> dict[str, str]:
    """Names whose value tells of an import (``try: import x; HAS_X = True``) or a device (``use_cuda``)."""
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
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for part in ("body", "orelse", "finalbody"):
                yield from _flat(getattr(node, part, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _flat(handler.body)


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def _calls(node: ast.Call) -> Iterator[Use]:
    target = written(node.func)
    if target:
        yield Use(node.lineno, target)
    if target.rpartition(".")[2] in _CALLS_ITS_ARGUMENT and node.args and written(node.args[0]):
        yield Use(node.lineno, written(node.args[0]))


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_names(handler.type) & _IMPORT_ERRORS)


def _names(node: ast.expr) -> set[str]:
    """The names in an expression, and those behind its dots."""
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return names.union(inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute))


def _text(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else text[:77] + "…"
