"""What one Python file of a library defines, imports and calls: read once, without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from migrator.analyze.third_party.flow import Attempt, Branch, Condition, End, Loop, Steps, Use
from migrator.findings.finding import Finding
from migrator.project.module_names import absolute_name, module_name

# Tests after whose answer a program without CUDA goes another way.
_DEVICE_TEST = re.compile(
    r"is_available\(|\bis_cuda\b|\.is_npu\b|device(?:_type|\.type)?\s*[!=]=|[!=]=\s*['\"]c(?:uda|pu)|['\"](?:cuda|cpu)['\"]\s*[!=]="
    r"|in str\(.*device|\.device\.type|device_count\(|(?i:\b\w*(?:use|has|have|with|is)_?(?:cuda|gpu)\b)"
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
    {
        "ImportError",
        "ModuleNotFoundError",
        "Exception",
        "OSError",
        "RuntimeError",
        "BaseException",
        "AttributeError",
        "NameError",
    }
)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_CALLS_ITS_ARGUMENT = frozenset({"checkpoint", "map", "vmap", "apply_along", "run_function"})


@dataclass(frozen=True)
class FunctionFacts:
    """A function or method; ``steps`` are the ways through it.

    ``types`` are what local names hold (``conv`` is ``Conv()``), ``imports`` what it imports itself,
    ``gives`` the nested functions that it returns, ``decorators`` and ``parameters`` as they are written.
    """

    line: int
    end: int
    steps: Steps = ()
    types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    gives: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    parameters: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ClassFacts:
    """A class; ``attributes`` are what ``self.x`` and names in its body hold."""

    line: int
    end: int
    bases: tuple[str, ...] = ()
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceFacts:
    """One file. Names of functions and classes are those inside it: ``Conv.forward``, ``outer.inner``."""

    file: str
    module: str
    imports: dict[str, str] = field(default_factory=dict)
    stars: tuple[str, ...] = ()
    assigned: dict[str, str] = field(default_factory=dict)
    functions: dict[str, FunctionFacts] = field(default_factory=dict)
    classes: dict[str, ClassFacts] = field(default_factory=dict)
    top: FunctionFacts = FunctionFacts(1, 1)
    exported: frozenset[str] | None = None  # __all__

    @property
    def is_package(self) -> bool:
        """Whether the file is an ``__init__.py``."""
        return self.file.endswith("__init__.py")


def read_facts(file: str, tree: ast.Module, findings: Iterable[Finding], package: str) -> SourceFacts:
    """The facts of a parsed file. A finding becomes a use where it stands."""
    return _Reader(file, package, list(findings)).read(tree)


class _Reader:
    def __init__(self, file: str, package: str, findings: list[Finding]) -> None:
        self.file = file
        self.package = package
        self.findings = findings
        self.at_place: dict[tuple[int, int], list[int]] = {}
        self.on_line: dict[int, list[int]] = {}
        for number, finding in enumerate(findings):
            self.at_place.setdefault((finding.line, finding.column), []).append(number)
            self.on_line.setdefault(finding.line, []).append(number)
        self.taken: set[int] = set()
        self.flags: dict[str, str] = {}  # names whose value tells of a device or an import
        self.functions: dict[str, FunctionFacts] = {}
        self.classes: dict[str, ClassFacts] = {}
        self.imports: dict[str, str] = {}
        self.stars: list[str] = []

    def read(self, tree: ast.Module) -> SourceFacts:
        """Read the whole file."""
        self._find_flags(tree)
        assigned: dict[str, str] = {}
        exported: set[str] | None = None
        for node in _flat(tree.body):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        assigned[target.id] = _spelled(node.value)
                        if target.id == "__all__":
                            exported = {
                                str(e.value) for e in ast.walk(node.value) if isinstance(e, ast.Constant)
                            }
        top = self._function(tree, tree.body, "", ast.arguments([], [], None, [], [], None, []), self.imports)
        return SourceFacts(
            self.file,
            module_name(self.file, self.package),
            self.imports,
            tuple(self.stars),
            {name: value for name, value in assigned.items() if value},
            self.functions,
            self.classes,
            top,
            frozenset(exported) if exported is not None else None,
        )

    def _find_flags(self, tree: ast.Module) -> None:
        """``try: import x; HAS_X = True`` and ``use_cuda = torch.cuda.is_available()``."""
        for node in _statements(tree.body):
            if isinstance(node, ast.Try) and any(_catches_imports(handler) for handler in node.handlers):
                if any(isinstance(inner, (ast.Import, ast.ImportFrom)) for inner in _flat(node.body)):
                    for inner in _flat(
                        [*node.body, *node.orelse, *(s for h in node.handlers for s in h.body)]
                    ):
                        for name in _bound(inner):
                            self.flags[name] = "import"
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                tested = isinstance(node.value, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call))
                if tested and _DEVICE_TEST.search(ast.unparse(node.value)[:300]):
                    self.flags.setdefault(node.targets[0].id, "device")

    # -- functions and classes ------------------------------------------------

    def _function(
        self, node: Any, body: list[ast.stmt], name: str, arguments: ast.arguments, imports: dict[str, str]
    ) -> FunctionFacts:
        types: dict[str, list[str]] = {}
        steps = self._steps(body, name, types, imports)
        every = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ]
        inside = {item.name for item in body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))}
        gives = {
            inner.value.id
            for inner in _flat(body)
            if isinstance(inner, ast.Return)
            and isinstance(inner.value, ast.Name)
            and inner.value.id in inside
        }
        prefix = f"{name}." if name else ""
        return FunctionFacts(
            getattr(node, "lineno", 1),
            getattr(node, "end_lineno", None) or 1,
            steps,
            {key: tuple(dict.fromkeys(values)) for key, values in types.items()},
            imports,
            tuple(prefix + given for given in sorted(gives)),
            tuple(
                _spelled(d.func if isinstance(d, ast.Call) else d)
                for d in getattr(node, "decorator_list", ())
            ),
            frozenset(argument.arg for argument in every if argument),
        )

    def _class(self, node: ast.ClassDef, name: str, imports: dict[str, str]) -> Steps:
        attributes: dict[str, list[str]] = {}
        for item in node.body:
            if isinstance(item, ast.Assign):
                for target in item.targets:
                    if isinstance(target, ast.Name) and _spelled(item.value):
                        attributes.setdefault(target.id, []).append(_spelled(item.value))
        for inner in _statements(node.body):
            if isinstance(inner, (ast.Assign, ast.AnnAssign)) and inner.value is not None:
                for target in inner.targets if isinstance(inner, ast.Assign) else [inner.target]:
                    if isinstance(target, ast.Attribute) and _spelled(target.value) == "self":
                        held = _made(inner.value)
                        attributes.setdefault(target.attr, []).extend(held or [_spelled(inner.value) or "?"])
        self.classes[name] = ClassFacts(
            node.lineno,
            node.end_lineno or node.lineno,
            tuple(_spelled(base) for base in node.bases),
            {key: tuple(dict.fromkeys(values)) for key, values in attributes.items()},
        )
        return self._steps(node.body, name, {}, imports)

    # -- statements -----------------------------------------------------------

    def _steps(
        self, body: list[ast.stmt], name: str, types: dict[str, list[str]], imports: dict[str, str]
    ) -> Steps:
        found: list[Any] = []
        for node in body:
            found += self._statement(node, name, types, imports)
        return tuple(found)

    def _statement(
        self, node: Any, name: str, types: dict[str, list[str]], imports: dict[str, str]
    ) -> Iterator[Any]:
        prefix = f"{name}." if name else ""
        again = (name, types, imports)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for part in [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)]:
                yield from self._expression(part)
            inner = prefix + node.name
            if inner in self.functions:  # @property's setter, or one definition a branch
                inner = next(f"{inner}#{n}" for n in range(2, 10_000) if f"{inner}#{n}" not in self.functions)
            self.functions[inner] = FunctionFacts(node.lineno, node.end_lineno or node.lineno)
            leaf = self._function(node, node.body, inner, node.args, {})
            kernel = tuple(self._rest(node.lineno - len(node.decorator_list) - 1, node.body[0].lineno - 1))
            self.functions[inner] = leaf if not kernel else _with_steps(leaf, (*kernel, *leaf.steps))
        elif isinstance(node, ast.ClassDef):
            for part in [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]:
                yield from self._expression(part)
            yield from self._class(node, prefix + node.name, imports)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._import(node, imports)
            yield from self._rest(node.lineno, node.end_lineno or node.lineno)
        elif isinstance(node, ast.If):
            yield from self._expression(node.test)
            yield from self._rest(node.lineno, node.test.end_lineno or node.lineno)
            yield Branch(
                self._condition(node.test), self._steps(node.body, *again), self._steps(node.orelse, *again)
            )
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield from self._expression(node.iter)
            if isinstance(node.target, ast.Name) and _spelled(node.iter):
                types.setdefault(node.target.id, []).append(_spelled(node.iter) + "[]")
            yield Loop(self._steps(node.body, *again))
            yield from self._steps(node.orelse, *again)
        elif isinstance(node, ast.While):
            yield from self._expression(node.test)
            yield Loop(
                self._steps(node.body, *again), isinstance(node.test, ast.Constant) and bool(node.test.value)
            )
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                yield from self._expression(item.context_expr)
            yield from self._rest(node.lineno, node.body[0].lineno - 1)
            yield from self._steps(node.body, *again)
        elif isinstance(node, ast.Try) or node.__class__.__name__ == "TryStar":
            guard = "import" if any(_catches_imports(handler) for handler in node.handlers) else ""
            body = self._steps([*node.body, *node.orelse], *again)
            handlers = tuple(self._steps(handler.body, *again) for handler in node.handlers)
            if handlers:
                yield Attempt(Condition(node.lineno, "try … except", guard), body, handlers)
            else:
                yield from body
            yield from self._steps(node.finalbody, *again)
        elif node.__class__.__name__ == "Match":
            yield from self._expression(node.subject)
            steps: Steps = ()
            for case in reversed(node.cases):
                condition = Condition(node.lineno, f"match {_text(node.subject)}")
                steps = (Branch(condition, self._steps(case.body, *again), steps),)
            yield from steps
        else:
            yield from self._simple(node, types)

    def _simple(self, node: Any, types: dict[str, list[str]]) -> Iterator[Any]:
        for child in ast.iter_child_nodes(node):
            yield from self._expression(child)
        yield from self._rest(node.lineno, node.end_lineno or node.lineno)
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    types.setdefault(target.id, []).extend(_made(node.value) or [_spelled(node.value) or "?"])
        elif isinstance(node, ast.Return):
            yield End("return")
        elif isinstance(node, ast.Raise):
            yield End("raise")
        elif isinstance(node, ast.Break):
            yield End("break")
        elif isinstance(node, ast.Continue):
            yield End("continue")

    def _rest(self, first: int, last: int) -> Iterator[Use]:
        """Findings on these lines that no expression has taken."""
        for line in range(first, last + 1):
            for number in self.on_line.get(line, ()):
                if number not in self.taken:
                    self.taken.add(number)
                    yield Use(line, reason=number)

    def _import(self, node: ast.Import | ast.ImportFrom, imports: dict[str, str]) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                imports[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
            return
        module = absolute_name("." * node.level + (node.module or ""), self.file, self.package)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(module)
            else:
                imports[alias.asname or alias.name] = f"{module}.{alias.name}" if module else alias.name

    # -- expressions ----------------------------------------------------------

    def _expression(self, node: Any) -> Iterator[Any]:
        if isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and not self.at_place):
            return
        if isinstance(node, ast.IfExp):
            yield from self._expression(node.test)
            yield Branch(
                self._condition(node.test),
                tuple(self._expression(node.body)),
                tuple(self._expression(node.orelse)),
            )
            return
        if isinstance(node, ast.BoolOp):
            yield from self._expression(node.values[0])
            rest = tuple(step for value in node.values[1:] for step in self._expression(value))
            if rest:
                yield Branch(self._condition(node.values[0]), rest)
            return
        if isinstance(node, ast.Lambda):
            body = tuple(self._expression(node.body))
            if body:
                yield Branch(Condition(node.lineno, "lambda: where it is called"), body)
            return
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            yield from self._comprehension(node)
            return
        place = getattr(node, "lineno", None)
        if place is not None:
            for number in self.at_place.get((place, node.col_offset + 1), ()):
                if number not in self.taken:
                    self.taken.add(number)
                    yield Use(place, reason=number, called=_is_called(node, self.findings[number].api))
        if isinstance(node, ast.Call):
            target = _spelled(node.func)
            if target:
                yield Use(node.lineno, target)
            if target.rpartition(".")[2] in _CALLS_ITS_ARGUMENT and node.args:
                given = _spelled(node.args[0])
                if given:
                    yield Use(node.lineno, given)
        for name in node._fields:
            child = getattr(node, name, None)
            if isinstance(child, ast.expr):
                yield from self._expression(child)
            elif child.__class__ is list:
                for item in child:
                    if isinstance(item, (ast.expr, ast.keyword)):
                        yield from self._expression(item)

    def _comprehension(self, node: Any) -> Iterator[Any]:
        for generator in node.generators:
            yield from self._expression(generator.iter)
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        steps = tuple(step for part in parts for step in self._expression(part))
        tests = [test for generator in node.generators for test in generator.ifs]
        if tests and steps:
            yield from (step for test in tests for step in self._expression(test))
            yield Branch(self._condition(tests[0]), steps)
        else:
            yield from steps

    def _condition(self, test: ast.expr) -> Condition:
        text = _text(test)
        names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
        names |= {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
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


def _is_called(node: Any, api: str) -> bool:
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


def _with_steps(facts: FunctionFacts, steps: Steps) -> FunctionFacts:
    return FunctionFacts(
        facts.line,
        facts.end,
        steps,
        facts.types,
        facts.imports,
        facts.gives,
        facts.decorators,
        facts.parameters,
    )


def _statements(body: list[ast.stmt]) -> Iterator[Any]:
    """Every statement of a body, those of functions and classes in it too."""
    stack: list[Any] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        for part in _BLOCKS:
            stack.extend(getattr(node, part, ()))


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of the blocks in it, but of no function or class in it."""
    for node in body:
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from _flat(getattr(node, part, ()))
        for handler in getattr(node, "handlers", ()):
            yield from _flat(handler.body)


