"""Under which conditions a place of a module runs: what is asked and tried before it.

``conditions`` gives what decides. The rest says whether a program does without what is missing (by ``try``,
``hasattr``, questions for torch's version, flags with the answers), whether a place is sure to run, what a
question for CUDA chooses, and whether code has met NPUs before.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import chain, takewhile

from migrator.light import Declared, NamedTuple
from migrator.names.index import ModuleIndex
from migrator.names.outline import Binding
from migrator.names.tree import (
    FUNCTIONS,
    LEAVING,
    Function,
    bare_name,
    called_name,
    elements,
    ends_run,
    holder_of,
    imported,
    is_cpu,
    last_name,
    leaves,
    stops,
    string_value,
    walk,
)

_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


class Condition(NamedTuple):
    """What decides that a node is reached: the test, whether it has to hold, and the node it belongs to."""

    test: ast.AST
    holds: bool
    of: ast.AST


def conditions(index: ModuleIndex, node: ast.AST) -> Iterator[Condition]:
    """What decides whether a node is reached, from the inside out.

    Conditions around it, earlier ones that leave the block, decorators, and what a ``try`` does before it.
    """
    return chain.from_iterable(_decided_at(index, *step) for step in index.way_up(node))


def _decided_at(index: ModuleIndex, child: ast.AST, parent: ast.AST) -> Iterator[Condition]:
    """What decides whether a part of a node is reached where the node is."""
    if isinstance(parent, (ast.If, ast.IfExp, ast.While)):
        if child is not parent.test:
            holds = child is parent.body if isinstance(parent, ast.IfExp) else child not in parent.orelse
            yield Condition(parent.test, holds, parent)
    else:
        yield from (Condition(each, True, parent) for each in _before(parent, child))
    for other in index.before(child) if isinstance(child, ast.stmt) else ():
        if isinstance(other, ast.Assert):
            yield Condition(other.test, True, other)
        elif isinstance(other, ast.If) and leaves(other.body[-1]):
            yield Condition(other.test, False, other)
        elif isinstance(other, ast.Expr) and called_name(other.value) == "importorskip":
            yield Condition(other.value, True, other)


def _before(parent: ast.AST, child: ast.AST) -> Iterable[ast.AST]:
    """What a node asks, or does, before it comes to its part ``child``."""
    if isinstance(parent, ast.BoolOp) or (isinstance(parent, ast.Try) and child not in parent.finalbody):
        row: Iterable[ast.AST] = parent.values if isinstance(parent, ast.BoolOp) else parent.body
        return takewhile(lambda each: each is not child, row)
    if isinstance(parent, _DEFINITIONS):
        return [each for each in parent.decorator_list if each is not child]
    if isinstance(parent, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return [test for generator in parent.generators for test in generator.ifs if test is not child]
    return ()


# -- what a program does without ---------------------------------------------

_EVERY_ERROR = frozenset({"Exception", "BaseException"})
IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError")
MISSING = (*IMPORT_ERRORS, "AttributeError")
# What answers whether something is there, where it is named as that is.
_THERE = r"(?i)has|support|avail|exist|can_|enable"
# Who asks by a string whether a package is installed: is_package_available("bitsandbytes").
_INSTALLED = r"(?i)find_spec|avail|install|requirement"
# What lists names: '"fused" in signature(AdamW).parameters'.
_LISTS = r"signature|argspec|co_varnames|__dict__|\bdir\(|__all__|parameters"


class _Release(NamedTuple):
    """How a program asks for the release of ``packages``: ``held`` are the names that have it.

    ``flag`` are names of questions for it, and of what has the answer: TORCH_2_0, is_torch_version.
    """

    packages: tuple[str, ...]
    held: tuple[str, ...]
    flag: str


_AGAINST = r"(?:ge|gt|le|lt|at_least|greater|less|min|minor|major|newer|older|higher|lower)(?=[_\d]|than|$)"
_OF_RELEASE = rf"(?:.{{0,60}}version|_?v?\d|_?{_AGAINST})"
_HELD = ("torch.__version__", "torch.version.__version__", "torch.torch_version", "torchvision.__version__")
_RELEASES = {
    "torch": _Release(
        ("torch.", "torchvision."),
        (*_HELD, "torchvision.version.__version__"),
        rf"(?i:torch(?:vision)?{_OF_RELEASE}|is_torch_|(?:^|_)pt_?\d)",
    ),
    "numpy": _Release(
        ("numpy.",),
        ("numpy.__version__", "numpy.version.", "numpy.lib.NumpyVersion"),
        rf"(?i:(?:numpy|(?:^|_)np){_OF_RELEASE})",
    ),
}


_MOST_FLAGS = 50
_ANSWERS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call, ast.Name, ast.Attribute, ast.IfExp)


def catching(index: ModuleIndex, node: ast.AST, errors: Collection[str]) -> ast.Try | None:
    """The ``try`` of the same function that catches one of some errors of a node, and raises none."""
    for child, parent in _in_function(index, node):
        if isinstance(parent, ast.Try) and child in parent.body:
            for handler in (each for each in parent.handlers if _names_one(each.type, errors)):
                raises = any(isinstance(each, ast.Raise) for each in ast.walk(handler))
                return None if raises or stops(handler.body[-1]) else parent
    return None


def is_caught(index: ModuleIndex, node: ast.AST, errors: Collection[str]) -> bool:
    """Whether a node's function catches such an error: ``try``, ``suppress(…)``, ``pytest.raises(…)``."""
    return catching(index, node, errors) is not None or any(
        called_name(item.context_expr) in ("suppress", "raises", "assertRaises")
        and _names_one(item.context_expr, errors)
        for child, parent in _in_function(index, node)
        if isinstance(parent, (ast.With, ast.AsyncWith)) and child in parent.body
        for item in parent.items
    )


