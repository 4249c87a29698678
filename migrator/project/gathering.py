"""The CUDA operators of a project: all its C++ and CUDA files and its extension modules, taken together."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import translate
from functools import cache
from itertools import takewhile

from migrator.language import _
from migrator.native.files import is_cuda
from migrator.native.functions import is_cuda_name
from migrator.native.model import Binding, NativeFile, NativeFunction
from migrator.project.extensions import Extension
from migrator.project.module_names import module_name
from migrator.project.operators import Catalog, Module, Operator

_BUILT_NAME = "TORCH_EXTENSION_NAME"

_Placed = tuple[NativeFile, NativeFunction]
_Bound = tuple[Binding, Operator]


def catalog(files: Sequence[NativeFile], extensions: Iterable[Extension]) -> Catalog:
    """Put the facts of all files together."""
    listed = list(extensions)
    if files and not any(file.cuda or file.kernels for file in files):
        listed = [item._replace(cuda=False) if item.names_no_sources else item for item in listed]
    inline = [extension.text for extension in listed if extension.text is not None]
    graph = _Graph([*files, *inline])
    found: dict[str, list[Operator]] = {}
    bound: list[_Bound] = []
    plain: set[str] = set()  # files that bind what touches no CUDA
    for file in files:
        for kernel in file.kernels:
            found.setdefault(file.name, []).append(Operator("kernel", kernel.name, file.name, kernel.line))
        for binding in file.bindings:
            operator = _operator(file, binding, graph)
            if operator is None:
                plain.add(file.name)
            else:
                bound.append((binding, operator))
                found.setdefault(file.name, []).append(operator)
    torch_ops = _torch_ops(bound, listed)
    modules, builders, variables = _modules(listed, bound, plain)
    in_file = {
        name: tuple(sorted(dict.fromkeys(operators), key=lambda operator: operator.line))
        for name, operators in found.items()
    }
    places = {(extension.file, extension.line): extension for extension in listed}
    return Catalog(in_file, modules, torch_ops, builders, places, variables)


def _operator(file: NativeFile, binding: Binding, graph: _Graph) -> Operator | None:
    """The operator that a binding makes; None where nothing on its way touches CUDA."""
    way = graph.way_to_cuda(file, binding.target)
    if way is None and binding.key == "CUDA":
        way = _("it is registered for CUDA")
    if way is None:
        missing = [name for name in sorted(binding.target.mentions) if name not in graph.by_name]
        if len(missing) < len(binding.target.mentions) or not missing:
            return None
        named = next((name for name in missing if is_cuda_name(name)), "")
        if not named and not is_cuda(file.name):
            return None
        way = _("{named}, whose source is missing", named=named or missing[0])
    npu = graph.reaches_npu(file, binding.target) or binding.key == "PrivateUse1"
    return Operator("bound", binding.name, file.name, binding.target.line, way, npu)


def _torch_ops(bound: list[_Bound], extensions: list[Extension]) -> dict[str, Operator]:
    found: dict[str, Operator] = {}
    for binding, operator in bound:
        names = [binding.module] if binding.kind == "torch" else []
        if names == [_BUILT_NAME]:
            names = [extension.short for extension in extensions if _builds(extension, operator.file)]
        for name in names:
            found.setdefault(f"{name}.{operator.name}", operator)
    return found


def _modules(
    extensions: list[Extension], bound: list[_Bound], plain_files: set[str]
) -> tuple[dict[str, Module], dict[str, Module], dict[tuple[str, str], Module]]:
    """The extension modules by name, by the class that builds them, and by the variable that holds them."""
    modules: dict[str, Module] = {}
    builders: dict[str, Module] = {}
    variables: dict[tuple[str, str], Module] = {}
    files = {operator.file for _, operator in bound}
    claimed = {file for file in files if any(_builds(item, file) for item in extensions)}
    npu_builders = {extension.name for extension in extensions if extension.kind == "npu"}
    pybind = [(binding.module, operator) for binding, operator in bound if binding.kind == "pybind"]
    for extension in extensions:
        if extension.kind == "npu":
            continue
        if extension.sources:
            mine = {o.name: o for _, o in pybind if _builds(extension, o.file)}
            known = mine or any(_builds(extension, name) for name in plain_files)
        else:
            names = ("", _BUILT_NAME, extension.short)
            mine = {o.name: o for module, o in pybind if o.file not in claimed and module in names}
            known = bool(mine) or not extension.cuda
        if extension.functions:
            mine = {
                name: Operator("bound", name, extension.file, extension.line, _("a function of load_inline"))
                for name in extension.functions
                if extension.cuda
            }
            known = True
        if not mine and (known or not extension.cuda):
            continue
        npu = extension.name in npu_builders or (bool(mine) and all(o.npu for o in mine.values()))
        name = extension.name if "*" not in extension.name else "".join(extension.variables[:1])
        module = Module(name, mine if known else None, extension.file, npu)
        if extension.kind == "builder":
            builders[extension.name] = module
        elif extension.kind == "setup":
            modules.setdefault(extension.name, module)
        for variable in extension.variables if extension.kind in ("load", "inline") else ():
            variables[extension.file, variable] = module
            modules.setdefault(f"{module_name(extension.file)}.{variable}", module)
    for name, operator in pybind:
        if name not in ("", _BUILT_NAME) and not any(known.rpartition(".")[2] == name for known in modules):
            same = {o.name: o for module, o in pybind if module == name}
            modules[name] = Module(name, same, operator.file)
    return modules, builders, variables


def _builds(extension: Extension, file: str) -> bool:
    """Whether a file is one of an extension's sources. Their folder may be written in any way."""
    return bool(extension.sources) and _any_of(extension.sources).match(file) is not None


