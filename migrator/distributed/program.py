"""A program: the script that is started, the project's files that it imports, and what names stand for."""

from __future__ import annotations

import ast
import posixpath
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Optional, Union

from migrator.analysis.elsewhere import Definitions
from migrator.analysis.index import ModuleIndex, identifiers
from migrator.distributed.already import is_distributed

Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEPTH = 12
_OTHERS = {"torch", "torchvision", "torchaudio", "numpy", "scipy", "PIL", *getattr(sys, "stdlib_module_names", ())}


@dataclass(frozen=True, eq=False)
class File:
    """One file. ``imports``: the names that its imports bind, with the file and the name there.

    ``by_kind``: its nodes, in the order of the lines; ``stores``: the names and attributes that it sets.
    """

    name: str
    text: str
    index: ModuleIndex
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    by_kind: dict[type, list[Any]] = field(default_factory=dict)
    stores: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in ast.walk(self.index.tree):
            if hasattr(node, "lineno"):
                self.by_kind.setdefault(type(node), []).append(node)
        for nodes in self.by_kind.values():
            nodes.sort(key=_place_in_text)
        for node in self.nodes(ast.Name, ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                self.stores.setdefault(dotted(node), []).append(node)

    def nodes(self, *kinds: type) -> list[Any]:
        """The nodes of these kinds, in the order of the text's lines."""
        found = [node for kind in kinds for node in self.by_kind.get(kind, ())]
        return found if len(kinds) == 1 else sorted(found, key=_place_in_text)

    def called(self, call: ast.Call) -> str:
        """The full name of what a call calls, through import aliases; empty where it is not known."""
        return self.index.qualified_name(call.func)


def _place_in_text(node: Any) -> tuple[int, int]:
    return node.lineno, node.col_offset


@dataclass(frozen=True)
class Program:
    """The files of a program, the entry first. ``calls``: where each function and class of it is called.

    ``families``: for each class those of the project that it inherits from, and those that inherit from it.
    ``elsewhere`` knows more of names than what is read here; ``found`` is what it said of calls.
    """

    entry: File
    files: dict[str, File]
    calls: dict[int, list[tuple[File, ast.Call]]] = field(default_factory=dict)
    families: dict[int, list[tuple[File, ast.ClassDef]]] = field(default_factory=dict)
    elsewhere: Definitions | None = None
    found: dict[int, tuple[File, Definition] | None] = field(default_factory=dict)

    def definition(self, file: File, call: ast.Call) -> tuple[File, Definition] | None:
        """The project's own function, class or method that a call calls."""
        return _definition(self, file, call, _DEPTH)

    def family(self, file: File, owner: ast.ClassDef) -> list[tuple[File, ast.ClassDef]]:
        """A class, those that it inherits from, and those that inherit from it."""
        return [(file, owner), *self.families.get(id(owner), ())]

    def stored(self, file: File, node: Any) -> list[tuple[File, Any, int]]:
        """The values that a name or an attribute has by ``elsewhere``, each with its place in a tuple or -1."""
        found = []
        places = self.elsewhere.places(file.name, file.index, node) if self.elsewhere else []
        for name, line, column in places:
            where = self.files.get(name)
            for one in where.nodes(ast.Name, ast.Attribute) if where else ():
                at = one.end_col_offset - len(one.attr) if isinstance(one, ast.Attribute) else one.col_offset
                if (one.lineno, at) == (line, column) and one is not node and where is not None:
                    found.append((where, *_value(one)))
        return found

    def origins(self, file: File, node: Any) -> list[tuple[File, Any]]:
        """The expressions from which a value comes, through names, parameters, attributes and returns.

        Empty where one of the ways to it is not known.
        """
        try:
            return list(_origins(self, file, node, _DEPTH))
        except _UnknownError:
            return []


class _UnknownError(Exception):
    pass


class AlreadyDistributedError(Exception):
    """A program that is for many cards."""


def load(
    entry: str, read: Callable[[str], Optional[str]], elsewhere: Definitions | None = None
) -> Program:
    """The program of the file ``entry``; ``read`` gives the text of a file, None where there is none.

    ``elsewhere`` is asked where the names say too little. Raises SyntaxError or ValueError where the entry
    cannot be parsed (other such files are left out), AlreadyDistributedError.
    """
    files: dict[str, File] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop(0)
        text = read(name)
        if name in files or text is None:
            continue
        if is_distributed(text):
            raise AlreadyDistributedError
        try:
            index = ModuleIndex(text, identifiers(text))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            if name == entry:
                raise
            continue
        for statement in index.statements:
            index.expand(statement)
        _put_fields(index)
        file = File(name, text, index, {})
        files[name] = file
        for node, bound, module, attribute in _imported(file):
            found = _place(file.name, entry, module, attribute, read)
            if found is None and elsewhere and module.partition(".")[0] not in _OTHERS:
                places = elsewhere.places(file.name, index, node)
                found = (places[0][0], attribute if places[0][1] else "") if len(places) == 1 else None
            if found:
                waiting.append(found[0])
                if bound != "*":
                    file.imports[bound] = found
    program = Program(files[entry], files, elsewhere=elsewhere)
    _put_families(program)
    names = {node.name for file in files.values() for node in file.nodes(*FUNCTIONS, ast.ClassDef)}
    for file in files.values():
        for call in file.nodes(ast.Call):
            definition = program.definition(file, call)
            if definition is None and elsewhere and _last_name(call) in names:
                definition = program.found[id(call)] = _looked_up(program, file, call)
            if definition:
                program.calls.setdefault(id(definition[1]), []).append((file, call))
    return program


def _put_families(program: Program) -> None:
    """Note for each class its bases, the nearest first, and then what inherits from it."""
    bases: dict[int, list[tuple[File, ast.ClassDef]]] = {}
    classes = [(file, node) for file in program.files.values() for node in file.nodes(ast.ClassDef)]
    for file, owner in classes:
        waiting = [(file, owner)]
        while waiting:
            where, one = waiting.pop(0)
            for base in one.bases:
                call = ast.Call(base, [], [])
                found = _definition(program, where, call, _DEPTH)
                if found and isinstance(found[1], ast.ClassDef):
                    known = bases.setdefault(id(owner), [])
                    if found[1] is not owner and all(found[1] is not each for _, each in known):
                        known.append((found[0], found[1]))
                        waiting.append((found[0], found[1]))
    for file, owner in classes:
        program.families[id(owner)] = list(bases.get(id(owner), ()))
        for where, one in classes:
            if any(base is owner for _, base in bases.get(id(one), ())):
                program.families[id(owner)].append((where, one))


def _last_name(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


def _looked_up(program: Program, file: File, call: ast.Call) -> tuple[File, Definition] | None:
    """What ``elsewhere`` says that a call calls."""
    assert program.elsewhere is not None
    found = []
    for name, line, _ in program.elsewhere.places(file.name, file.index, call):
        where = program.files.get(name)
        for node in where.nodes(*FUNCTIONS, ast.ClassDef) if where else ():
            if node.lineno == line and where is not None:
                found.append((where, node))
    return found[0] if len(found) == 1 else None


def _put_fields(index: ModuleIndex) -> None:
    """Put the fields of f-strings, at their places in the text, where ``ast`` has its own."""
    for text in [node for node in ast.walk(index.tree) if isinstance(node, ast.JoinedStr)]:
        values: list[Any] = []
        for part in getattr(text, "parts", None) or ():
            if part.expression is None:
                values.append(ast.copy_location(ast.Constant(part.raw), text))
            else:
                values.append(ast.copy_location(ast.FormattedValue(part.expression, -1, None), text))
                part.expression.parent = values[-1]
                for node in ast.walk(part.expression):
                    if isinstance(node, ast.expr):
                        _set_place(index, node)
            values[-1].parent = text
        text.values = values


def _set_place(index: ModuleIndex, node: Any) -> None:
    start, end = index.start(node), index.end(node)
    node.lineno, node.col_offset = index.line_of(start), _column(index, start)
    node.end_lineno, node.end_col_offset = index.line_of(end), _column(index, end)
    node.placed = (start, end)


def _column(index: ModuleIndex, offset: int) -> int:
    line = index.line_of(offset)
    return offset - index.line_span(line, line)[0]


def _imported(file: File) -> Iterator[tuple[ast.alias, str, str, str]]:
    """What is imported: the place, the name that it binds, the module, and the name in that."""
    for node in file.nodes(ast.Import, ast.ImportFrom):
        for alias in node.names:
            if isinstance(node, ast.Import):
                yield alias, (alias.asname or alias.name), alias.name, ""
            else:
                module = "." * node.level + (node.module or "")
                yield alias, (alias.asname or alias.name), module, alias.name if alias.name != "*" else ""


def _place(
    importer: str, entry: str, module: str, attribute: str, read: Callable[[str], Optional[str]]
) -> tuple[str, str] | None:
    """The file, and the name in it, that an import means; None where it is none of the project's."""
    level = len(module) - len(module.lstrip("."))
    if level:
        folders = [posixpath.normpath(posixpath.join(posixpath.dirname(importer), *[".."] * (level - 1)))]
    else:
        folders = list(dict.fromkeys([posixpath.dirname(entry), ""]))
    parts = [part for part in module.lstrip(".").split(".") if part]
    for folder in folders:
        base = posixpath.normpath(posixpath.join(folder, *parts)) if folder or parts else "."
        for name in (f"{base}/{attribute}.py", f"{base}/{attribute}/__init__.py") if attribute else ():
            if read(posixpath.normpath(name)) is not None:
                return posixpath.normpath(name), ""
        for name in (f"{base}.py", posixpath.normpath(f"{base}/__init__.py")):
            if parts and read(name) is not None:
                return name, attribute
    return None


def dotted(node: Any) -> str:
    """``a.b.c`` for such an expression, empty for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def function_of(node: Any) -> Any:
    """The function around a node, None at the margin; around a parameter's default, the outer one."""
    child, up = node, getattr(node, "parent", None)
    while up is not None:
        if isinstance(up, FUNCTIONS) and child in up.body:
            return up
        child, up = up, getattr(up, "parent", None)
    return None


def parent(node: Any) -> Any:
    """What a node is part of."""
    return node.parent


def class_of(function: Any) -> ast.ClassDef | None:
    """The class whose method a function is."""
    owner = getattr(function, "parent", None)
    return owner if isinstance(owner, ast.ClassDef) else None


def argument(call: ast.Call, function: Any, name: str) -> Any:
    """What a call gives to a parameter; None where it gives nothing, or that cannot be told."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if class_of(function) and not _static(function):
        names = names[1:]
    given = call.args
    if name in names and names.index(name) < len(given):
        before = given[: names.index(name) + 1]
        if not any(isinstance(one, ast.Starred) for one in before):
            return before[-1]
    return None


def default(function: Any, name: str) -> Any:
    """The default of a parameter; None where it has none."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(named), reversed(arguments.defaults)),
        *zip(arguments.kwonlyargs, arguments.kw_defaults),
    ]
    return next((value for one, value in pairs if one.arg == name), None)


def parameters(function: Any) -> list[str]:
    """The names of a function's parameters."""
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def call_sites(program: Program, function: Any) -> list[tuple[File, ast.Call]]:
    """Where a function is called; of ``__init__``, where its class is."""
    sites = program.calls.get(id(function), [])
    owner = class_of(function)
    if owner is None or function.name != "__init__":
        return sites
    heirs = [one for _, one in program.families.get(id(owner), ()) if _method(one, "__init__") is None]
    return [site for one in (owner, *heirs) for site in program.calls.get(id(one), ())] + sites


def bindings(file: File, function: Any, name: str) -> list[tuple[Any, int]]:
    """The values that a scope's assignments give to a name, each with its place in a tuple or -1.

    A value is None where something else than an assignment binds the name.
    """
    found: list[tuple[Any, int]] = []
    for node in file.stores.get(name, ()):
        if function_of(node) is not function:
            continue
        found.append(_value(node))
    return found


def _value(node: Any) -> tuple[Any, int]:
    """What an assignment gives to the node that it stores to, and the place in a tuple or -1."""
    up = node.parent
    if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and up.value is not node:
        return up.value, -1
    if isinstance(up, (ast.Tuple, ast.List)) and isinstance(parent(up), ast.Assign):
        return parent(up).value, up.elts.index(node)
    return None, -1


def on_self(file: File, owner: ast.ClassDef, attribute: str) -> list[tuple[Any, int]]:
    """The same for ``self.attribute`` in a class."""
    found: list[tuple[Any, int]] = []
    for node in file.stores.get(f"self.{attribute}", ()):
        if class_of(function_of(node)) is not owner:
            continue
        found.append(_value(node))
    return found


def yields(function: Any) -> list[Any]:
    """The ``yield`` expressions of a function: what makes it a generator."""
    return [one for one in ast.walk(function) if isinstance(one, ast.Yield) and function_of(one) is function]


def _static(function: Any) -> bool:
    return any(dotted(one) == "staticmethod" for one in function.decorator_list)


def _definition(program: Program, file: File, call: ast.Call, depth: int) -> tuple[File, Definition] | None:
    func = call.func
    owner: Any
    if depth == 0:
        return None
    if id(call) in program.found:
        return program.found[id(call)]
    if isinstance(func, ast.Name):
        owner = class_of(function_of(call))
        if func.id == "cls" and owner is not None:
            return file, owner
        return _named(program, file, func.id, depth)
    if not isinstance(func, ast.Attribute):
        return None
    base = dotted(func.value)
    if base in file.imports:
        name, inside = file.imports[base]
        if not inside and name in program.files:
            return _named(program, program.files[name], func.attr, depth - 1)
    owner = None
    place = file
    if base in ("self", "cls") or _is_super(func.value):
        owner = class_of(function_of(call))
    else:
        try:
            for where, node in _origins(program, file, func.value, depth - 1):
                found = _definition(program, where, node, depth - 1) if isinstance(node, ast.Call) else None
                if found is None or not isinstance(found[1], ast.ClassDef) or owner not in (None, found[1]):
                    return None
                place, owner = found
        except _UnknownError:
            return None
    if not isinstance(owner, ast.ClassDef):
        return None
    for where, one in program.family(place, owner)[_is_super(func.value) :]:
        method = _method(one, func.attr)
        if method is not None:
            return where, method
    return None


def _is_super(node: Any) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) == "super"