def _in_function(index: ModuleIndex, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each node around one with its part, as far as the function goes."""
    return takewhile(lambda pair: not isinstance(pair[1], FUNCTIONS), index.way_up(node))


def _names_one(types: ast.AST | None, errors: Collection[str]) -> bool:
    """Whether what catches errors of some types, or all, catches one of these errors."""
    return types is None or not _EVERY_ERROR.union(errors).isdisjoint(map(bare_name, ast.walk(types)))


def is_guarded(
    index: ModuleIndex,
    node: ast.AST,
    missing: Collection[str],
    errors: Collection[str] = MISSING,
    absent: Callable[[str], bool] = lambda _name: False,
    package: str = "torch",
) -> bool:
    """Whether a program does without what is missing: it asks first, catches the error, or never runs it.

    ``missing`` are the parts of a name that may be missing: ``amp`` and ``GradScaler``. ``absent`` says which
    qualified names are missing, too: a program may ask for one of these instead, or for the release of the
    ``package``, torch or numpy.
    """
    if is_for_types(index, node) or is_caught(index, node, errors):
        return True
    handlers = (up for up in index.above(node) if isinstance(up, ast.ExceptHandler))
    if any(_names_one(handler.type, (*errors, *MISSING)) for handler in handlers):
        return True  # another way was tried first
    return _Question(index, frozenset(missing), absent, package).is_asked_before(node)


def is_asked_first(index: ModuleIndex, node: ast.AST, library: str) -> bool:
    """Whether a program asks whether there is a library before it comes to a node."""
    aliases = node.names if isinstance(node, ast.Import) else ()
    # 'import bitsandbytes as bnb' behind 'if is_bnb_available():'
    short = frozenset(alias.asname.lower() for alias in aliases if alias.asname)
    return _Question(index, frozenset({library}), package="", short=short).is_asked_before(node)


def is_asked_for(index: ModuleIndex, node: ast.AST, name: str) -> bool:
    """Whether what decides that a node is reached asks for the value of a qualified name."""
    parts = (part for condition in conditions(index, node) for part in walk(condition.test))
    named = (part for part in parts if isinstance(part, (ast.Attribute, ast.Name)))
    return any(index.qualified_name(part) == name for part in named)


def flags(index: ModuleIndex) -> Iterator[tuple[str, set[str]]]:
    """The names at a module's top that hold or give an answer, each with what was asked for.

    That are names of torch, packages and others, and what stands for the release of a package.
    """
    for name, bindings in index.module_scope.bindings.items():
        asked = {each for binding in bindings for each in _asked_by_flag(index, binding, set())} - {""}
        if asked:
            yield name, asked


def _asked_by_flag(index: ModuleIndex, binding: Binding, seen: set[int]) -> Iterator[str]:
    if id(binding) in seen or len(seen) > _MOST_FLAGS:
        return
    seen.add(id(binding))
    for part in chain.from_iterable(map(walk, _answering(index, binding))):
        if isinstance(part, ast.Call) and called_name(part) in ("hasattr", "getattr"):
            yield string_value(part.args[1]) or "" if len(part.args) > 1 else ""
        elif isinstance(part, ast.Call) and part.args and re.search(_INSTALLED, called_name(part)):
            yield (re.match(r"\w+", string_value(part.args[0]) or "") or [""])[0]
        elif isinstance(part, ast.alias):
            yield part.name.rpartition(".")[2]
        elif isinstance(part, (ast.Attribute, ast.Name)):
            known = index.qualified_name(part)
            held = [package for package, release in _RELEASES.items() if known.startswith(release.held)]
            if held:
                yield f"{held[0]}.__version__"
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


def asks_for_type(index: ModuleIndex, ref: ast.expr) -> bool:
    """Whether a class is not made: ``isinstance(x, (nn.GRU, nn.LSTM))``, ``{nn.GRU}``, an annotation."""
    if annotated(index, ref) is not None:
        return True
    child, call = ref, index.parent(ref)
    if isinstance(call, ast.Tuple):
        child, call = call, index.parent(call)
    if isinstance(call, (ast.Set, ast.Compare)) or (isinstance(call, ast.Subscript) and call.slice is child):
        return True
    if not isinstance(call, ast.Call) or child not in call.args[1:]:
        return False
    return bare_name(call.func) in ("isinstance", "issubclass")


def is_answered_before(
    index: ModuleIndex,
    node: ast.AST,
    is_question: Callable[[ast.AST], bool],
    by: tuple[type[ast.AST], ...] = (ast.If, ast.IfExp),
) -> bool:
    """Whether a node is only reached where the program has asked a question, and the answer is yes."""
    return any(
        decided(index, part).value is not holds and decided(index, part).alone
        for test, holds, of in conditions(index, node)
        for part in walk(test)
        if isinstance(of, by) and is_question(part)
    )


def is_for_cuda_builds(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a node is only reached in builds of torch for CUDA: ``if torch.version.cuda:``."""

    def asks(part: ast.AST) -> bool:
        name = index.qualified_name(part)
        return name == "torch.version.cuda" or (name[:11] == "torch.cuda." and asks_cuda_version(index, part))

    return is_answered_before(index, node, asks, (ast.If,))


class _Question(Declared):
    """Asks of conditions whether they are about what may be missing.

    One for the release of the ``package`` is about it, too. ``short`` are the words that stand for what is
    missing in the name of an answer. What was ``asked`` is asked once.
    """

    index: ModuleIndex
    missing: frozenset[str]
    absent: Callable[[str], bool] = lambda _name: False
    package: str = "torch"
    short: frozenset[str] = frozenset()
    asked: set[int] = field(default_factory=set)

    def is_asked_before(self, node: ast.AST) -> bool:
        """Whether something that decides that a node is reached is about it."""
        return any(self.is_asked_by(condition.test) for condition in conditions(self.index, node))

    def is_asked_by(self, test: ast.AST) -> bool:
        """Whether a condition, or what its names were assigned, asks for something or for the version."""
        if id(test) in self.asked:
            return False
        self.asked.add(id(test))
        return any(map(self._is_about, walk(test)))

    def _is_about(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            if any(map(self._is_named, node.args)):
                return True
            if called_name(node) not in ("hasattr", "getattr") or len(node.args) < 2:
                return False
            # hasattr(torch, "_dynamo") before torch.compile
            holder, name = self.index.qualified_name(node.args[0]), string_value(node.args[1])
            return bool(holder and name) and self.absent(f"{holder}.{name}")
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return any(map(self.absent, imported(node)))
        if isinstance(node, ast.Compare):
            listed = node.comparators[0]
            held = self.index.assigned(listed) if isinstance(listed, ast.Name) else []
            texts = map(self.index.segment, [listed, *held])
            return self._is_named(node.left) and bool(re.search(_LISTS, " ".join(texts)))
        if isinstance(node, ast.alias):
            return not self.missing.isdisjoint(node.name.split("."))
        return isinstance(node, (ast.Name, ast.Attribute)) and self._is_answer(node)

    def _is_named(self, node: ast.expr) -> bool:
        return not self.missing.isdisjoint((string_value(node) or "").split("."))

    def _is_answer(self, node: ast.Name | ast.Attribute) -> bool:
        name, known = bare_name(node), self.index.qualified_name(node)
        release = _RELEASES.get(self.package)
        if known.startswith((release or _RELEASES["torch"]).packages):
            # torch.cuda.is_available() answers something else
            return release is not None and known.startswith(release.held)
        if release is not None and re.search(release.flag, name):
            return True
        lower = name.lower() if re.search(_THERE, name) else ""
        named = any(part.lower() in lower for part in self.missing)
        if lower and (named or not self.short.isdisjoint(lower.split("_"))):
            return True
        if known and self.index.neighbours is not None:
            wanted = self.missing.union((f"{self.package}.__version__",)) if release else self.missing
            if not wanted.isdisjoint(self.index.neighbours.asked(known)):
                return True
        if isinstance(node, ast.Attribute):
            return any(map(self.is_asked_by, self.index.stored_as(node)))
        # It holds an answer: of a condition, of a function, or of what an import came to.
        held = (_answering(self.index, binding) for binding in self.index.bindings(node))
        return any(map(self.is_asked_by, chain.from_iterable(held)))


def _answering(index: ModuleIndex, binding: Binding) -> Iterator[ast.AST]:
    """What says what a name holds or gives: returns and conditions of a function, a value, what is tried."""
    if isinstance(binding.node, FUNCTIONS):
        inside = index.inside(binding.node)
        for each in inside.statements if inside is not None else ():
            if isinstance(each, (ast.Return, ast.If)):
                yield each.test if isinstance(each, ast.If) else each
    elif binding.kind == "assign" and isinstance(binding.value, ast.Constant):
        # HAS_COMPILE = True, where that was found out
        yield from (condition.test for condition in conditions(index, binding.node))
    elif binding.kind == "assign" and isinstance(binding.value, _ANSWERS):
        yield binding.value


# -- what is sure to run -------------------------------------------------------
# Loops count as run. Calls by other modules are not known: what only they call is not sure to run.

_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))
_CATCHING = frozenset({"suppress", "raises"})  # contextlib.suppress(…), pytest.raises(…)
_QUIET = (ast.Return, ast.Continue, ast.Break)
_STARTERS = frozenset({"spawn", "start_processes"})  # torch.multiprocessing runs the function they are given
_WITH_INSTANCE = frozenset({"__init__", "__new__", "__post_init__", "forward"})


