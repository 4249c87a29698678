"""api_db/reached.csv: what the Python code of torch, torchvision and torchaudio comes to, read from
their wheels.

    python -m tools.reached FOLDER

FOLDER holds the wheels, of any platform, of the versions in torch_wheels.csv. For each public function and
class the calls in its source are followed through the sources of all three, until they come to operators of
the compiled part, to names of torch.cuda, or to operators of other libraries. Nothing is run. What stands
below a condition is kept apart from what is always reached; a loop is taken to run.
"""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, Optional

from migrator.api_support import support, tables
from migrator.api_support.torch_names import listed, of_version
from migrator.api_support.versions import known
from migrator.data_folders import data_folder
from tools.releases import writing
from tools.releases.archive import Archive
from tools.releases.bindings import FUNCTIONS, Bound, Function, Package
from tools.releases.wheels import texts

PACKAGES = ("torch", "torchvision", "torchaudio")
# The parts of the compiled torch in which operators are bound.
_BOUND = re.compile(
    r"torch\._C\.(_VariableFunctions|_VariableFunctionsClass|_nn|_linalg|_fft|_special|_sparse|_nested)\.(\w+)"
)
_TENSOR = re.compile(r"torch\._C\.(_TensorBase|TensorBase)\.(\w+)")
_OPS = re.compile(r"torch\.ops\.(\w+)\.(\w+)")
# Names of these are not followed: tables of their own say what happens to them.
_CUDA = ("torch.cuda.", "torch.backends.cuda.", "torch.backends.cudnn.", "torch._C._cuda")
# Questions that a program asks of any device, and what is done for all of them.
_ASKS = re.compile(
    r"is_available|is_built|is_initialized|_is_compiled|_lazy|device_count|is_bf16|current_device|_jit|manual_seed"
)
# What FakeTensor and the like do for tensors that are sparse or quantized.
_NOISE = re.compile(r"^_|quantized|^sparse")
_DEEPEST = 12


class Reach(NamedTuple):
    """What some code comes to, always and at all."""

    always: frozenset[str] = frozenset()
    ever: frozenset[str] = frozenset()


_NOTHING = Reach()


def _both(reaches: Iterable[Reach]) -> Reach:
    """One after the other."""
    always: set[str] = set()
    ever: set[str] = set()
    for reach in reaches:
        always |= reach.always
        ever |= reach.ever
    return Reach(frozenset(always), frozenset(ever))


def _either(one: Reach, other: Reach) -> Reach:
    return Reach(one.always & other.always, one.ever | other.ever)


def _maybe(reach: Reach) -> Reach:
    return Reach(frozenset(), reach.ever)


