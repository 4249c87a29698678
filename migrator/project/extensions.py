"""What a Python file says of the extension modules that are built from C++ and CUDA sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Optional

from migrator.light import Declared, NamedTuple
from migrator.names.index import ModuleIndex
from migrator.names.made_from import made_from
from migrator.names.tree import bare_name, called_name, string_value
from migrator.native.model import NativeFile, is_cuda, is_native

# Words of which a Python file that defines an extension has one.
MAY_BUILD = ("cpp_extension", "CUDAExtension", "OpBuilder", "cuda_sources", ".cu'", '.cu"')
_CALLS = {
    "CUDAExtension": "setup",
    "CppExtension": "setup",
    "Extension": "setup",
    "load": "load",
    "load_inline": "inline",
}
_LOADERS = r"(?:^|[._])cpp_extension\.(load|load_inline)$"
_HANDING_ON = ("glob", "iglob", "rglob", "list", "sorted", "str", "Path", "abspath", "relpath", "set")
_SOURCE_KEYWORDS = ("sources", "sources_cuda", "cuda_sources", "cpp_sources")


class Extension(NamedTuple):
    """An extension module: its dotted ``name``, and its sources as far as they are known (globs among
    them).

    ``kind`` is setup (built by setup.py), load, inline, or builder: a class that compiles when its
    ``load()`` is called; npu is a builder for NPUs.
    ``complete`` is False where a part of the sources is unknown. ``variables`` are the names that
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


def scan_extensions(file: str, index: ModuleIndex) -> tuple[Extension, ...]:
    """The extension modules that a file builds, in the order of their lines. Nothing is run."""
    for statement in index.statements:
        index.expand(statement)
    found = [_from_call(file, call, _Values(index)) for call in reversed(index.calls)]
    found += [_from_builder(file, owner, index) for owner in index.classes]
    return tuple(sorted(filter(None, found), key=lambda extension: extension.line))


def _from_call(file: str, call: ast.Call, values: _Values) -> Extension | None:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    called, variables = values.called(call), values.variables(call)
    last = max(called, key=_CALLS.__contains__)  # of those that a name may stand for
    kind = _CALLS.get(last, "")
    if kind in ("load", "inline"):  # torch's, and no other
        if not re.search(_LOADERS, values.index.qualified_name(call.func) or ast.unparse(call.func)):
            return None
    if kind == "inline":
        return _inline(file, call, keywords, values)
    if not kind and not ({"name", "sources"} <= set(keywords) and "ext" in last.lower()):
        # get_plugin(module_name=…, sources=["a.cu"]): a helper around load, by what it is given
        name = values.text(keywords.get("module_name") or keywords.get("name"))
        sources, complete = values.all_texts([keywords["sources"]]) if "sources" in keywords else ([], False)
        if not name or not any(map(is_cuda, sources)):
            return None
        return Extension(name, "load", file, call.lineno, tuple(sources), complete, True, (), variables)
    kind = kind or "setup"  # make_cuda_ext(name=…, module=…, sources=…), a helper around CUDAExtension
    name = values.text(keywords.get("name") or (call.args[0] if call.args else None))
    module = values.text(keywords.get("module"))
    if module and name:
        name = f"{module}.{name}"
    if kind == "setup" and (name is None or "*" in name):
        return None  # in a helper that gets the name
    given = [keywords[key] for key in _SOURCE_KEYWORDS if key in keywords] or call.args[1:2]
    sources, complete = values.all_texts(given)
    prefix = module.replace(".", "/") + "/" if module else ""
    cuda = "CUDAExtension" in called or any(map(is_cuda, sources)) or "sources_cuda" in keywords
    cuda = cuda or getattr(keywords.get("with_cuda"), "value", None) is True
    cuda = cuda or (kind == "load" and not complete and not sources)
    names = tuple(prefix + source for source in sources)
    complete = complete and bool(names)
    return Extension(name or "", kind, file, call.lineno, names, complete, cuda, (), variables)


def _inline(file: str, call: ast.Call, keywords: dict[str, ast.expr], values: _Values) -> Extension:
    from migrator.native.functions import scan_native

    every = {**dict(zip(("name", "cpp_sources", "cuda_sources", "functions"), call.args)), **keywords}
    texts, complete = values.all_texts([every[k] for k in ("cpp_sources", "cuda_sources") if k in every])
    functions, _ = values.all_texts([every["functions"]] if "functions" in every else [])
    native = scan_native(file, "\n".join(texts))
    cuda = "cuda_sources" in every or native.cuda
    name, variables = values.text(every.get("name")) or "", values.variables(call)
    return Extension(
        name, "inline", file, call.lineno, (), complete, cuda, tuple(functions), variables, native
    )