def _method(owner: ast.ClassDef, name: str) -> Any:
    return next((node for node in owner.body if isinstance(node, FUNCTIONS) and node.name == name), None)


def _named(program: Program, file: File, name: str, depth: int) -> tuple[File, Definition] | None:
    found = [
        node
        for node in file.nodes(*FUNCTIONS, ast.ClassDef)
        if node.name == name and not isinstance(node.parent, ast.ClassDef)
    ]
    if found:
        return (file, found[0]) if len(found) == 1 else None
    if name in file.imports and depth:
        other, inside = file.imports[name]
        if inside and other in program.files:
            return _named(program, program.files[other], inside, depth - 1)
    return None


def _origins(
    program: Program, file: File, node: Any, depth: int, place: int = -1
) -> Iterator[tuple[File, Any]]:
    if depth == 0 or node is None:
        raise _UnknownError
    if place >= 0 and isinstance(node, (ast.Tuple, ast.List)):
        if place >= len(node.elts) or any(isinstance(one, ast.Starred) for one in node.elts):
            raise _UnknownError
        yield from _origins(program, file, node.elts[place], depth - 1)
    elif isinstance(node, ast.Name):
        yield from _of_name(program, file, node, depth, place)
    elif isinstance(node, ast.Attribute) and dotted(node.value) == "self":
        owner = class_of(function_of(node))
        for where, one in program.family(file, owner) if owner else ():
            values = on_self(where, one, node.attr)
            if values:
                yield from _all(program, where, values, depth, place)
                return
        yield from _all(program, file, [], depth, place, node)
    elif isinstance(node, ast.Attribute):
        yield from _all(program, file, [], depth, place, node)
    elif isinstance(node, ast.Call):
        found = _definition(program, file, node, depth - 1)
        if found is None or isinstance(found[1], ast.ClassDef) or yields(found[1]):
            if place >= 0:
                raise _UnknownError
            yield file, node
            return
        where, function = found
        returned = [one for one in ast.walk(function) if isinstance(one, ast.Return)]
        values = [(one.value, place) for one in returned if function_of(one) is function]
        yield from _all(program, where, values, depth)
    elif place >= 0:
        raise _UnknownError
    else:
        yield file, node