def _bound(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        yield from (target.id for target in node.targets if isinstance(target, ast.Name))
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name.split(".")[0] for alias in node.names)


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)}
    names |= {n.attr for n in ast.walk(handler.type) if isinstance(n, ast.Attribute)}
    return bool(names & _IMPORT_ERRORS)


def _spelled(node: Any) -> str:
    """A dotted expression as text, with () for a call and [] for an index; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _spelled(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    if isinstance(node, ast.Call):
        inner = _spelled(node.func)
        return f"{inner}()" if inner else ""
    if isinstance(node, ast.Subscript):
        inner = _spelled(node.value)
        return f"{inner}[]" if inner else ""
    return ""


def _made(node: ast.expr) -> list[str]:
    """What an assigned expression may hold: its calls; of a container (ModuleList) those inside it too."""
    if isinstance(node, ast.IfExp):
        return [*_made(node.body), *_made(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [made for value in node.values for made in _made(value)]
    if isinstance(node, (ast.List, ast.Tuple)):
        return [made for item in node.elts for made in _made(item)]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        return _made(node.elt)
    if not isinstance(node, ast.Call):
        return []
    called = _spelled(node)
    if called.rpartition(".")[2] in ("ModuleList()", "Sequential()", "ModuleDict()"):
        return [
            made
            for item in node.args
            for made in _made(item.value if isinstance(item, ast.Starred) else item)
        ]
    return [called] if called else []


def _text(node: ast.expr) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 80 else text[:77] + "…"
