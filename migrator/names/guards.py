"""Guards: code that asks whether something is there before it uses it, or goes on without it.

``try`` with an ``except`` for its error, ``hasattr``, questions for torch's version, flags with the answers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from itertools import chain, takewhile

from migrator.names.index import ModuleIndex
from migrator.names.scopes import Binding
from migrator.names.statements import leaves, stops
from migrator.names.tree import FUNCTIONS, bare_name, called_name, imported, string_value, walk

_EVERY_ERROR = frozenset({"Exception", "BaseException"})
IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError")
MISSING = (*IMPORT_ERRORS, "AttributeError")
# Names of torch's version, of questions for it, and of flags with the answer: TORCH_2_0, is_torch_version.
_VERSION = re.compile(
    r"torch.{0,60}version|torch(?:vision)?_?v?\d|is_torch_|(?:^|_)pt_?\d"
    r"|torch_?(?:ge|gt|le|lt|at_least|greater|less|min|newer|older|higher|lower)",
    re.IGNORECASE,
)
# What answers whether something is there, where it is named as that is.
_THERE = re.compile(r"has|support|avail|exist|can_|enable", re.IGNORECASE)
# Who asks by a string whether a package is installed: is_package_available("bitsandbytes").
_INSTALLED = re.compile(r"find_spec|avail|install|requirement", re.IGNORECASE)
# What lists names: '"fused" in signature(AdamW).parameters'.
_LISTS = re.compile(r"signature|argspec|co_varnames|__dict__|\bdir\(|__all__|parameters")
_PACKAGE = re.compile(r"\w+")
_PACKAGES = ("torch.", "torchvision.")
_OWN_VERSION = (
    *("torch.__version__", "torch.version.__version__", "torch.torch_version"),
    *("torchvision.__version__", "torchvision.version.__version__"),
)
_MOST_FLAGS = 50
_ANSWERS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call, ast.Name, ast.Attribute, ast.IfExp)


def catching(index: ModuleIndex, node: ast.AST, errors: Collection[str]) -> ast.Try | None:
    """The ``try`` of the same function that catches one of some errors of a node, and raises none."""
    for child, parent in _in_function(index, node):
        if isinstance(parent, ast.Try) and child in parent.body:
            handler = next((each for each in parent.handlers if _catches(each, errors)), None)
            if handler is not None:
                raises = any(isinstance(each, ast.Raise) for each in ast.walk(handler))
                return None if raises or stops(handler.body[-1]) else parent
    return None


def is_caught(index: ModuleIndex, node: ast.AST, errors: Collection[str]) -> bool:
    """Whether a node's function catches such an error: ``try``, ``suppress(…)``, ``pytest.raises(…)``."""
    return catching(index, node, errors) is not None or any(
        called_name(item.context_expr) in ("suppress", "raises", "assertRaises")
        and not _EVERY_ERROR.union(errors).isdisjoint(_names(item.context_expr))
        for child, parent in _in_function(index, node)
        if isinstance(parent, (ast.With, ast.AsyncWith)) and child in parent.body
        for item in parent.items
    )


