"""The CUDA operators of a project: all its C++ and CUDA files and its extension modules, taken together."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from fnmatch import translate
from functools import cache
from posixpath import commonprefix
from typing import Optional

from migrator.language import _
from migrator.light import Frozen, NamedTuple
from migrator.native.model import Binding, NativeFile, NativeFunction, is_cuda, is_cuda_name
from migrator.project.extensions import Extension
from migrator.project.module_names import module_name

_BUILT_NAME = "TORCH_EXTENSION_NAME"
_PASTED = frozenset({"_cuda", "_gpu", "_npu"})  # as words: a macro calls FUNCTION##_cuda(…)
_Placed = tuple[NativeFile, NativeFunction]


class Operator(NamedTuple):
    """A CUDA kernel, or a function for Python that reaches CUDA: where it is, and how it does.

    ``kind`` is kernel or bound. ``npu`` tells that an implementation for NPUs stands beside the CUDA one.
    ``parameters`` are the names of those of the function that is bound; none where it is not known which.
    """

    kind: str
    name: str
    file: str
    line: int
    reason: str = ""
    npu: bool = False
    parameters: tuple[str, ...] = ()


class Module(NamedTuple):
    """An extension module with CUDA operators, and the file that builds it.

    ``operators`` is None where it is unknown what it binds; without any, what it binds may be for CUDA by its
    name. ``npu`` tells that all of it is there for NPUs too.
    """

    name: str
    operators: Optional[Mapping[str, Operator]]
    file: str = ""
    npu: bool = False


class Catalog(Frozen):
    """What Python files have to know of a project's CUDA operators.

    ``in_file`` are the operators by the file that defines them, ``modules`` the extension modules by their
    names, ``torch_ops`` what stands below ``torch.ops`` (``ns.op``), ``builders`` the classes whose
    ``load()`` gives a module, ``extensions`` what is built where, ``variables`` the modules by file and name.
    """

    in_file: Mapping[str, tuple[Operator, ...]] = field(default_factory=dict)
    modules: Mapping[str, Module] = field(default_factory=dict)
    torch_ops: Mapping[str, Operator] = field(default_factory=dict)
    builders: Mapping[str, Module] = field(default_factory=dict)
    extensions: Mapping[tuple[str, int], Extension] = field(default_factory=dict)
    variables: Mapping[tuple[str, str], Module] = field(default_factory=dict)

    def words(self) -> frozenset[str]:
        """Words of which a Python file that uses one of these operators holds one: what holds operators."""
        last = (name.rpartition(".")[2] for name in self.modules)
        spaces = (name.partition(".")[0] for name in self.torch_ops)
        return frozenset({*last, *spaces, *self.builders, *(variable for _file, variable in self.variables)})

    def function_names(self) -> frozenset[str]:
        """The operators' own names, of which many are common words: ``forward``."""
        modules = (*self.modules.values(), *self.builders.values(), *self.variables.values())
        bound = (name for module in modules for name in module.operators or ())
        return frozenset({*bound, *(name.rpartition(".")[2] for name in self.torch_ops)})


def catalog(files: Sequence[NativeFile], extensions: Iterable[Extension]) -> Catalog:
    """Put the facts of all files together."""
    listed = list(extensions)
    if files and not any(file.cuda or file.kernels for file in files):
        listed = [item._replace(cuda=False) if item.names_no_sources else item for item in listed]
    graph = _Graph([*files, *(extension.text for extension in listed if extension.text is not None)])
    found: dict[str, list[Operator]] = {}
    bound: list[tuple[Binding, Operator]] = []
    plain: set[str] = set()  # files that bind what touches no CUDA
    for file in files:
        for kernel in file.kernels:
            found.setdefault(file.name, []).append(Operator("kernel", kernel.name, file.name, kernel.line))
        for binding in file.bindings:
            operator = graph.operator(file, binding)
            if operator is None:
                plain.add(file.name)
            else:
                bound.append((binding, operator))
                found.setdefault(file.name, []).append(operator)
    torch_ops: dict[str, Operator] = {}
    for binding, operator in bound:
        names = [binding.module] if binding.kind == "torch" else []
        if names == [_BUILT_NAME]:
            names = [extension.short for extension in listed if builds(extension, operator.file)]
        for name in names:
            torch_ops.setdefault(f"{name}.{operator.name}", operator)
    in_file = {
        name: tuple(sorted(dict.fromkeys(operators), key=lambda operator: operator.line))
        for name, operators in found.items()
    }
    modules: dict[str, Module] = {}
    builders: dict[str, Module] = {}
    variables: dict[tuple[str, str], Module] = {}
    pybind = [(binding.module, operator) for binding, operator in bound if binding.kind == "pybind"]
    files_bound = {operator.file for _binding, operator in bound}
    claimed = {file for file in files_bound if any(builds(each, file) for each in listed)}
    npu_builders = {extension.name for extension in listed if extension.kind == "npu"}
    for extension in (each for each in listed if each.kind != "npu"):
        operators, known = _bound_by(extension, pybind, claimed, plain)
        if not operators and not extension.cuda:
            continue
        npu = extension.name in npu_builders or (bool(operators) and all(o.npu for o in operators.values()))
        name = extension.name if "*" not in extension.name else "".join(extension.variables[:1])
        module = Module(name, operators if known else None, extension.file, npu)
        if extension.kind == "builder":
            builders[extension.name] = module
        elif extension.kind == "setup":
            modules.setdefault(extension.name, module)
        for variable in extension.variables if extension.kind in ("load", "inline") else ():
            variables[extension.file, variable] = module
            modules.setdefault(f"{module_name(extension.file)}.{variable}", module)
    for name, operator in pybind:
        if name not in ("", _BUILT_NAME) and not any(known.rpartition(".")[2] == name for known in modules):
            same = {each.name: each for module_of, each in pybind if module_of == name}
            modules[name] = Module(name, same, operator.file)
    places = {(extension.file, extension.line): extension for extension in listed}
    return Catalog(in_file, modules, torch_ops, builders, places, variables)