def _from_builder(file: str, owner: ast.ClassDef, index: ModuleIndex) -> Extension | None:
    """A class with a method ``sources`` that names CUDA files, and a base that builds operators."""
    bases = [ast.unparse(base) for base in owner.bases]
    if not any(base.endswith("Builder") or "Extension" in base for base in bases):
        return None
    if any(base.rpartition(".")[2].upper().startswith("NPU") for base in bases):
        return Extension(owner.name, "npu", file, owner.lineno)
    methods = {item.name: item for item in owner.body if isinstance(item, ast.FunctionDef)}
    listed = methods.get("sources") or methods.get("sources_files")
    if listed is None:
        return None
    lists = (node for node in ast.walk(listed) if isinstance(node, (ast.List, ast.Return)))
    given = [node.value if isinstance(node, ast.Return) else node for node in lists]
    texts, _ = _Values(index).all_texts([node for node in given if node is not None])
    sources = tuple(text for text in texts if is_native(text))  # and not compiler flags
    if not any(map(is_cuda, sources)):
        return None
    return Extension(owner.name, "builder", file, owner.lineno, sources, cuda=True)


class _Values(Declared):
    """The texts that expressions of a file can stand for, from constants and plain assignments."""

    index: ModuleIndex

    def variables(self, call: ast.Call) -> tuple[str, ...]:
        """The plain names that get what a call gives: also ``load(…) if torch.version.cuda else None``."""
        parent = self.index.parent(self.index.chosen(call))
        targets = parent.targets if isinstance(parent, ast.Assign) else []
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        return (*names, *(target.attr for target in targets if isinstance(target, ast.Attribute)))

    def called(self, call: ast.Call) -> list[str]:
        """The last names of what a call may call: ``extension`` is what was assigned to it."""
        return [bare_name(each) for each in (call.func, *made_from(self.index, call.func))]

    def assigned(self, node: ast.Name) -> list[ast.expr]:
        """What a name is assigned; nothing where a caller gives it."""
        bindings = self.index.bindings(node)
        added = (b.node.value if isinstance(b.node, ast.AugAssign) else b.value for b in bindings)
        known = all(binding.kind != "param" for binding in bindings)
        return [value for value in added if value is not None and known]

    def text(self, node: ast.expr | None, depth: int = 0) -> str | None:
        """The one text of an expression; None where it is none or unknown."""
        return next(self._texts(node, depth), None)

    def all_texts(self, nodes: Sequence[ast.expr]) -> tuple[list[str], bool]:
        """Every text in the expressions, and whether those are all."""
        found = dict.fromkeys(text for node in nodes for text in self._texts(node, 0))
        return [text for text in found if text is not None], None not in found

    def _texts(self, node: ast.expr | None, depth: int) -> Iterator[str | None]:
        parts: Iterable[ast.expr | None] = (None,)  # whose texts are those of the expression
        if depth > 8:
            node = None
        if isinstance(node, ast.Constant):
            yield string_value(node)
            return
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            parts = node.elts
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            parts = [node.generators[0].iter]
        elif isinstance(node, ast.Name):
            values: list[ast.expr | None] = [*self.assigned(node)] or [None]
            parts = [v for v in values if not (isinstance(v, ast.Name) and v.id == node.id)]
        elif isinstance(node, ast.JoinedStr):
            inner = (part.value if isinstance(part, ast.FormattedValue) else part for part in node.values)
            # An unknown beginning (the folder) does no harm to a path's end.
            yield "".join(_or_star(self.text(part, depth + 1)) for part in inner)
            return
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
            left, right = list(self._texts(node.left, depth + 1)), list(self._texts(node.right, depth + 1))
            if self._is_list(node.left) or self._is_list(node.right):
                yield from [*left, *right]
            elif isinstance(node.op, ast.Div):
                yield f"{left[0] or '*'}/{right[0]}" if right and right[0] else None
            elif len(left) == len(right) == 1 and right[0]:
                yield (left[0] or "*") + right[0]
            else:
                yield from [*left, *right]
            return
        elif isinstance(node, ast.Call) and called_name(node) in ("join", "joinpath"):
            joined = [self.text(argument, depth + 1) for argument in node.args]
            yield "/".join(map(_or_star, joined)) if joined and joined[-1] else None
            return
        elif isinstance(node, ast.Call) and called_name(node) in _HANDING_ON:
            parts = node.args[:1] or [None]
        for part in parts:
            if part is None:
                yield None
            else:
                yield from self._texts(part, depth + 1)

    def _is_list(self, node: ast.expr, depth: int = 0) -> bool:
        if isinstance(node, ast.Call):
            return called_name(node) in ("glob", "iglob", "rglob", "list", "sorted")
        if isinstance(node, ast.Name) and depth < 8:
            return any(self._is_list(value, depth + 1) for value in self.assigned(node))
        if isinstance(node, ast.BinOp):
            return self._is_list(node.left, depth) or self._is_list(node.right, depth)
        return isinstance(node, (ast.List, ast.ListComp))


def _or_star(text: str | None) -> str:
    return "*" if text is None else text