def _in_function(index: ModuleIndex, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each node around one with its part, as far as the function goes."""
    return takewhile(lambda pair: not isinstance(pair[1], FUNCTIONS), index.way_up(node))


def _catches(handler: ast.ExceptHandler, errors: Collection[str]) -> bool:
    return handler.type is None or not _EVERY_ERROR.union(errors).isdisjoint(_names(handler.type))


def _names(types: ast.AST) -> list[str]:
    return [bare_name(item) for item in ast.walk(types)]


def is_guarded(
    index: ModuleIndex,
    node: ast.AST,
    missing: Collection[str],
    errors: Collection[str] = MISSING,
    absent: Callable[[str], bool] = lambda _name: False,
) -> bool:
    """Whether a program does without what is missing: it asks first, catches the error, or never runs it.

    ``missing`` are the parts of a name that may be missing: ``amp`` and ``GradScaler``. ``absent`` says which
    qualified names are missing, too: a program may ask for one of these instead.
    """
    if is_for_types(index, node) or is_caught(index, node, errors):
        return True
    handlers = (up for up in index.above(node) if isinstance(up, ast.ExceptHandler))
    if any(_catches(handler, MISSING) for handler in handlers):
        return True  # another way was tried first
    question = _Question(index, frozenset(missing), absent)
    return any(map(question.is_asked_by, _conditions(index, node)))


def is_asked_first(index: ModuleIndex, node: ast.AST, library: str) -> bool:
    """Whether a program asks whether there is a library before it comes to a node."""
    question = _Question(index, frozenset({library}), lambda _name: False, versions=False)
    question.short = {
        alias.asname.lower()  # 'import bitsandbytes as bnb' behind 'if is_bnb_available():'
        for alias in getattr(node, "names", ())
        if alias.asname and isinstance(node, ast.Import)
    }
    return any(map(question.is_asked_by, _conditions(index, node)))


def is_asked_for(index: ModuleIndex, node: ast.AST, name: str) -> bool:
    """Whether what decides that a node is reached asks for the value of a qualified name."""
    return any(
        index.qualified_name(part) == name
        for test in _conditions(index, node)
        for part in walk(test)
        if isinstance(part, (ast.Attribute, ast.Name))
    )


def flags(index: ModuleIndex) -> Iterator[tuple[str, set[str]]]:
    """The names at a module's top that hold or give an answer, each with what was asked for.

    That are names of torch, packages and others, and ``version`` for torch's release.
    """
    for name, bindings in index.module_scope.bindings.items():
        asked = {each for binding in bindings for each in _asked_by_flag(index, binding, set())} - {""}
        if asked:
            yield name, asked


def _asked_by_flag(index: ModuleIndex, binding: Binding, seen: set[int]) -> Iterator[str]:
    if id(binding) in seen or len(seen) > _MOST_FLAGS:
        return
    seen.add(id(binding))
    for node in _answering(index, binding):
        for part in walk(node):
            if isinstance(part, ast.Call) and called_name(part) in ("hasattr", "getattr"):
                yield string_value(part.args[1]) or "" if len(part.args) > 1 else ""
            elif isinstance(part, ast.Call) and part.args and _INSTALLED.search(called_name(part)):
                yield (_PACKAGE.match(string_value(part.args[0]) or "") or [""])[0]
            elif isinstance(part, ast.alias):
                yield part.name.rpartition(".")[2]
            elif isinstance(part, (ast.Attribute, ast.Name)):
                if index.qualified_name(part).startswith(_OWN_VERSION):
                    yield "version"
                elif isinstance(part, ast.Name):
                    for other in index.bindings(part):
                        yield from _asked_by_flag(index, other, seen)


def is_for_types(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether only type checkers read a node: behind ``TYPE_CHECKING``, or in an annotation."""
    for child, parent in index.way_up(node):
        if isinstance(parent, ast.If) and child in parent.body and bare_name(parent.test) == "TYPE_CHECKING":
            return True
    around = annotated(index, node)
    if around is None:
        return False
    is_local = isinstance(around, ast.AnnAssign) and index.function_of(around) is not None
    # Postponed annotations are not evaluated either.
    return is_local or any("__future__.annotations" in imported(each) for each in index.imports)


def annotated(index: ModuleIndex, node: ast.AST) -> ast.AST | None:
    """The parameter, function or assignment in whose annotation a node is; None where it is in none."""
    for child, parent in index.way_up(node):
        if child in (getattr(parent, "annotation", None), getattr(parent, "returns", None)):
            return parent
        if isinstance(parent, ast.stmt):
            return None
    return None


def is_for_cuda_builds(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a node is only reached in builds of torch for CUDA: ``if torch.version.cuda:``."""
    for child, parent in index.way_up(node):
        if isinstance(parent, ast.If) and child in parent.body:
            test = parent.test
            if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot):
                test = test.left
            if index.qualified_name(test) == "torch.version.cuda":
                return True
    return False


def _conditions(index: ModuleIndex, node: ast.AST) -> Iterator[ast.AST]:
    """What decides whether a node is reached, from the inside out.

    Conditions around it, earlier ones that leave the block, decorators, and what a ``try`` does before it.
    """
    for child, parent in index.way_up(node):
        if isinstance(parent, (ast.If, ast.IfExp, ast.While)):
            if child is not parent.test:
                yield parent.test
        elif isinstance(parent, ast.BoolOp):
            yield from takewhile(lambda each: each is not child, parent.values)  # noqa: B023
        elif isinstance(parent, ast.Try):
            if child not in parent.finalbody:
                yield from takewhile(lambda each: each is not child, parent.body)  # noqa: B023
        elif isinstance(parent, (*FUNCTIONS, ast.ClassDef)):
            yield from (each for each in parent.decorator_list if each is not child)
        elif isinstance(parent, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            yield from (
                test for generator in parent.generators for test in generator.ifs if test is not child
            )
        if isinstance(child, ast.stmt):
            yield from _earlier(index, child)


def _earlier(index: ModuleIndex, statement: ast.stmt) -> Iterator[ast.AST]:
    """The conditions under which the block was left before a statement."""
    for other in index.before(statement):
        if isinstance(other, ast.Assert):
            yield other.test
        elif isinstance(other, ast.If) and leaves(other.body[-1]):
            yield other.test
        elif isinstance(other, ast.Expr) and called_name(other.value) == "importorskip":
            yield other.value


class _Question:
    """Asks of conditions whether they are about what may be missing."""

    def __init__(
        self,
        index: ModuleIndex,
        missing: frozenset[str],
        absent: Callable[[str], bool],
        versions: bool = True,
    ) -> None:
        self.index = index
        self.versions = versions  # whether one for torch's version is about it, too
        self.missing = missing
        self.absent = absent
        self.short: set[str] = set()  # the words that stand for what is missing in the name of an answer
        self.asked: set[int] = set()  # the bindings and values that were looked at: once is enough

    def is_asked_by(self, test: ast.AST) -> bool:
        """Whether a condition, or what its names were assigned, asks for something or for the version."""
        if id(test) in self.asked:
            return False
        self.asked.add(id(test))
        return any(self._is_about(node) for node in walk(test))

    def _is_about(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            return self._is_named(node.args) or self._asks_for_other(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return any(map(self.absent, imported(node)))
        if isinstance(node, ast.Compare):
            return self._is_named([node.left]) and bool(_LISTS.search(self._text(node.comparators[0])))
        if isinstance(node, ast.alias):
            return not self.missing.isdisjoint(node.name.split("."))
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._is_answer(node)
        return False

    def _is_named(self, nodes: list[ast.expr]) -> bool:
        return any(not self.missing.isdisjoint((string_value(node) or "").split(".")) for node in nodes)

    def _asks_for_other(self, call: ast.Call) -> bool:
        """``hasattr(torch, "_dynamo")`` before ``torch.compile``."""
        if called_name(call) not in ("hasattr", "getattr") or len(call.args) < 2:
            return False
        holder, name = self.index.qualified_name(call.args[0]), string_value(call.args[1])
        return bool(holder and name) and self.absent(f"{holder}.{name}")

    def _text(self, node: ast.expr) -> str:
        answers = self.index.assigned(node) if isinstance(node, ast.Name) else []
        return " ".join(map(self.index.segment, [node, *answers]))

    def _is_answer(self, node: ast.Name | ast.Attribute) -> bool:
        name, known = bare_name(node), self.index.qualified_name(node)
        if known.startswith(_PACKAGES):  # torch.cuda.is_available() answers something else
            return self.versions and known.startswith(_OWN_VERSION)
        if self.versions and _VERSION.search(name):
            return True
        if _THERE.search(name) and (
            any(part.lower() in name.lower() for part in self.missing)
            or not self.short.isdisjoint(name.lower().split("_"))
        ):
            return True
        if known and self.index.neighbours is not None:
            wanted = self.missing.union(("version",)) if self.versions else self.missing
            if not wanted.isdisjoint(self.index.neighbours.asked(known)):
                return True
        if isinstance(node, ast.Name):
            # It holds an answer: of a condition, of a function, or of what an import came to.
            held = (_answering(self.index, binding) for binding in self.index.bindings(node))
            return any(map(self.is_asked_by, chain.from_iterable(held)))
        return any(map(self.is_asked_by, self.index.stored_as(node)))


def _answering(index: ModuleIndex, binding: Binding) -> Iterator[ast.AST]:
    """What says what a name holds or gives: returns and conditions of a function, a value, what is tried."""
    if isinstance(binding.node, FUNCTIONS):
        inside = index.inside(binding.node)
        for each in inside.statements if inside is not None else ():
            if isinstance(each, (ast.Return, ast.If)):
                yield each.test if isinstance(each, ast.If) else each
    elif binding.kind == "assign" and isinstance(binding.value, ast.Constant):
        yield from _conditions(index, binding.node)  # HAS_COMPILE = True, where that was found out
    elif binding.kind == "assign" and isinstance(binding.value, _ANSWERS):
        yield binding.value