def _bound_by(
    extension: Extension, pybind: list[tuple[str, Operator]], claimed: set[str], plain: set[str]
) -> tuple[dict[str, Operator], bool]:
    """The operators that an extension module binds, and whether it is known what it binds."""
    if extension.functions:
        made = (extension.file, extension.line, _("a function of load_inline"))
        names = extension.functions if extension.cuda else ()
        return {name: Operator("bound", name, *made) for name in names}, True
    if extension.sources:
        operators = {each.name: each for _module, each in pybind if builds(extension, each.file)}
        return operators, bool(operators) or any(builds(extension, name) for name in plain)
    modules = ("", _BUILT_NAME, extension.short)
    operators = {o.name: o for module, o in pybind if o.file not in claimed and module in modules}
    return operators, bool(operators) or not extension.cuda


def builds(extension: Extension, file: str) -> bool:
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
                if function.owner and function.name in ("forward", "backward"):  # called by Owner::apply(…)
                    self.by_name.setdefault(function.owner, []).append((file, function))
            for key, names in file.registered:
                self._registered.setdefault(key, []).append((file, names))
        self._declared = {name for file in files for name in file.declared}
        self._after: dict[tuple[str, int], list[_Placed]] = {}
        self._nearest = cache(self._look_near)

    def operator(self, file: NativeFile, binding: Binding) -> Operator | None:
        """The operator that a binding makes; None where nothing on its way touches CUDA."""
        target = binding.target
        way = self._way_to_cuda(file, target)
        if way is None and binding.key == "CUDA":
            way = _("it is registered for CUDA")
        if way is None:
            missing = [name for name in sorted(target.mentions) if name not in self.by_name]
            if len(missing) < len(target.mentions) or not missing:
                return None
            named = next(filter(is_cuda_name, missing), "")
            if not named and not is_cuda(file.name):
                return None
            way = _("{named}, whose source is missing", named=named or missing[0])
        # It, or what it mentions, uses torch_npu's or CANN's interface.
        npu = any(function.npu for _, function in self._reached(file, target)) or binding.key == "PrivateUse1"
        own = [near for each in sorted(target.mentions) for _file, near in self._nearest(file.name, each)]
        parameters = own[0].parameters if len(own) == 1 else ()
        return Operator("bound", binding.name, file.name, target.line, way, npu, parameters)

    def _way_to_cuda(self, file: NativeFile, start: NativeFunction) -> str | None:
        """The nearest place at which a function, or one that it mentions, touches CUDA; None without one."""
        for where, function in self._reached(file, start):
            if function.cuda is not None:
                line, word = function.cuda
                launched = word.startswith("<<<")
                what = _("launches {word}", word=word[3:]) if launched else _("uses {word}", word=word)
                by = f"{function.name} " if function is not start else ""
                return f"{by}{what} ({where.name}:{line})"
            undefined = (name for name in function.mentions & self._declared if name not in self.by_name)
            missing = min(filter(is_cuda_name, undefined), default="")
            if missing:
                return _("{missing}, whose source is missing", missing=missing)
        return None

    def _reached(self, file: NativeFile, start: NativeFunction) -> Iterator[_Placed]:
        """A function and all that it leads to, the nearest first."""
        seen = {id(start)}
        queue = deque([(file, start)])
        while queue:
            where, function = queue.popleft()
            yield where, function
            key = where.name, id(function)
            if key not in self._after:
                named = [(where, name) for name in sorted(function.mentions)]
                registered = self._registered.get(function.name, ())
                named += [(other, name) for other, names in registered for name in sorted(names)]
                after = [near for other, name in named for near in self._nearest(other.name, name)]
                pasted = {
                    n + end for _, near in after for end in near.mentions & _PASTED for n in function.mentions
                }
                self._after[key] = after + [
                    n for each in sorted(pasted) for n in self._nearest(where.name, each)
                ]
            for placed in self._after[key]:
                if id(placed[1]) not in seen:
                    seen.add(id(placed[1]))
                    queue.append(placed)

    def _look_near(self, file: str, name: str) -> list[_Placed]:
        """The definitions of a name whose folder is nearest: each extension has its own ``forward``."""
        # Methods are found by their objects' types only, which are not followed; constructors are functions.
        placed = self.by_name.get(name, ())
        known = [found for found in placed if not found[1].owner or found[1].owner == name]
        if len(known) < 2:
            return known
        if here := [found for found in known if found[0].name == file]:
            return here
        folders = ((file.split("/")[:-1], found[0].name.split("/")[:-1]) for found in known)
        shared = [len(commonprefix(pair)) for pair in folders]
        return [found for found, depth in zip(known, shared) if depth == max(shared)]
