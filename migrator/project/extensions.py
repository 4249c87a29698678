"""What a Python file says of the extension modules that are built from C++ and CUDA sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from migrator.names.tree import children
from migrator.native.model import NativeFile
from migrator.native.suffixes import CUDA_SUFFIXES, is_native

_MAY_BUILD = ("cpp_extension", "CUDAExtension", "OpBuilder", "cuda_sources", ".cu'", '.cu"')
_CALLS = {
    "CUDAExtension": "setup",
    "CppExtension": "setup",
    "Extension": "setup",
    "load": "load",
    "load_inline": "inline",
}
_LOADERS = re.compile(r"(?:^|[._])cpp_extension\.(load|load_inline)$")
_SOURCE_KEYWORDS = ("sources", "sources_cuda", "cuda_sources", "cpp_sources")


@dataclass(frozen=True)
class Extension:
    """An extension module: its dotted ``name``, and its sources as far as they can be told (globs among
    them).

    ``kind`` is setup (built by setup.py), load, inline, or builder: a class that compiles when its
    ``load()`` is called; npu is a builder for NPUs.
    ``complete`` is False where a part of the sources could not be told. ``variables`` are the names that
    hold the loaded module in its file. ``functions`` are what load_inline binds.
    """

    name: str
    kind: str
    file: str
    line: int
    sources: tuple[str, ...] = ()
    complete: bool = True
    cuda: bool = False
    functions: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    text: Optional[NativeFile] = None

    @property
    def names_no_sources(self) -> bool:
        """Whether ``load`` is given sources that its file does not name: they are taken for CUDA at first."""
        return self.kind == "load" and not self.sources and not self.complete

    @property
    def short(self) -> str:
        """The last part of its name."""
        return self.name.rpartition(".")[2]


def may_build(text: str) -> bool:
    """A quick look: whether a Python file can define an extension."""
    return any(word in text for word in _MAY_BUILD)


def scan_extensions(file: str, tree: ast.Module) -> tuple[Extension, ...]:
    """The extension modules that a file builds, in the order of their lines. Nothing is run."""
    seen = _look_through(tree)
    values = _Values(seen)
    found: list[Extension] = []
    for node, parameters in seen.calls_and_classes:
        values.hidden = parameters
        if isinstance(node, ast.Call):
            extension = _from_call(file, node, values, seen.variables.get(node, ()))
        else:
            extension = _from_builder(file, node, values)
        if extension is not None:
            found.append(extension)
    return tuple(sorted(found, key=lambda extension: extension.line))


@dataclass
class _Seen:
    """What one walk over a file's tree collects.

    Calls and classes come with the parameters around them, which hide the module's names. ``variables``
    are the plain names that calls' results get.
    """

    calls_and_classes: list[tuple[ast.Call | ast.ClassDef, frozenset[str]]] = field(default_factory=list)
    assigned: dict[str, list[ast.expr]] = field(default_factory=dict)
    imports: list[ast.Import | ast.ImportFrom] = field(default_factory=list)
    variables: dict[ast.AST, tuple[str, ...]] = field(default_factory=dict)


def _look_through(tree: ast.Module) -> _Seen:
    seen = _Seen()
    stack: list[tuple[Any, frozenset[str]]] = [(tree, frozenset())]
    while stack:
        node, parameters = stack.pop()
        cls = node.__class__
        if cls is ast.FunctionDef or cls is ast.AsyncFunctionDef:
            given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            parameters = parameters.union(argument.arg for argument in given)
        elif cls is ast.Call or cls is ast.ClassDef:
            seen.calls_and_classes.append((node, parameters))
        elif cls is ast.Assign:
            _assigned(node, seen)
        elif cls is ast.AugAssign and node.target.__class__ is ast.Name:
            seen.assigned.setdefault(node.target.id, []).append(node.value)
        elif cls is ast.Import or cls is ast.ImportFrom:
            seen.imports.append(node)
        stack += [(child, parameters) for child in children(node)]
    return seen


def _assigned(node: ast.Assign, seen: _Seen) -> None:
    names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    for name in names:
        seen.assigned.setdefault(name, []).append(node.value)
    if isinstance(node.value, ast.Call):
        names += [target.attr for target in node.targets if isinstance(target, ast.Attribute)]
        seen.variables[node.value] = tuple(names)


def _from_call(file: str, call: ast.Call, values: _Values, variables: tuple[str, ...]) -> Extension | None:
    name = dotted(call.func)
    last = name.rpartition(".")[2]
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    kind = _CALLS.get(last, "")
    if kind in ("load", "inline") and not values.is_loader(name):
        return None
    if not kind and not ({"name", "sources"} <= set(keywords) and "ext" in last.lower()):
        return None
    kind = kind or "setup"  # make_cuda_ext(name=…, module=…, sources=…), a helper around CUDAExtension
    called = values.text(keywords.get("name") or (call.args[0] if call.args else None))
    module = values.text(keywords.get("module"))
    if module and called:
        called = f"{module}.{called}"
    if kind == "setup" and (called is None or "*" in called):
        return None  # in a helper that is told the name
    if kind == "inline":
        return _inline(file, call, called or "", keywords, values, variables)
    given = [keywords[key] for key in _SOURCE_KEYWORDS if key in keywords]
    if not given and len(call.args) > 1:
        given = [call.args[1]]
    sources, complete = values.all_texts(given)
    prefix = module.replace(".", "/") + "/" if module else ""
    cuda = last == "CUDAExtension" or any(_is_cuda_file(source) for source in sources)
    cuda = cuda or "sources_cuda" in keywords or (kind == "load" and not complete and not sources)
    names = tuple(prefix + source for source in sources)
    return Extension(
        called or "", kind, file, call.lineno, names, complete and bool(names), cuda, (), variables
    )


def _inline(
    file: str,
    call: ast.Call,
    name: str,
    keywords: dict[str, ast.expr],
    values: _Values,
    variables: tuple[str, ...],
) -> Extension:
    positional = dict(zip(("name", "cpp_sources", "cuda_sources", "functions"), call.args))
    every = {**positional, **keywords}
    texts, complete = values.all_texts(
        [every[key] for key in ("cpp_sources", "cuda_sources") if key in every]
    )
    functions, _ = values.all_texts([every["functions"]] if "functions" in every else [])
    from migrator.native.functions import scan_native

    native = scan_native(file, "\n".join(texts))
    cuda = "cuda_sources" in every or native.cuda
    return Extension(
        name, "inline", file, call.lineno, (), complete, cuda, tuple(functions), variables, native
    )


def _from_builder(file: str, owner: ast.ClassDef, values: _Values) -> Extension | None:
    """A class with a method ``sources`` that names CUDA files, and a base that builds operators."""
    bases = [dotted(base) for base in owner.bases]
    if not any(base.endswith("Builder") or "Extension" in base for base in bases):
        return None
    if any(base.rpartition(".")[2].upper().startswith("NPU") for base in bases):
        return Extension(owner.name, "npu", file, owner.lineno)
    methods = {item.name: item for item in owner.body if isinstance(item, ast.FunctionDef)}
    listed = methods.get("sources") or methods.get("sources_files")
    if listed is None:
        return None
    texts, _ = values.all_texts([listed])
    sources = [text for text in texts if is_native(text)]  # and not compiler flags
    if not any(_is_cuda_file(source) for source in sources):
        return None
    return Extension(owner.name, "builder", file, owner.lineno, tuple(sources), cuda=True)


def _is_cuda_file(source: str) -> bool:
    return any(source.endswith(suffix) for suffix in CUDA_SUFFIXES)


class _Values:
    """The texts that expressions of one file can stand for, from constants and plain assignments."""

    def __init__(self, seen: _Seen) -> None:
        self.assigned = seen.assigned
        self.imported: dict[str, str] = {}
        self.hidden: frozenset[str] = frozenset()
        for node in seen.imports:
            module = f"{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                first = alias.name.split(".")[0]
                if module or alias.asname:
                    self.imported[alias.asname or alias.name] = f"{module}{alias.name}"
                else:
                    self.imported[first] = first

    def is_loader(self, dotted: str) -> bool:
        """Whether a name is torch's ``load`` or ``load_inline``."""
        first, dot, rest = dotted.partition(".")
        return bool(_LOADERS.search(self.imported.get(first, first) + dot + rest))

    def text(self, node: ast.expr | None) -> str | None:
        """The one text of an expression; None where it is none or cannot be told."""
        if node is None:
            return None
        found = list(self._texts(node, 0))
        return found[0] if found and found[0] is not None else None

    def all_texts(self, nodes: list[Any]) -> tuple[list[str], bool]:
        """Every text in the expressions (or in what a function returns), and whether those are all."""
        found: list[str | None] = []
        for node in nodes:
            if isinstance(node, ast.FunctionDef):
                found += [
                    text
                    for inner in ast.walk(node)
                    if isinstance(inner, (ast.List, ast.Return))
                    and getattr(inner, "value", inner) is not None
                    for text in self._texts(inner.value if isinstance(inner, ast.Return) else inner, 0)
                ]
            else:
                found += list(self._texts(node, 0))
        texts = list(dict.fromkeys(text for text in found if text is not None))
        return texts, None not in found

    def _texts(self, node: ast.expr | None, depth: int) -> Iterator[str | None]:
        if node is None or depth > 8:
            yield None
        elif isinstance(node, ast.Constant):
            yield node.value if isinstance(node.value, str) else None
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            for item in node.elts:
                yield from self._texts(item, depth + 1)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            yield from self._texts(node.generators[0].iter, depth + 1)
        elif isinstance(node, ast.Name):
            values = [] if node.id in self.hidden else self.assigned.get(node.id, [])
            if not values:
                yield None
            for value in values:
                if not (isinstance(value, ast.Name) and value.id == node.id):
                    yield from self._texts(value, depth + 1)
        elif isinstance(node, ast.JoinedStr):
            parts = [
                self._one(part.value if isinstance(part, ast.FormattedValue) else part, depth)
                for part in node.values
            ]
            # An unknown beginning (the folder) does no harm to a path's end.
            yield "".join("*" if part is None else part for part in parts)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            yield from self._sum(node, depth)
        elif isinstance(node, ast.Call):
            yield from self._call(node, depth)
        else:
            yield None

    def _one(self, node: ast.expr, depth: int) -> str | None:
        return next(iter(self._texts(node, depth + 1)), None)

    def _sum(self, node: ast.BinOp, depth: int) -> Iterator[str | None]:
        left, right = list(self._texts(node.left, depth + 1)), list(self._texts(node.right, depth + 1))
        if self._is_list(node.left) or self._is_list(node.right):
            yield from [*left, *right]
        elif isinstance(node.op, ast.Div):
            yield f"{left[0] or '*'}/{right[0]}" if right and right[0] else None
        elif len(left) == len(right) == 1 and right[0]:
            yield (left[0] or "*") + right[0]
        else:
            yield from [*left, *right]

    def _is_list(self, node: ast.expr, depth: int = 0) -> bool:
        if isinstance(node, ast.Call):
            return dotted(node.func).rpartition(".")[2] in ("glob", "iglob", "rglob", "list", "sorted")
        if isinstance(node, ast.Name) and depth < 8:
            return any(self._is_list(value, depth + 1) for value in self.assigned.get(node.id, ()))
        if isinstance(node, ast.BinOp):
            return self._is_list(node.left, depth) or self._is_list(node.right, depth)
        return isinstance(node, (ast.List, ast.ListComp))

    def _call(self, node: ast.Call, depth: int) -> Iterator[str | None]:
        last = dotted(node.func).rpartition(".")[2]
        if last in ("join", "joinpath"):
            parts = [self._one(argument, depth) for argument in node.args]
            yield "/".join("*" if part is None else part for part in parts) if parts and parts[-1] else None
        elif last in ("glob", "iglob", "rglob", "list", "sorted", "str", "Path", "abspath", "relpath", "set"):
            if not node.args:
                yield None
            for argument in node.args[:1]:
                yield from self._texts(argument, depth + 1)
        else:
            yield None


def dotted(node: ast.AST) -> str:
    """A dotted name as it is written, with ? for what is none."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"