@cache
def _any_of(sources: tuple[str, ...]) -> re.Pattern[str]:
    ends = (translate(re.sub(r"^[*./]+/", "", source)) for source in sources)
    return re.compile(f"(?:.*/)?(?:{'|'.join(ends)})")


class _Graph:
    """Which functions of all files mention which, and which of them touch CUDA or an NPU."""

    def __init__(self, files: Sequence[NativeFile]) -> None:
        self.by_name: dict[str, list[_Placed]] = {}
        self._registered: dict[str, list[tuple[NativeFile, frozenset[str]]]] = {}
        for file in files:
            for function in file.functions:
                self.by_name.setdefault(function.name, []).append((file, function))
            for key, names in file.registered:
                self._registered.setdefault(key, []).append((file, names))
        self._declared = {name for file in files for name in file.declared}
        self._after: dict[tuple[str, int], list[_Placed]] = {}
        self._nearest = cache(self._look_near)

    def way_to_cuda(self, file: NativeFile, start: NativeFunction) -> str | None:
        """The nearest place at which a function, or one that it mentions, touches CUDA; None without one."""
        for where, function in self._reached(file, start):
            if function.cuda is not None:
                line, word = function.cuda
                launched = word.startswith("<<<")
                what = _("launches {word}", word=word[3:]) if launched else _("uses {word}", word=word)
                by = f"{function.name} " if function is not start else ""
                return f"{by}{what} ({where.name}:{line})"
            undefined = (name for name in function.mentions & self._declared if name not in self.by_name)
            missing = [name for name in undefined if is_cuda_name(name)]
            if missing:
                return _("{missing}, whose source is missing", missing=min(missing))
        return None

    def reaches_npu(self, file: NativeFile, start: NativeFunction) -> bool:
        """Whether a function, or one that it mentions, uses torch_npu's or CANN's interface."""
        return any(function.npu for _, function in self._reached(file, start))

    def _reached(self, file: NativeFile, start: NativeFunction) -> Iterator[_Placed]:
        """A function and all that it leads to, the nearest first."""
        seen = {id(start)}
        queue = deque([(file, start)])
        while queue:
            where, function = queue.popleft()
            yield where, function
            for after in self._next(where, function):
                if id(after[1]) not in seen:
                    seen.add(id(after[1]))
                    queue.append(after)

    def _next(self, file: NativeFile, function: NativeFunction) -> Sequence[_Placed]:
        key = file.name, id(function)
        if key not in self._after:
            named = [(file, name) for name in sorted(function.mentions)]
            for where, names in self._registered.get(function.name, ()):
                named += [(where, name) for name in sorted(names)]
            self._after[key] = [near for where, name in named for near in self._nearest(where.name, name)]
        return self._after[key]

    def _look_near(self, file: str, name: str) -> list[_Placed]:
        """The definitions of a name whose folder is nearest: each extension has its own ``forward``."""
        # Methods are found by their objects' types only, which are not followed; constructors are functions.
        placed = self.by_name.get(name, ())
        known = [found for found in placed if not found[1].owner or found[1].owner == name]
        if len(known) < 2:
            return known
        shared = [_shared_folders(file, found[0].name) for found in known]
        most = max(shared)
        return [found for found, depth in zip(known, shared) if depth == most]


def _shared_folders(first: str, second: str) -> int:
    if first == second:
        return 1000
    same = (one == other for one, other in zip(first.split("/")[:-1], second.split("/")[:-1]))
    return sum(takewhile(bool, same))