class Sources:
    """The Python sources of one version, and what each definition in them comes to."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self._known: dict[tuple[str, str], Reach] = {}
        self._open: set[tuple[str, str]] = set()
        self._classes: dict[int, dict[str, Function]] = {}
        self._defined: dict[str, tuple[str, list[Bound]]] = {}

    @cached_property
    def tensor_methods(self) -> frozenset[str]:
        """Methods that only tensors have, of all that is written in Python here."""
        stub = next(
            (self.package.defined(f"torch._C.{name}")[1] for name in ("TensorBase", "_TensorBase")), []
        )
        nodes = [bound.node for bound in stub if isinstance(bound.node, ast.ClassDef)]
        return frozenset(inner.name for node in nodes for inner in node.body if isinstance(inner, FUNCTIONS))

    def of(self, name: str) -> Optional[Reach]:
        """What a name comes to when it is called; None where that is neither Python code nor an operator."""
        place, bounds = self.defined(name)
        leaf = _leaf(place or name) or _leaf(name)
        if leaf:
            return Reach(frozenset({leaf}), frozenset({leaf}))
        if (place or name).startswith(_CUDA):
            return _NOTHING
        functions = [bound.node for bound in bounds if isinstance(bound.node, FUNCTIONS)]
        module = self._module(place) if place else ""
        if functions and module and module not in self.package.compiled:
            return self._function(place, functions[-1], module, "")
        classes = [bound.node for bound in bounds if isinstance(bound.node, ast.ClassDef)]
        if classes and module and module not in self.package.compiled:
            return self.of_class(place, classes[-1], module)
        if not place and "." in name:
            return self._member(name)
        return None

    def _member(self, name: str) -> Optional[Reach]:
        owner, _, member = name.rpartition(".")
        place, bounds = self.defined(owner)
        node = next((b.node for b in reversed(bounds) if isinstance(b.node, ast.ClassDef)), None)
        if node is None or self._module(place) in self.package.compiled:
            return None
        return self._method(place, node, member)

    def of_class(self, place: str, node: ast.ClassDef, module: str) -> Reach:
        """Making an object, and what it is made for: a module's forward, an optimizer's step, a call."""
        key = place, "()"
        if key in self._known or key in self._open:
            return self._known.get(key, _NOTHING)
        self._open.add(key)
        found = [
            self._method(place, node, name) for name in ("__init__", "__new__", "forward", "__call__", "step")
        ]
        self._known[key] = _both(reach for reach in found if reach)
        self._open.discard(key)
        return self._known[key]

    def _method(self, place: str, node: ast.ClassDef, member: str, depth: int = 8) -> Optional[Reach]:
        module = self._module(place)
        found = self._members(node).get(member)
        if found is not None:
            return self._function(f"{place}.{member}", found, module, place)
        for base in node.bases if depth else ():
            expression = base.value if isinstance(base, ast.Subscript) else base
            name = self.package.qualified(expression, module)
            where, bounds = self.defined(name) if name else ("", [])
            above = next((b.node for b in reversed(bounds) if isinstance(b.node, ast.ClassDef)), None)
            # What every module, dictionary or exception has is no answer to what this one does.
            if above is not None and where not in ("torch.nn.modules.module.Module", place):
                reach = self._method(where, above, member, depth - 1)
                if reach is not None:
                    return reach
        return None

    def _members(self, node: ast.ClassDef) -> dict[str, Function]:
        if id(node) not in self._classes:
            self._classes[id(node)] = {
                one.name: one for one in _inner(node.body) if isinstance(one, FUNCTIONS)
            }
        return self._classes[id(node)]

    def defined(self, name: str) -> tuple[str, list[Bound]]:
        """Where a name comes from, and what binds it there."""
        if name not in self._defined:
            self._defined[name] = self.package.defined(name)
        return self._defined[name]

    def _function(self, place: str, node: Function, module: str, owner: str) -> Reach:
        key = place, ""
        if key in self._known or key in self._open:
            return self._known.get(key, _NOTHING)
        if len(self._open) > _DEEPEST * 4:
            return _NOTHING
        self._open.add(key)
        self._known[key] = _Body(self, node, module, owner).reach()
        self._open.discard(key)
        return self._known[key]

    def _module(self, place: str) -> str:
        module = place
        while module and module not in self.package.modules:
            module = module.rpartition(".")[0]
        return module


def _inner(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try)):
            yield from _inner([*statement.body, *statement.orelse])


def _leaf(place: str) -> str:
    """The operator or the other name at which the way through the sources ends; '' where it does not."""
    bound = _BOUND.match(place)
    if bound:
        return bound.group(2)
    operator = _OPS.match(place)
    if operator:
        library, name = operator.groups()
        return name if library in ("aten", "prims") else f"{library}::{name}"
    method = _TENSOR.match(place)
    if method:
        return method.group(2)
    if place.startswith(_CUDA) and not _ASKS.search(place):
        return re.sub(r"torch\._C\._cuda.*", "torch._C._cuda", place)
    return "triton" if place.startswith("triton.") else ""


class _Body:
    """One function: its names, and what its statements come to."""

    def __init__(self, sources: Sources, node: Function, module: str, owner: str) -> None:
        self.sources, self.node, self.module, self.owner = sources, node, module, owner
        arguments = node.args
        every = [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ]
        self.local = {argument.arg for argument in every if argument}
        self.first = node.args.args[0].arg if owner and node.args.args else ""
        self.imported: dict[str, str] = {}
        for leaf in ast.walk(node):
            if isinstance(leaf, ast.Name) and isinstance(leaf.ctx, ast.Store):
                self.local.add(leaf.id)
            elif isinstance(leaf, ast.ImportFrom):
                source = sources.package.absolute(leaf, module)
                for alias in leaf.names:
                    self.imported[alias.asname or alias.name] = f"{source}.{alias.name}"
            elif isinstance(leaf, ast.Import):
                for alias in leaf.names:
                    self.imported[alias.asname or alias.name.split(".")[0]] = (
                        alias.asname and alias.name
                    ) or alias.name.split(".")[0]

    def reach(self) -> Reach:
        return self.block(self.node.body)

    def block(self, body: Sequence[ast.stmt]) -> Reach:
        found: list[Reach] = []
        for number, statement in enumerate(body):
            if isinstance(statement, ast.If):
                found.append(self.expressions([statement.test]))
                rest = body[number + 1 :]
                if _asks_for_others(statement.test):
                    continue  # an answer for other kinds of tensors
                ends, raises = _ends(statement.body), _raises(statement.body)
                if raises:
                    found.append(_maybe(self.block(statement.body)))
                elif ends:
                    other = self.block([*statement.orelse, *rest])
                    return _both([*found, _either(self.block(statement.body), other)])
                elif statement.orelse and _raises(statement.orelse):
                    found.append(self.block(statement.body))
                else:
                    found.append(_either(self.block(statement.body), self.block(statement.orelse)))
                    continue
                found.append(self.block(statement.orelse))
            elif isinstance(statement, (ast.For, ast.AsyncFor)):
                found += [
                    self.expressions([statement.iter]),
                    self.block(statement.body),
                    self.block(statement.orelse),
                ]
            elif isinstance(statement, ast.While):
                found += [self.expressions([statement.test]), self.block(statement.body)]
            elif isinstance(statement, (ast.With, ast.AsyncWith)):
                found += [
                    self.expressions([item.context_expr for item in statement.items]),
                    self.block(statement.body),
                ]
            elif isinstance(statement, ast.Try):
                guarded = self.block(statement.body)
                found.append(_maybe(guarded) if statement.handlers else guarded)
                found += [_maybe(self.block(handler.body)) for handler in statement.handlers]
                found += [_maybe(self.block(statement.orelse)), self.block(statement.finalbody)]
            elif isinstance(statement, FUNCTIONS):
                found.append(_maybe(self.block(statement.body)))
            elif isinstance(statement, (ast.ClassDef, ast.Import, ast.ImportFrom)):
                continue
            else:
                found.append(self.expressions([statement]))
                if isinstance(statement, (ast.Return, ast.Raise)):
                    break
        return _both(found)

    def expressions(self, nodes: Iterable[ast.AST]) -> Reach:
        return _both(self.expression(node) for node in nodes)

    def expression(self, node: ast.AST) -> Reach:
        if isinstance(node, ast.Lambda):
            return _maybe(self.expression(node.body))
        if isinstance(node, ast.IfExp):
            return _both(
                [
                    self.expression(node.test),
                    _either(self.expression(node.body), self.expression(node.orelse)),
                ]
            )
        if isinstance(node, ast.BoolOp):
            first, *rest = node.values
            return _both([self.expression(first), *(_maybe(self.expression(value)) for value in rest)])
        inner = self.expressions(ast.iter_child_nodes(node))
        return _both([inner, self.call(node)]) if isinstance(node, ast.Call) else inner

    def call(self, node: ast.Call) -> Reach:
        function = node.func
        name = self.qualified(function)
        if name:
            return self.sources.of(name) or _NOTHING
        if (
            isinstance(function, ast.Attribute)
            and function.attr in _ONLY_TENSORS & self.sources.tensor_methods
        ):
            return Reach(frozenset(), frozenset({function.attr}))
        return _NOTHING

    def qualified(self, function: ast.expr) -> str:
        parts: list[str] = []
        value = function
        while isinstance(value, ast.Attribute):
            parts.insert(0, value.attr)
            value = value.value
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id == "super"
            and self.owner
        ):
            return (
                ".".join([f"{self.owner}", *parts])
                if parts and parts[0] not in ("__init__", self.node.name)
                else ""
            )
        if not isinstance(value, ast.Name):
            return ""
        if value.id == self.first and self.owner:
            return ".".join([self.owner, *parts]) if len(parts) == 1 else ""
        if value.id in self.imported:
            return ".".join([self.imported[value.id], *parts])
        if value.id in self.local:
            return ""
        return self.sources.package.qualified(function, self.module)


# Methods of tensors that sets, lists, strings, dictionaries, arrays and modules do not have as well.
_ONLY_TENSORS = frozenset(
    "bernoulli_ cauchy_ cdist cholesky cholesky_inverse cholesky_solve cummax cummin digamma erfinv"
    " erfinv_ exponential_"
    " fft geometric_ geqrf histc index_add_ index_reduce_ inverse kthvalue lgamma log_normal_"
    " logcumsumexp logdet lu_solve"
    " lgamma_ masked_scatter_ median mode multinomial mvlgamma nanmedian nanquantile nonzero normal_"
    " ormqr polygamma"
    " pinverse put_ qr quantile random_ renorm renorm_ scatter_ scatter_add_ scatter_reduce slogdet"
    " symeig svd take"
    " triangular_solve trace unfold unique_consecutive uniform_ index_copy_ masked_fill_ sinc i0"
    " nextafter xlogy".split()
)


_OF_OTHERS = frozenset(
    "has_torch_function has_torch_function_unary has_torch_function_variadic is_scripting is_tracing"
    " is_compiling"
    " TYPE_CHECKING is_dynamo_compiling".split()
)


def _asks_for_others(test: ast.expr) -> bool:
    leaves = ast.walk(test)
    return any(getattr(leaf, "id", getattr(leaf, "attr", "")) in _OF_OTHERS for leaf in leaves)


def _ends(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Continue, ast.Break))


def _raises(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


Row = tuple[str, str, str]  # how it is known, what it always comes to, what it comes to under some condition


def rows_of(package: Package, version: str) -> dict[str, Row]:
    """What each public function and class of a version comes to."""
    sources, found = Sources(package), {}
    names = of_version(version)
    counts = _Counts()
    for name in listed():
        if names.kind(name) not in ("function", "class") or name.startswith(_CUDA):
            continue
        reach = sources.of(name)
        if reach is not None:
            always, sometimes = counts.always(reach.always), counts.sometimes(reach.ever - reach.always)
            found[name] = "source", " ".join(sorted(always)), " ".join(sorted(sometimes))
        elif package.defined(name)[0].startswith("torch._C."):
            found[name] = "compiled", "", ""
    return found


class _Counts:
    """Which of the things that code comes to say anything of an NPU."""

    def __init__(self) -> None:
        self._natives = {
            line.partition(",")[0].partition(".")[0] for line in tables.lines("native_functions")
        }

    def always(self, reached: Iterable[str]) -> set[str]:
        """Operators, and names of CUDA or other libraries; not ``torch.is_grad_enabled`` and the like."""
        return {
            name
            for name in reached
            if name in self._natives or "." in name or ":" in name or name == "triton"
        }

    def sometimes(self, reached: Iterable[str]) -> set[str]:
        """Those that torch_npu has no kernel for at some version, and names of other libraries."""
        return {
            name
            for name in self.always(reached)
            if not _NOISE.search(name) and name in self._natives and _open(name)
        }


@cache
def _open(operator: str) -> bool:
    return any(support.registered(operator, version) in ("fallback", "none") for version in known())


def load(folder: Path, version: str, releases: dict[str, str]) -> Package:
    """The sources and stubs of a version's wheels in a folder."""
    sources, stubs = {}, {}
    for package in PACKAGES:
        for path in sorted(folder.glob(f"{package}-{releases.get(package) or '-'}*.whl"))[:1]:
            archive = Archive(path)
            sources.update(texts(archive, package, ".py"))
            stubs.update(texts(archive, package, ".pyi"))
    return Package(sources, stubs)


def main(folder: Path, wanted: Sequence[str]) -> None:
    """Read the wheels of some versions, or of all that are there, and put what they say into the table."""
    api_db = data_folder("api_db")
    releases = {row["torch"]: row for row in writing.records("torch_wheels", api_db)}
    held: dict[str, dict[str, Row]] = {}
    for version in wanted or releases:
        numbers = {package: releases[version][f"{package}_wheel"] for package in PACKAGES}
        if not list(folder.glob(f"torch-{version}*.whl")):
            continue
        held[version] = rows_of(load(folder, version, numbers), version)
        print(version, len(held[version]), flush=True)
        order = [other for other in releases if other in held]
        by_name: dict[str, dict[str, Row]] = {}
        for other in order:
            for name, row in held[other].items():
                by_name.setdefault(name, {})[other] = row
        # A table of its own range of versions: those in between are like the nearest one.
        lines = [
            (name, first, last, *row)
            for name, rows in by_name.items()
            for first, last, row in tables.ranges(rows, order)
        ]
        writing.write_in(api_db, "reached", lines)


if __name__ == "__main__":
    gc.disable()  # syntax trees are many small objects, and none is ever thrown away
    main(Path(sys.argv[1]), sys.argv[2:])