def surely_runs(
    index: ModuleIndex, node: ast.AST, is_program: bool = True, asked: frozenset[ast.AST] = frozenset()
) -> bool:
    """Whether a node runs when its module is imported, or its own code calls it, with no condition before it.

    ``is_program``: the module is started, so ``__name__`` is ``"__main__"``. ``asked`` are the functions of
    which that is being found out.
    """
    for child, parent in index.way_up(node):
        if isinstance(parent, ast.Lambda) or _decides(parent, child, is_program):
            return False
        if _left_before(index, child, _QUIET):
            return False
        if isinstance(parent, FUNCTIONS) and child in parent.body:
            return parent not in asked and _is_called(index, parent, is_program, asked | {parent})
    return True


def is_conditional(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether some condition in the module, of its function or around that, decides whether a node runs.

    A ``try`` that may catch what it raises is one, an ``assert`` or an early ``return`` before it, too.
    """
    leaving = (*LEAVING, ast.Assert)
    way = index.way_up(node)
    return any(_decides(parent, child) or _left_before(index, child, leaving) for child, parent in way)


def in_other_branch(index: ModuleIndex, one: ast.AST, other: ast.AST) -> bool:
    """Whether two nodes lie in the two branches of one ``if``."""
    inside = {id(node): node for node in index.above(other)}
    for child, around in index.way_up(one):
        if isinstance(around, ast.If) and id(around) in inside and id(child) not in inside:
            return child in around.body or child in around.orelse
    return False


def _is_called(index: ModuleIndex, function: Function, is_program: bool, asked: frozenset[ast.AST]) -> bool:
    """Whether a call of the function is sure to run."""
    owner = index.parent(function)
    if isinstance(owner, ast.ClassDef) and function.name not in _WITH_INSTANCE:
        scopes = filter(None, map(index.inside, owner.body))
        members = ((use, index.parent(use)) for scope in scopes for use in index.uses("self", scope))
        called = (use for use, each in members if bare_name(each) == function.name and index.call_of(each))
    else:
        defined = owner if isinstance(owner, ast.ClassDef) else function
        calls = ((use, index.call_of(use) or index.parent(use)) for use in index.uses_of(defined))
        called = (use for use, each in calls if index.call_of(use) or called_name(each) in _STARTERS)
    return any(surely_runs(index, use, is_program, asked) for use in called)


def _decides(parent: ast.AST, child: ast.AST, is_program: bool = True) -> bool:
    """Whether ``parent`` may leave out its part ``child``, or catch what that raises."""
    if isinstance(parent, ast.If):
        # if __name__ == "__main__":, which holds where the file is the program
        names = bare_name(getattr(parent.test, "left", None)) == "__name__"
        return child is not parent.test and not (is_program and names and child in parent.body)
    if isinstance(parent, ast.IfExp):
        return child is not parent.test
    if isinstance(parent, ast.BoolOp):
        return child is not parent.values[0]
    if isinstance(parent, _TRIES):
        goes_on = any(not stops(handler.body[-1]) for handler in parent.handlers)
        return child in parent.handlers or (goes_on and child in parent.body)
    if isinstance(parent, (ast.With, ast.AsyncWith)):
        return any(called_name(item.context_expr) in _CATCHING for item in parent.items)
    if isinstance(parent, ast.Assert):
        return child is parent.msg
    return isinstance(parent, (ast.ExceptHandler, ast.comprehension)) or type(parent).__name__ == "match_case"


def _left_before(index: ModuleIndex, node: ast.AST, leaving: tuple[type[ast.stmt], ...]) -> bool:
    """Whether an earlier ``if`` of the same block may have left it, or an ``assert`` where that counts."""
    rows = ((each, each.body[-1] if isinstance(each, ast.If) else each) for each in index.before(node))
    return any(isinstance(last, leaving) or (last is not each and ends_run(last)) for each, last in rows)


# -- what a question for CUDA chooses ---------------------------------------------
# One that stays as it is has the answer no on an NPU: what then does not run, and what runs in its place.

_CUDA_BUILD = rb"\bCUDAExtension\b|\bCUDA_HOME\b|\bnvcc\b|\.cu\b"
_CUDA_VERSION = rb"\btorch\.version\.cuda\."  # None has no members
_MOVES = rb"\.(?:cuda|to)\(|\bdevice\b|\bset_device\b|[\"']cuda"
QUESTIONS = frozenset({"is_available", "device_count"})
_OTHER_MAKERS = frozenset("musa mlu xpu mps hpu gcu".split())
_ASKING = frozenset({"startswith", "isinstance", "device", "bool"})
_NEGATIVE = (ast.NotEq, ast.IsNot, ast.NotIn)


class Choice(NamedTuple):
    """What does not run where a question for CUDA is answered with no, and what runs instead."""

    skipped: Sequence[ast.AST]
    taken: Sequence[ast.AST]


def choices(index: ModuleIndex, node: ast.AST) -> list[Choice]:
    """What a question for CUDA chooses, also by a name that holds its answer."""
    holder, answer, _ = decided(index, node)
    asked = [(holder, answer)]
    if isinstance(holder, ast.Assign) and isinstance(holder.targets[0], ast.Name):
        uses = (decided(index, use) for use in index.uses_of(holder.targets[0]))
        asked = [(use.by, use.value != answer) for use in uses]
    found, beside = [], _not_asked(index, node)
    for around, value in asked:  # the condition is ``value`` on an NPU
        if isinstance(around, (ast.If, ast.IfExp)):
            ways = _ways(index, around)
            found.append(Choice([*ways[value], *beside], ways[not value]))
    return found


def _ways(index: ModuleIndex, around: ast.If | ast.IfExp) -> tuple[Sequence[ast.AST], Sequence[ast.AST]]:
    """What runs where a condition holds, and where not: of a body that leaves its block what is behind it."""
    if isinstance(around, ast.IfExp):
        return [around.body], [around.orelse]
    leaves_block = isinstance(around.body[-1], LEAVING)
    return around.body, around.orelse or ([*index.behind(around)] if leaves_block else [])


def guards_cuda_build(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a question for a GPU decides that CUDA sources are compiled, or see ``asks_cuda_version``."""
    return _skips(index, node, _CUDA_BUILD) or asks_cuda_version(index, node)


def asks_cuda_version(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether the version of CUDA is taken apart behind a question for a GPU, and nothing is moved to one."""
    return _skips(index, node, _CUDA_VERSION) and not _skips(index, node, _MOVES)


def _skips(index: ModuleIndex, node: ast.AST, words: bytes) -> bool:
    """Whether what does not run where a question for a GPU is answered with no has one of these words."""
    if not isinstance(node, ast.Attribute) or node.attr not in QUESTIONS:
        return False
    skipped = (each for choice in choices(index, node) for each in choice.skipped)
    return any(re.search(words, index.data[slice(*index.span(each))]) for each in skipped)


def avoids_operators(found: Sequence[Choice], operators: Collection[object]) -> bool:
    """Whether a question that stays as it is keeps an NPU from CUDA operators, where there is another way.

    ``operators`` are the nodes that use one, see ``operator_uses``.
    """

    def holds(nodes: Sequence[ast.AST]) -> bool:
        waiting = [*nodes]
        while waiting:
            if (node := waiting.pop()) in operators:
                return True
            of_another = isinstance(node, ast.If) and _asks_for_another(node.test)
            waiting += node.orelse if isinstance(node, ast.If) and of_another else ast.iter_child_nodes(node)
        return False

    avoids = (holds(skipped) and not _is_refusal(taken) and not holds(taken) for skipped, taken in found)
    return bool(found) and all(avoids)


def _asks_for_another(test: ast.expr) -> bool:
    """Whether a condition asks for a device of another maker: ``x.is_musa``, ``x.device.type == "mlu"``."""
    words = (getattr(each, "attr", None) or string_value(each) or "" for each in ast.walk(test))
    return any(word.removeprefix("is_") in _OTHER_MAKERS for word in words)


def operator_uses(index: ModuleIndex, uses: Collection[ast.AST]) -> set[object]:
    """The uses of CUDA operators, and those of functions and classes of the file that come to one."""
    found: set[object] = set(uses)
    named: set[Function | ast.ClassDef] = set()
    fresh: Collection[ast.AST] = uses
    while fresh:
        owners: set[Function | ast.ClassDef] = set()
        for use in fresh:  # the outermost one, where no choice inside it has another way
            owner = _outermost(index, use)
            if owner and not any(_has_other_way(index, up, use, found) for up in index.above(use)):
                owners.add(owner)
        owners -= named
        named |= owners
        fresh = [use for owner in owners for use in index.uses_of(owner) if use not in found]
        found.update(fresh)
    return found


def is_inside(index: ModuleIndex, node: ast.AST, around: Sequence[ast.AST]) -> bool:
    """Whether a node is one of others, or inside one."""
    return any(up in around for up in (node, *index.above(node)))


def only_from(index: ModuleIndex, node: ast.AST, ways: Sequence[ast.AST]) -> bool:
    """Whether a node is inside some ways, or in private functions and classes that only these come to."""
    waiting, seen = [node], set[ast.AST]()
    while waiting:
        if is_inside(index, at := waiting.pop(), ways):
            continue
        owner = _outermost(index, at)
        if not owner or not owner.name.startswith("_") or not (uses := index.uses_of(owner)):
            return False
        if owner not in seen:
            waiting += uses
        seen.add(owner)
    return True


def _outermost(index: ModuleIndex, node: ast.AST) -> Function | ast.ClassDef | None:
    """The outermost function or class that a node is inside."""
    owners = [up for up in index.above(node) if isinstance(up, _DEFINITIONS)]
    return owners[-1] if owners else None


def _has_other_way(index: ModuleIndex, around: ast.AST, use: ast.AST, operators: set[object]) -> bool:
    if isinstance(around, ast.IfExp):
        return use is not around.test
    if isinstance(around, ast.If) and (other := _ways(index, around)[1]):
        return not _is_refusal(other) and not any(
            inner in operators for each in other for inner in ast.walk(each)
        )
    before = index.before(around)
    ways = (each.body[-1] for each in before if isinstance(each, ast.If))
    # What is kept of an earlier call, ``if key in cache: return cache[key]``, is the same way.
    return any(isinstance(each, ast.Return) and not isinstance(each.value, ast.Subscript) for each in ways)


def _is_refusal(way: Sequence[ast.AST]) -> bool:
    return not way or isinstance(way[0], (ast.Raise, ast.Assert))


class Decided(NamedTuple):
    """What a question is the condition of, or is assigned to, and what that is where the answer is no.

    ``alone``: whatever else is asked beside it.
    """

    by: ast.AST | None
    value: bool = False
    alone: bool = True


def decided(index: ModuleIndex, node: ast.AST) -> Decided:
    """What a question decides, if anything; None and 0 are the answer no."""
    child, around, value, alone = node, index.parent(node), False, True
    while around is not None:
        if isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not):
            value = not value
        elif isinstance(around, ast.Compare):
            beside = around.comparators[0]
            is_nothing = isinstance(beside, ast.Constant) and not beside.value
            turning = (ast.Eq, ast.Is) if is_nothing else _NEGATIVE
            value = value != isinstance(around.ops[0], turning)
        elif isinstance(around, ast.Call):
            if child is not around.func and bare_name(around.func) not in _ASKING:
                return Decided(None)
        elif isinstance(around, ast.BoolOp):
            alone = alone and isinstance(around.op, ast.And) != value
        elif not isinstance(around, (ast.NamedExpr, ast.Tuple, ast.List, ast.Set, ast.Attribute)):
            break
        child, around = around, index.parent(around)
    is_part = child is not getattr(around, "test", child)  # of what is chosen, or said
    return Decided(None if is_part else around, value, alone)


def _not_asked(index: ModuleIndex, node: ast.AST) -> list[ast.AST]:
    """What stands behind a question in the same ``and``: ``x.is_cuda and load_operators()``."""
    for child, around in index.way_up(node):
        if isinstance(around, ast.BoolOp):
            behind = around.values[[each is child for each in around.values].index(True) + 1 :]
            return [*behind] if isinstance(around.op, ast.And) else []
        if not isinstance(around, (ast.Compare, ast.Call, ast.Attribute)):
            break
    return []


def stops_without(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a program stops where a value is None, or an answer no: ``if version.cuda is None: raise``."""
    by, value, alone = decided(index, node)
    if isinstance(by, ast.Assert):
        return alone and not value
    taken = (by.body if value else by.orelse) if isinstance(by, ast.If) and alone else []
    return bool(taken) and (isinstance(taken[-1], ast.Raise) or ends_run(taken[-1]))


# -- code that has met NPUs before, and has a case for them beside the one for CUDA -----

# The word first, then what is before it: a search for plain text is fast, and most files speak of input.
_NPU_WORD = re.compile(r"npu(?<![^\W_]npu)(?![^\W\d_])")
_NVIDIA = re.compile(r"nvidia|hopper|ampere|blackwell", re.IGNORECASE)
_COMBINED = (ast.Compare, ast.BoolOp, ast.UnaryOp)


def knows_npus(text: str) -> bool:
    """Whether a text speaks of NPUs at all."""
    lower = text.lower()
    return "hccl" in lower or "ascend" in lower or bool(_NPU_WORD.search(lower))


def _speaks_of_npus(test: ast.AST) -> bool:
    return any(knows_npus(bare_name(node) or string_value(node) or "") for node in ast.walk(test))


def is_for_cpu(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a place runs only where something is on the CPU: behind ``if x.device.type == "cpu"``.

    Or in a function ``_mean_cpu`` of the file alone, each use of which is such a place.
    """
    function = index.function_of(node)
    uses = index.uses_of(function) if function is not None and function.name[:1] == "_" else ()
    return _asks_for_cpu(index, node) or (bool(uses) and all(_asks_for_cpu(index, each) for each in uses))


def _asks_for_cpu(index: ModuleIndex, node: ast.AST) -> bool:
    for test, holds, _ in conditions(index, node):
        for each in _all_of(test) if holds else [test]:
            is_denied = isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not)
            if holds == is_denied and bare_name(getattr(each, "operand", each)) == "is_cuda":
                return True
            if isinstance(each, ast.Compare) and len(each.ops) == 1:
                value, same = each.comparators[0], isinstance(each.ops[0], ast.Eq if holds else ast.NotEq)
                if same and (is_cpu(value) or bare_name(value).split("_")[-1] == "CPU"):  # MULTI_CPU
                    return True
    return False


def _all_of(test: ast.AST) -> Sequence[ast.AST]:
    """What all has to hold for a condition to hold."""
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def has_npu_branch(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a node is in the CUDA branch of code that also has a branch for NPUs.

    That is: another test of the same if-chain or conditional expression, or an
    earlier ``if …: return`` of the same block, speaks of NPUs, another ``if`` of the block does the same for
    them, or another variable there has the name for them (``cuda_ok``, ``npu_ok``). Or it is in a comparison
    of what is compared with an NPU's name in another place of the function, or asked beside it.
    """
    for child, parent in index.way_up(node):
        if _asks_for_npus_too(index, child, parent):
            return True
        if isinstance(parent, ast.Call) and called_name(parent) == "get" and child in parent.args[1:]:
            table = holder_of(parent)  # it is what that gives for another device
            if isinstance(table, ast.Dict) and has_npu(index, table, table.keys):
                return True
        for test, holds, of in _decided_at(index, child, parent):
            is_denied = isinstance(test, ast.UnaryOp)  # if not npu_is_available(): return
            denied = [each for each in _all_of(test) if isinstance(getattr(each, "op", None), ast.Not)]
            if holds and isinstance(of, (ast.If, ast.IfExp)) and any(map(_speaks_of_npus, denied)):
                return True  # if not npu_is_available(): …
            if isinstance(of, (ast.If, ast.IfExp)) and not (holds or is_denied) and _speaks_of_npus(test):
                last = None if of is parent or isinstance(of, ast.IfExp) or of.orelse else of.body[-1]
                if of is parent or (isinstance(last, LEAVING) and not isinstance(last, ast.Raise)):
                    return True
        if isinstance(parent, ast.If) and child not in parent.orelse and _has_twin(index, parent):
            return True
        if isinstance(parent, ast.Assign) and _beside(index, parent) is not None:
            return True
        tried = (each.body for each in index.before(child) if isinstance(each, ast.Try))
        if any(isinstance(body[-1], LEAVING) and any(map(_speaks_of_npus, body)) for body in tried):
            return True  # try: import torch_npu; return "npu"
        for handler in parent.handlers if isinstance(parent, ast.Try) and child in parent.body else ():
            if any(_speaks_of_npus(each.test) for each in walk(handler) if isinstance(each, ast.If)):
                return True
        either = isinstance(parent, ast.BoolOp) and isinstance(parent.op, ast.Or)
        if either and any(map(_speaks_of_npus, {*ast.iter_child_nodes(parent)} - {child})):
            return True
        if isinstance(parent, _DEFINITIONS):
            return False
    return False


def _asks_for_npus_too(index: ModuleIndex, child: ast.AST, parent: ast.AST) -> bool:
    """Whether what a question for CUDA asks of a value, the function asks of it for NPUs elsewhere.

    Before ``for name in ("npu", "xpu"): if device.startswith(name)`` it is about what else a device may be.
    """
    asked: Iterable[ast.AST] = ()
    if isinstance(parent, ast.Compare) or _says_device(parent):
        asked = [parent]
    elif isinstance(parent, ast.If) and child not in parent.orelse:
        asked = (each for each in walk(parent.test) if isinstance(each, ast.Compare) and _names_cuda(each))
        asked = (*asked, *(each for each in parent.body if _says_device(each) and _names_cuda(each)))
    elif isinstance(parent, ast.For) and child is parent.iter:
        asked = parent.body
    texts = {text for each in asked if not _speaks_of_npus(each) for text in _asked_of(each)}
    owner = index.function_of(parent) or index.tree
    questions = index.once(("asks for npus", owner), lambda: [*_npu_questions(owner)]) if texts else ()
    return any(not texts.isdisjoint(_asked_of(each)) for each in questions)


def _npu_questions(owner: ast.AST) -> Iterator[ast.AST]:
    """What a function, or a module at its top, compares with an NPU's name, or calls with one to decide.

    Loops over such names, too.
    """
    waiting = [*ast.iter_child_nodes(owner)]
    for each in waiting:  # it grows
        held = each.iter if isinstance(each, ast.For) else getattr(each, "test", None)
        if held is not None and _speaks_of_npus(held):
            calls = (call for call in walk(held) if isinstance(call, ast.Call) and _speaks_of_npus(call))
            yield from [each] if isinstance(each, ast.For) else calls
        if (isinstance(each, ast.Compare) or _says_device(each)) and _speaks_of_npus(each):
            yield each
        if not isinstance(each, _DEFINITIONS):
            waiting += ast.iter_child_nodes(each)


def _says_device(node: ast.AST) -> bool:
    """Whether a statement gives names the text of one device: ``kind = "npu"``."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)


def _names_cuda(node: ast.AST) -> bool:
    return any((string_value(each) or "").startswith(("cuda", "nccl")) for each in ast.walk(node))


def _asked_of(node: ast.AST) -> set[str]:
    """The dotted names in a node, with a device for its type."""
    dotted = (each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)))
    return {ast.unparse(each).removesuffix(".type") for each in dotted} - {"self", "str", "torch"}


def _has_twin(index: ModuleIndex, holder: ast.If) -> bool:
    """Whether an ``elif``, or another ``if`` of the block, does for NPUs what this one does for CUDA.

    That is name by name in another ``if``, in its test or in its statements.
    """

    def as_for_cuda(parts: Iterable[ast.AST]) -> str:
        text = " ".join(map(ast.dump, parts)).lower()
        return text.replace("npu", "cuda").replace("hccl", "nccl")

    last = holder
    while len(last.orelse) == 1 and isinstance(following := last.orelse[0], ast.If):
        if _speaks_of_npus(following.test):
            return True
        last = following
    block = index.block(holder)

    def for_npus() -> list[ast.If]:
        return [each for each in block if isinstance(each, ast.If) and _speaks_of_npus(each.test)]

    others = [each for each in index.once(("for NPUs in", id(block)), for_npus) if each is not holder]
    if not others:
        return False
    asked, done = as_for_cuda([holder.test]), as_for_cuda(holder.body)
    return any(as_for_cuda([each.test]) == asked or as_for_cuda(each.body) == done for each in others)


def _beside(index: ModuleIndex, holder: ast.Assign) -> ast.expr | None:
    """What stands beside a name for CUDA under the same one for NPUs: ``cuda_ok``, ``npu_ok``."""
    name, block = last_name(holder.targets[0]).lower(), index.block(holder)
    twin = name.replace("cuda", "npu").replace("gpu", "npu").replace("nccl", "hccl")

    def assigned() -> dict[str, ast.expr]:
        every = (each for each in block if isinstance(each, ast.Assign))
        return {last_name(each.targets[0]).lower(): each.value for each in every}

    return index.once(("assigned in", id(block)), assigned).get(twin) if twin != name else None


def chooses_for_npus(index: ModuleIndex, node: ast.AST, start: int, end: int) -> bool:
    """Whether a place inside a node holds a conditional expression that has a case for NPUs."""
    every = (each for each in walk(node) if isinstance(each, ast.IfExp) and _speaks_of_npus(each.test))
    return any(start <= index.start(each) and index.end(each) <= end for each in every)


def patches_cuda(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a node is patched into ``torch.cuda``: ``torch.cuda.graph = torch.npu.graph``."""
    is_stored = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)
    return is_stored and index.qualified_name(node).startswith("torch.cuda.")


def is_flag_for_nvidia(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a comparison's outcome gets a name that says NVIDIA: ``IS_NVIDIA = platform == "cuda"``."""
    if not isinstance(index.parent(node), _COMBINED):
        return False
    holder = next((up for up in index.above(node) if not isinstance(up, _COMBINED)), None)
    names = [last_name(target) for target in holder.targets] if isinstance(holder, ast.Assign) else []
    if isinstance(holder, ast.Return) and (function := index.function_of(holder)) is not None:
        names = [function.name]
    return any(map(_NVIDIA.search, names))


def beside_npu(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether a list, a dictionary, an enumeration or a chain of conditions also has a case for NPUs."""
    parent = index.parent(node)
    if isinstance(parent, (ast.List, ast.Tuple, ast.Set)):
        return has_npu(index, parent, parent.elts) or beside_npu(index, parent)
    if isinstance(parent, ast.Call):  # a row of a test's table
        return called_name(parent) == "param" and beside_npu(index, parent)
    if isinstance(parent, ast.Dict):
        if not has_npu(index, parent, parent.keys):
            return False
        of_cuda = (value for key, value in zip(parent.keys, parent.values) if string_value(key) == "cuda")
        return node in parent.keys or node in of_cuda
    if not isinstance(parent, ast.Assign):
        return False
    owner = index.parent(parent)
    if isinstance(owner, ast.ClassDef):
        return has_npu(index, owner, (each.value for each in owner.body if isinstance(each, ast.Assign)))
    # NCCL_BACKEND = "nccl" beside HCCL_BACKEND = "hccl"
    return isinstance(owner, ast.Module) and has_npu(index, parent, [_beside(index, parent)])


def has_npu(index: ModuleIndex, holder: ast.AST, values: Iterable[ast.AST | None]) -> bool:
    """Whether one of the values in a holder is an NPU's name, or has it; each of thousands of them asks."""

    def find() -> bool:
        every = [*values]
        inside = (each.args if isinstance(each, ast.Call) else elements(each) for each in every)
        texts = filter(None, map(string_value, chain(every, *inside)))
        return any(text.partition(":")[0].lower() in ("npu", "hccl") for text in texts)

    return index.once(("npu in", holder), find)