def _all(
    program: Program,
    file: File,
    values: list[tuple[Any, int]],
    depth: int,
    place: int = -1,
    node: Any = None,
) -> Iterator[tuple[File, Any]]:
    """The origins of all of some values; where there are none, of what ``elsewhere`` says of the node."""
    every = [(file, value, position) for value, position in values]
    if not every and node is not None:
        every = program.stored(file, node)
    if not every:
        raise _UnknownError
    for where, value, position in every:
        if position >= 0 and place >= 0:
            raise _UnknownError
        yield from _origins(program, where, value, depth - 1, max(position, place))


def _unused(program: Program, file: File, call: ast.Call) -> bool:
    """Whether a call stands in a function of a further file that the program does not call."""
    function = function_of(call)
    return function is not None and file is not program.entry and not call_sites(program, function)


def _of_name(
    program: Program, file: File, node: ast.Name, depth: int, place: int
) -> Iterator[tuple[File, Any]]:
    function = function_of(node)
    values = bindings(file, function, node.id)
    if function is not None and node.id in parameters(function) and not values:
        sites = call_sites(program, function)
        sites = [site for site in sites if not _unused(program, *site)] or sites
        if not sites:
            raise _UnknownError
        for where, call in sites:
            yield from _origins(program, where, argument(call, function, node.id), depth - 1, place)
        return
    if not values and function is not None:
        values = bindings(file, None, node.id)
    if not values and node.id in file.imports:
        name, inside = file.imports[node.id]
        if inside and name in program.files:
            other = program.files[name]
            yield from _all(program, other, bindings(other, None, inside), depth, place, node)
            return
    yield from _all(program, file, values, depth, place, node)
