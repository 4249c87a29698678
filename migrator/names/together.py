"""Strings that are compared, looked up or matched with each other: they change as a whole or not at all.

A string goes on from where it stands to where it is compared, through variables, attributes, containers,
branches and functions of the file, and from there back to all that may be the other value. Where in a value
it is says a path: ``IN`` a container, as an element or a key, or ``AT`` a key or a place of it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, cast

from migrator.light import NamedTuple
from migrator.names.goes_to import Sink, taken_by
from migrator.names.index import ModuleIndex
from migrator.names.made_from import given_names, made_from, parameter_of, returned_values
from migrator.names.tree import (
    FUNCTIONS,
    Function,
    Text,
    argument_of,
    bare_name,
    called_name,
    elements,
    holder_of,
    is_enum,
    is_read,
    only_target,
    parameters,
    root,
    string_value,
    targets_of,
)

IN, AT = "in", "at"
Path = tuple[str, ...]
_MOST_STEPS = 20_000  # of one class; a table of thousands of keys is looked at in a part
_LONGEST_PATH = 4  # of containers in each other: x = (x, 1) in a loop has no end
_LONGEST_BETWEEN_FILES = 3
_READERS = frozenset("load safe_load full_load loads".split())
_DATA = (".json", ".yaml", ".yml")
# Calls whose value is what they are given, as far as strings in it go.
_HAND_ON = frozenset(
    "str list tuple set frozenset sorted reversed dict cast OrderedDict MappingProxyType deepcopy".split()
)
_SAME = frozenset("lower casefold upper strip rstrip lstrip copy keys format".split())
# Methods that compare their argument with a string; with the elements or the keys of a container.
_OF_STRINGS = frozenset(
    "startswith endswith removeprefix removesuffix replace find rfind index count".split()
)
_OF_CONTAINERS = frozenset("__contains__ remove discard get pop setdefault index count".split())
_ADDING = frozenset({"add", "append", "insert", "setdefault"})
_SPLITTING = frozenset({"split", "rsplit", "partition"})
_LOOKING_UP = frozenset({"get", "pop", "setdefault", "__getitem__"})
# Members that many objects have: what is stored under one says nothing of the others.
_OF_MANY = frozenset("type name value index data key id device values items".split())
_PARSED = ("arg", "opt", "flag", "conf", "cfg", "param")  # in what holds the values of options
_OF_VALUES = ("default", "choices", "const")
_DEFAULT_AT = {"DEFINE_string": 1, "DEFINE_enum": 1}
# Decorators that call a test with each row of a table: in one argument, or one in each.
_TABLES = frozenset({"parametrize", "expand", "parameterized"})
_ROWS = frozenset({"parameters", "named_parameters"})
_OPTIONS = frozenset({"add_argument", "add_option", *_DEFAULT_AT})
# What looks a name up: at which place the text of one stands.
_BY_NAME = {"getattr": 1, "import_module": 0, "__import__": 0}
_NAMESPACES = ("globals", "locals", "vars")
_FIELD = re.compile(r"%[sdr]|\{\w*\}")
# What calls a function in another process, with how many arguments before those that it is given.
_STARTERS = {"spawn": 1, "start_processes": 1, "Process": 0, "Thread": 0}


class Port(NamedTuple):
    """Where a class of a file meets those of others: a name, with the path of the values in it."""

    own: bool
    name: str


@dataclass(eq=False)  # one is equal to itself only: so it can be a key
class Together:
    """A class: its strings, the other values that they are compared with, and all places that take them.

    ``parameters`` are the names of those by which it is handed on. By ``ports`` it reaches other files.
    ``files`` are those that the program reads, each with the path at which the values are in it; ``names``
    the texts with a value in them that name a module, or what the file defines. All are kept as keys, in the
    order in which they were found.
    """

    strings: dict[Text, None] = field(default_factory=dict)
    values: dict[ast.expr, None] = field(default_factory=dict)
    uses: dict[ast.expr, None] = field(default_factory=dict)
    parameters: dict[str, None] = field(default_factory=dict)
    ports: dict[Port, None] = field(default_factory=dict)
    files: dict[tuple[str, Path], None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)


def together(index: ModuleIndex, value: ast.expr | ast.keyword) -> Together:
    """The class of a string of a file, or of another value."""
    known: dict[ast.AST, Together] = index.once(("together",), dict)
    if value not in known:
        found = _Search(index).of(value)
        known.update(dict.fromkeys([value, *found.strings], found))
    return known[value]


def _at(key: ast.AST | None) -> str:
    return f"{AT} {key.value!r}" if isinstance(key, ast.Constant) else AT


def _fits(step: str, other: str) -> bool:
    """Whether a step of a path may be another one."""
    return step == other or (AT in (step, other) and step != IN and other != IN)


def _behind(path: Path, begin: Path) -> Path | None:
    """The rest of a path behind its beginning; None where it begins otherwise."""
    begins = len(path) >= len(begin) and all(map(_fits, path, begin))
    return path[len(begin) :] if begins else None


class _Ways(NamedTuple):
    """How the parts of an expression are in it: by the part, and by the first step of the path in it."""

    of_part: dict[ast.AST, list[tuple[Path, Path]]]
    by_step: dict[str, list[tuple[ast.AST, Path, Path]]]


def _parts(index: ModuleIndex, node: Any) -> Iterator[tuple[ast.AST, Path, Path]]:
    """The parts of an expression or a pattern: what is at the first path in one is at the second in it."""
    kind = node.__class__.__name__  # Python 3.9 has no patterns
    if isinstance(node, ast.IfExp):
        yield from ((each, (), ()) for each in (node.body, node.orelse))
    elif isinstance(node, ast.BoolOp):
        yield from ((each, (), ()) for each in node.values)
    elif isinstance(node, (ast.NamedExpr, ast.Await, ast.Starred)):
        yield node.value, (), ()
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values):
            yield value, (), (_at(key),) if key else ()
            yield from [(key, (), (IN,))] if key else ()
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for place, each in enumerate(node.elts):
            yield each, (), (IN,)
            yield from [(each, (), (f"{AT} {place}",))] if not isinstance(node, ast.Set) else ()
    elif isinstance(node, ast.DictComp):
        yield node.key, (), (IN,)
        yield node.value, (), (AT,)
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield from ((node.elt, (), (step,)) for step in (IN, AT))
    elif isinstance(node, ast.Subscript) and bare_name(node.value) == "Literal":
        yield node.slice, (IN,) if elements(node.slice) else (), ()
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice) and is_read(node):
        yield node.value, (_at(node.slice),), ()
    elif isinstance(node, ast.Call):
        yield from _in_call(index, node)
    elif kind in ("MatchValue", "MatchAs", "MatchOr"):
        inner = getattr(node, "patterns", None) or [getattr(node, "value", None) or node.pattern]
        yield from ((each, (), ()) for each in inner if each is not None)
    elif kind == "MatchSequence":
        yield from ((each, (), (f"{AT} {place}",)) for place, each in enumerate(node.patterns))
    elif kind == "MatchMapping":
        for key, each in zip(node.keys, node.patterns):
            yield from ((key, (), (IN,)), (each, (), (_at(key),)))


def _in_call(index: ModuleIndex, call: ast.Call) -> Iterator[tuple[ast.AST, Path, Path]]:
    """The same for what a call of Python's own functions and methods is given."""
    called, owner, first = called_name(call), holder_of(call), next(iter(call.args), None)
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    if owner is not None and called in _SAME:
        yield owner, (), ()
    elif owner is not None and called in _SPLITTING:
        yield from ((owner, (), (f"{AT} 0",)), (owner, (IN,), (IN,)))
    elif owner is not None and called in _LOOKING_UP:
        yield owner, (_at(first),), ()
        yield from ((each, (), ()) for each in call.args[1:2])
    elif owner is not None and called == "values":
        yield owner, (AT,), (IN,)
    elif owner is not None and called == "items":
        yield from ((owner, (IN,), (IN, f"{AT} 0")), (owner, (AT,), (IN, f"{AT} 1")))
    elif called == "join" and first is not None and string_value(owner) is not None:
        yield first, (IN,), (IN,)
    elif called in ("enumerate", "zip", "product"):
        for place, each in enumerate(call.args, called == "enumerate"):
            yield each, (IN,), (IN, f"{AT} {place}")
    elif called == "param":  # a row of a table
        for place, each in enumerate(call.args):
            yield from ((each, (), ()), (each, (), (f"{AT} {place}",)))
    elif called == "field":
        yield from ((named[name], (), ()) for name in ("default",) if name in named)
        yield from ((named[name], (f"{AT} 'choices'", IN), ()) for name in ("metadata",) if name in named)
        factory = named.get("default_factory")
        yield from [(factory.body, (), ())] if isinstance(factory, ast.Lambda) else ()
    elif called in _HAND_ON:
        yield from ((each, (), ()) for each in call.args)
    for keyword in call.keywords if called == "dict" else ():
        yield keyword.value, (), (f"{AT} {keyword.arg!r}",) if keyword.arg else ()
        yield from [(keyword, (), (IN,))] if keyword.arg else ()
    pairs = (ast.List, ast.Tuple, ast.ListComp, ast.GeneratorExp, ast.Call)  # and no other table
    if called == "dict" and first and any(isinstance(each, pairs) for each in made_from(index, first)):
        yield from ((first, (IN, f"{AT} 0"), (IN,)), (first, (IN, f"{AT} 1"), (AT,)))


def _any_of(step: str) -> bool:
    """Whether a loop, or ``in``, comes to what is at a step: any element, or one at a place."""
    return step == IN or step[len(AT) + 1 :].isdecimal()


class _Search:
    """What was found of one class, and what is still to be looked at."""

    def __init__(self, index: ModuleIndex) -> None:
        self.index = index
        self.found = Together()
        self.waiting: list[tuple[bool, ast.AST, Path]] = []
        self.bound: set[tuple[int, Path]] = set()  # names that were looked at, by the list of their bindings
        self.stored: set[tuple[str, ast.ClassDef | None, Path]] = set()  # and attributes

    def of(self, value: ast.expr | ast.keyword) -> Together:
        """The class of a string, or of another value."""
        self.meet(value)
        self.go(value)
        seen: set[tuple[bool, ast.AST, Path]] = set()
        while self.waiting and len(seen) < _MOST_STEPS:
            step = self.waiting.pop()
            if step not in seen:
                seen.add(step)
                back, node, path = step
                (self._back if back else self._on)(node, path)
        return self.found

    def port(self, own: bool, name: str, path: Path) -> None:
        """The class reaches other files by a name of this one, or one that it imports."""
        if len(path) <= _LONGEST_BETWEEN_FILES:
            within = "".join(f"[{step}]" for step in path).replace(".", " ")
            self.found.ports[Port(own, name + within)] = None

    def go(self, node: ast.AST | None, path: Path = ()) -> None:
        """A value of the class is at the path in what a node gives: it goes on from there."""
        if node is not None and len(path) <= _LONGEST_PATH:
            self.waiting.append((False, node, path))

    def meet(self, node: ast.AST | None, path: Path = ()) -> None:
        """A value of the class is compared with what is at the path in what a node gives."""
        if node is not None and len(path) <= _LONGEST_PATH:
            self.waiting.append((True, node, path))

    # -- where a value goes ---------------------------------------------------

    def _ways(self, node: ast.AST) -> _Ways:
        """How the parts of an expression are in it; each of thousands of parts asks."""

        def find() -> _Ways:
            ways = _Ways({}, {})
            for part, inner, outer in _parts(self.index, node):
                ways.of_part.setdefault(part, []).append((inner, outer))
                ways.by_step.setdefault("".join(outer[:1]), []).append((part, inner, outer))
            return ways

        return self.index.once(("ways", node), find)

    def _on(self, node: Any, path: Path) -> None:
        if isinstance(node, ast.keyword):
            self.go(self.index.parent(node), (IN,))
            return
        sink = taken_by(self.index, node)
        kind, holder = sink.kind, cast(Any, sink.holder)
        step, rest = (path[0], path[1:]) if path else ("", ())
        if not path and isinstance(node, ast.expr):
            self.found.uses[node] = None
        around = taken_by(self.index, holder).holder if isinstance(holder, ast.Lambda) else holder
        ways = self._ways(around).of_part.get(node, ())
        # A row of a table has another thing in each column.
        is_row = isinstance(holder, ast.Tuple) and isinstance(
            self.index.parent(holder), (ast.List, ast.Tuple)
        )
        for inner, outer in ways if not is_row else [way for way in ways if way[1] != (IN,)]:
            if (further := _behind(path, inner)) is not None:
                self.go(around, (*outer, *further))
        if kind == "annotation" and isinstance(holder, ast.arg):  # device: Literal["cpu", "cuda"]
            self._parameter(self.index.parent(self.index.parent(holder)), holder.arg, path)
        elif kind == "annotation":
            self._into(holder.target, path)
            self.meet(holder.value, path)
        elif kind == "look-up" and not path and not ways:
            self.meet(holder.value, (IN,))
            if not is_read(holder):
                self._into(holder.value, (IN,))
        elif kind == "indexed" and step == IN:
            self.meet(holder.slice, rest)
        elif kind == "member" and sink.name == "value":  # of an Enum: a string has none
            self.go(holder, path)
        elif kind in ("text", "operand") and not path:
            self._named(holder)
        elif kind == "method" and sink.name in (_OF_CONTAINERS if path else _OF_STRINGS) and step in ("", IN):
            for each in holder.args[:1]:
                for one in elements(each) or [each]:
                    self.meet(one, rest)
        elif kind == "argument" and not ways:
            self._argument(holder, sink, path)
        elif kind in ("assigned", "added"):
            for target in targets_of(holder) or [holder.target]:
                self._into(target, path)
        elif kind == "returned":
            function = self.index.function_of(holder)
            self._own(function, "()", path)
            for call in self._calls(function):
                self.go(call, path)
        elif kind == "iterated" and _any_of(step):
            comprehension = self.index.parent(holder) if isinstance(holder, ast.comprehension) else None
            self._into(holder.target, rest, comprehension)
        elif kind == "compared":
            self._compared(holder, node, path)
        elif kind == "default":
            name = next(each for each in parameters(holder) if each.arg == sink.name)
            self._parameter(self.index.parent(holder), name.arg, path)
        elif isinstance(holder, ast.Yield):
            for call in self._calls(self.index.function_of(holder)):
                self.go(call, (IN, *path))
        elif holder.__class__.__name__ == "Match":
            for case in holder.cases:
                self.meet(case.pattern, path)
        elif holder.__class__.__name__ == "match_case" and node is holder.pattern:
            match: Any = self.index.parent(holder)
            self.meet(match.subject, path)

    def _own(self, definition: Any, behind: str, path: Path) -> None:
        """What other files may name: what is at the top of the file, or in a class there."""
        around: Any = self.index.parent(definition) if definition is not None else None
        name = getattr(definition, "name", "")
        if isinstance(around, ast.ClassDef):
            name = around.name if name == "__init__" else f"{around.name}.{name}"
            around = self.index.parent(around)
        if isinstance(around, ast.Module):
            self.port(True, f"{name}{behind}", path)

    def _imported(self, node: ast.expr, behind: str, path: Path) -> None:
        """What a file has from another one."""
        first = root(node)
        name = self.index.qualified_name(node) if self.index.is_bound_by("import", first) else ""
        if name and not name.startswith("torch."):
            self.port(False, f"{name}{behind}", path)

    def _into(self, target: Any, path: Path, inside: ast.AST | None = None) -> None:
        """What a target gets goes to where it is read."""
        index = self.index
        if isinstance(target, ast.Name) and inside is not None:  # the variable of a comprehension is its own
            self._read_inside(inside, target.id, path)
        elif isinstance(target, ast.Name):
            self.meet(target, path)
            owner: Any = index.scope_of(target).owner(target.id)
            if owner is not None and isinstance(owner.node, ast.ClassDef):
                self._own(owner.node, f".{target.id}", path)
                self._member(owner.node, target.id, path)
        elif isinstance(target, ast.Attribute):
            for member in self._attributes(target.attr, self._owner_of(target)):
                if is_read(member):
                    self.go(member, path)
        elif isinstance(target, ast.Subscript):
            self._into(target.value, (_at(target.slice), *path))
        elif isinstance(target, (ast.Tuple, ast.List)) and path:
            for place, each in enumerate(target.elts):
                if _fits(path[0], f"{AT} {place}"):
                    self._into(each, path[1:], inside)

    def _read_inside(self, node: ast.AST, name: str, path: Path) -> None:
        """A value goes to where an expression reads the name that it alone binds."""
        for each in ast.walk(node):
            if isinstance(each, ast.Name) and each.id == name and is_read(each) and self.index.parent(each):
                self.go(each, path)

    def _member(self, owner: ast.ClassDef, name: str, path: Path) -> None:
        """A name of a class is read as an attribute; what an Enum is called with is compared with it."""
        for each in self._attributes(name, owner):
            if is_read(each):
                self.go(each, path)
                value = self.index.parent(each)
                if isinstance(value, ast.Attribute) and value.attr == "value":
                    self.go(value, path)
        if is_enum(owner):
            self._own(owner, "(0)", path)
            for call in self._calls(owner):
                self.meet(argument_of(call, "value", 0), path)
                for read in map(self.index.parent, self.index.reads_of(call)):
                    self.go(read if isinstance(read, ast.Attribute) and read.attr == "value" else None, path)

    def _argument(self, call: Any, sink: Sink, path: Path) -> None:
        if not isinstance(call, ast.Call):
            return
        called, owner, name = called_name(call), holder_of(call), sink.name
        if not name and sink.place < 0 and path:  # **{"device": "cuda"}
            name, path = path[0][len(AT) + 1 :].strip("'"), path[1:]
        definition = self.index.definition(call.func)
        if isinstance(definition, ast.ClassDef) and is_enum(definition):
            for member in definition.body:
                if isinstance(member, ast.Assign):
                    self.meet(member.value, path)
        elif owner is not None and called == "update" and path:
            self._into(owner, path)
        elif called in _TABLES | _ROWS and isinstance(function := self.index.parent(call), FUNCTIONS):
            for parameter, column in _columns(self.index, call, function):
                before = column[called in _ROWS :]
                if path[: len(before)] == before:
                    self._parameter(function, parameter, path[len(before) :])
                    self._tabled(call, (*column, *path[len(before) :]))
        elif (called, name, path[:1]) == ("fixture", "params", (IN,)):
            for each in _asked(self.index, self.index.parent(call)):
                self.go(each, path[1:])
        elif called in _STARTERS and path and (name or sink.place) in ("args", 1):
            started = argument_of(call, "target") or argument_of(call, "fn", 0)
            if started is not None and path[0][len(AT) + 1 :].isdecimal():
                place = int(path[0][len(AT) + 1 :]) + _STARTERS[called]
                self._imported(started, f"({place})", path[1:])
                function = self.index.definition(started)
                names = given_names(self.index, function) if isinstance(function, FUNCTIONS) else []
                for given in names[place : place + 1]:
                    self._parameter(function, given, path[1:])
        elif path == (IN,) and called in ("startswith", "endswith"):  # one of several
            self.meet(owner)
        elif owner is not None and called in _OF_STRINGS | _OF_CONTAINERS | _ADDING and not name and not path:
            self._imported(call.func, f"({sink.place})", path)  # the method of a class, no container's
            if called in _ADDING:
                self._into(owner, (IN,))
            if called in ("append", "insert"):
                self._into(owner, (AT,))
            if called in _OF_CONTAINERS:
                self.meet(owner, (IN,))
            if called in _OF_STRINGS:
                self.meet(owner)
        elif owner is not None and called == "format" and not path:
            self._named(call)
        elif called in _OPTIONS and (name in _OF_VALUES or sink.place == _DEFAULT_AT.get(called)):
            for dest in _dests(call)[:1]:
                self.port(True, f"Namespace.{dest}", path[name == "choices" :])
                for each in self.index.members(dest):
                    self.go(each, path[name == "choices" :])
        else:
            self._imported(call.func, f"({name or sink.place})", path)
            fields = _fields(definition)
            if isinstance(definition, ast.ClassDef) and (name in fields or 0 <= sink.place < len(fields)):
                self._member(definition, name or fields[sink.place], path)
                held = bare_name(only_target(self.index.parent(call)))
                self.port(True, f"{held}.{name or fields[sink.place]}", path)
            for function in self._functions(call):
                names = given_names(self.index, function)
                if name in names or 0 <= sink.place < len(names):
                    self._parameter(function, name or names[sink.place], path)

    def _named(self, text: ast.AST) -> None:
        """A text with a value in it may choose what stays as it is: a module, a function or a class."""
        index = self.index
        while isinstance(around := index.parent(text), (ast.BinOp, ast.JoinedStr)):
            text = around
        sink = taken_by(index, text)
        called = called_name(sink.holder)
        held = sink.holder.value if isinstance(sink.holder, ast.Subscript) else None
        held = holder_of(sink.holder) if isinstance(sink.holder, ast.Call) else held
        in_file = called_name(held) in _NAMESPACES
        if not in_file and (sink.kind != "argument" or _BY_NAME.get(called) != sink.place):
            return
        parts = [each for node in ast.walk(text) for each in _FIELD.split(string_value(node) or "") if each]
        if called == "getattr":
            known = (each.name for each in (*index.functions, *index.classes) if "cuda" in each.name)
            in_file = any(re.match(".*".join(map(re.escape, parts)), each) for each in known)
        if parts and (in_file or (called != "getattr" and not parts[0].startswith("torch"))):
            self.found.names[index.segment(text)] = None

    def _parameter(self, function: Any, name: str, path: Path) -> None:
        """What a function gets as a parameter goes to where that is read."""
        names = given_names(self.index, function)
        if not path:
            self.found.parameters[name] = None
        for behind in (name, names.index(name) if name in names else name):
            self._own(function, f"({behind})", path)
        scope = self.index.inside(function)
        if isinstance(function, ast.Lambda):
            self._read_inside(function.body, name, path)
        for use in self.index.uses(name, scope) if scope is not None else ():
            self.go(use, path)

    def _compared(self, comparison: ast.Compare, node: ast.AST, path: Path) -> None:
        operands = [comparison.left, *comparison.comparators]
        for left, operator, right in zip(operands, comparison.ops, operands[1:]):
            if node not in (left, right):
                continue
            other = right if node is left else left
            if not isinstance(operator, (ast.In, ast.NotIn)):
                self.meet(other, path)
            elif node is left:
                self.meet(right, (IN, *path))
                self.meet(right, path)
            elif not path or _any_of(path[0]):
                self.meet(left, path[1:])

    # -- where a value comes from -----------------------------------------------

    def _back(self, node: Any, path: Path) -> None:
        index, step = self.index, "".join(path[:1])
        if isinstance(node, (ast.JoinedStr, ast.keyword)) or string_value(node) is not None:
            if not path and node not in self.found.strings:
                self.found.strings[node] = None
                self.go(node)
            return
        if isinstance(node, ast.Constant):
            return
        if not path and isinstance(node, ast.expr):
            self.found.values[node] = None
        if isinstance(node, ast.Name):
            self._bound(node, path)
        elif isinstance(node, ast.Attribute):
            self._stored(node, path)
        elif isinstance(node, ast.Call):
            self._given(node, path)
        by_step = self._ways(node).by_step
        steps = dict.fromkeys(("", step, "" if step == IN else AT))  # in the same order in each run
        for first in by_step if step == AT else steps:
            for part, inner, outer in by_step.get(first, ()):
                if (further := _behind(path, outer)) is not None:
                    self.meet(part, (*inner, *further))
        index.parent(node)

    def _bound(self, node: ast.Name, path: Path) -> None:
        """What a name holds: what it is assigned, given, looped over, and what is put into it."""
        index = self.index
        bindings = index.bindings(node)
        if (id(bindings), path) in self.bound:  # by another of its uses
            return
        self.bound.add((id(bindings), path))
        parameter = parameter_of(index, node)
        self._imported(node, "", path)
        if index.scope_of(node).owner(node.id) is index.module_scope:
            self.port(True, node.id, path)
        elsewhere = index.once(("globals",), lambda: [each for each in index.scopes if each.outer])
        changed = (each.bindings.get(node.id, ()) for each in elsewhere if node.id in each.outer)
        for binding in chain(bindings, *changed):
            holder: Any = binding.node
            if isinstance(holder, ast.stmt):
                index.expand(holder)
            if binding.kind == "assign" and binding.value is not None:
                self.meet(binding.value, path)
            elif isinstance(holder, (ast.For, ast.AsyncFor)):
                self._looped(holder.iter, holder.target, node.id, path)
            elif isinstance(holder, ast.arg):
                self.meet(binding.value, path)
                self.meet(binding.annotation, path)
            for generator in getattr(holder, "generators", ()):
                self._looped(generator.iter, generator.target, node.id, path)
            for target in getattr(holder, "targets", ()) if binding.value is None else ():
                for at, each in enumerate(elements(target)):
                    self.meet(holder.value if bare_name(each) == node.id else None, (f"{AT} {at}", *path))
        if parameter is not None:
            self._parameter(parameter.function, node.id, path)
            for call in self._calls(parameter.function):
                names = given_names(index, parameter.function)
                place = names.index(node.id) if node.id in names else None
                self.meet(argument_of(call, node.id, place), path)
            for use in index.uses_of(parameter.function):
                starter = taken_by(index, use).holder
                if isinstance(starter, ast.Call) and (called := called_name(starter)) in _STARTERS:
                    place = parameter.place - _STARTERS[called]
                    self.meet(argument_of(starter, "args", 1), (f"{AT} {place}", *path))
            for table in _tables(parameter.function):
                for name, before in _columns(index, table, parameter.function):
                    if name == node.id:
                        self._tabled(table, (*before, *path))
        for use in (node, *index.uses_of(node)) if is_read(node) else index.uses_of(node):
            self._put(use, path)
            self.go(use, path)  # what else is done with it says what it is

    def _tabled(self, table: ast.Call, path: Path) -> None:
        """A value of the class is compared with what is in a table of a test."""
        if called_name(table) in _ROWS:
            for row in table.args:
                self.meet(row, path[1:])
                self.meet(row, path)
        else:
            place = int(called_name(table) == "parametrize")
            self.meet(argument_of(table, ("input", "argvalues")[place], place), path)

    def _looped(self, iterated: ast.expr, target: ast.expr, name: str, path: Path) -> None:
        for place, each in enumerate(elements(target) or [target]):
            if bare_name(each) == name:
                at = (f"{AT} {place}",) if elements(target) else ()
                self.meet(iterated, (IN, *at, *path))

    def _put(self, use: ast.AST, path: Path) -> None:
        """What is put into a container where it is used."""
        if not path:
            return
        sink = taken_by(self.index, use)
        step, rest, holder = path[0], path[1:], sink.holder
        if isinstance(holder, ast.Subscript) and sink.kind == "indexed" and not is_read(holder):
            statement = self.index.parent(holder)
            if isinstance(statement, ast.Assign) and _fits(step, _at(holder.slice)):
                self.meet(statement.value, rest)
        elif isinstance(holder, ast.Call) and sink.kind == "method" and holder.args:
            if sink.name in _ADDING and (sink.name == "setdefault") <= (step == IN):
                self.meet(holder.args[sink.name == "insert"], rest)
            elif sink.name in ("update", "extend"):
                self.meet(holder.args[0], path)

    def _stored(self, node: ast.Attribute, path: Path) -> None:
        """What an attribute holds, by all that the file stores under its name."""
        self._imported(node, "", path)
        if node in (asked := _asked(self.index, node)):
            for table in _tables(self.index.function_of(node), {"fixture"}):
                self.meet(argument_of(table, "params"), (IN, *path))
            for each in asked:
                self.go(each, path)
            return
        owner = self._owner_of(node)
        holder = bare_name(node.value).lower()
        if node.attr not in _OF_MANY - {"device"} and any(part in holder for part in _PARSED):
            self.port(False, f"Namespace.{node.attr}", path)
        if (node.attr, owner, path) in self.stored:
            return
        self.stored.add((node.attr, owner, path))
        for each in self._attributes(node.attr, owner):
            sink = self.index.parent(each)
            if is_read(each):
                self._put(each, path)
                self.go(each, path)
            elif isinstance(sink, (ast.Assign, ast.AnnAssign)):
                self.meet(sink.value, path)
        for statement in owner.body if owner is not None else ():
            if node.attr in map(bare_name, targets_of(statement)):
                self.index.expand(statement)
                self.meet(getattr(statement, "value", None), path)
        for made in self.index.classes:
            if node.attr in (fields := _fields(made)):
                for call in self._calls(made):
                    self.meet(argument_of(call, node.attr, fields.index(node.attr)), path)
        for call in self._options(node.attr) if node.attr not in _OF_MANY - {"device"} else ():
            self.meet(argument_of(call, "default", _DEFAULT_AT.get(called_name(call))), path)
            self.meet(argument_of(call, "choices"), (IN, *path))

    def _given(self, call: ast.Call, path: Path) -> None:
        """What a call gives."""
        self._imported(call.func, "()", path)
        name = self.index.qualified_name(call.func) if called_name(call) in _READERS else ""
        if name.startswith(("json.", "yaml.")):
            self.found.files.update(((name, path), None) for name in self._read_by(call))
        for function in self._functions(call):
            for value in returned_values(self.index, function):
                self.meet(value, path)
            for statement in self.index.statements_in(function) if path[:1] == (IN,) else ():
                made = getattr(statement, "value", None)
                if isinstance(made, ast.Yield):
                    self.index.expand(statement)
                    self.meet(made.value, path[1:])

    def _read_by(self, call: ast.Call) -> Iterator[str]:
        """The names of the files of data in the statement that reads one, and in those around it."""
        statement = self.index.statement_of(call)
        for around in (statement, *self.index.above(statement)):
            if isinstance(around, (*FUNCTIONS, ast.Module)):
                return
            for head in [around] if around is statement else getattr(around, "items", ()):
                for each in ast.walk(head):
                    known = self.index.assigned(each) if isinstance(each, ast.Name) else [each]
                    texts = (string_value(part) or "" for value in known for part in ast.walk(value))
                    yield from (text.rpartition("/")[2] for text in texts if text.endswith(_DATA))

    # -- functions, members and options -------------------------------------------

    def _functions(self, call: ast.Call) -> list[Function]:
        """The functions of the file that a call may call: by its name, or as a method or a class."""
        index = self.index
        definition = index.definition(call.func)
        if isinstance(definition, FUNCTIONS):
            return [definition]
        if isinstance(definition, ast.ClassDef):
            methods = (each for each in definition.body if isinstance(each, FUNCTIONS))
            return [each for each in methods if each.name == "__init__"]
        function: Any = call.func
        named = (each for each in index.functions if each.name == getattr(function, "attr", ""))
        owners = ((each, cast(Any, index.parent(each))) for each in named if _is_method(index, each))
        return [each for each, owner in owners if not self._is_of_another(function, owner)]

    def _calls(self, definition: Any) -> Iterator[ast.Call]:
        """The calls of a function, a method or a class of the file."""
        index = self.index
        if definition is None:
            return
        named: Sequence[ast.expr] = ()
        if _is_method(index, definition):
            owner: Any = index.parent(definition)
            if definition.name == "__init__":
                named = index.uses_of(owner)
            else:
                members = index.members(definition.name)
                named = [each for each in members if not self._is_of_another(each, owner)]
        else:
            named = index.uses_of(definition)
        yield from filter(None, map(index.call_of, named))

    def _owner_of(self, node: ast.Attribute) -> ast.ClassDef | None:
        """The class in which a file names the same attribute: that of ``self``, or the one that is named."""
        is_own = bare_name(node.value) == "self"
        owner = self.index.class_of(node) if is_own else self.index.definition(node.value)
        return owner if isinstance(owner, ast.ClassDef) else None

    def _attributes(self, name: str, owner: ast.ClassDef | None = None) -> list[ast.Attribute]:
        every = self.index.members(name)
        if name not in _OF_MANY:
            return [each for each in every if owner is None or not self._is_of_another(each, owner)]
        of_self = (each for each in every if bare_name(each.value) == "self")
        return [each for each in of_self if owner is not None and self.index.class_of(each) is owner]

    def _is_of_another(self, node: ast.Attribute, owner: ast.ClassDef) -> bool:
        """Whether an attribute is that of another class: ``Topic.GPU`` is no ``Device.GPU``, nor torch's."""
        if self.index.qualified_name(node).startswith("torch."):
            return True
        other = self._owner_of(node)
        scope = self.index.inside(other)
        if other is None or scope is None or self._inherits(other, owner) or self._inherits(owner, other):
            return False
        return node.attr in scope.bindings or node.attr in self.index.stored_on_self(other)

    def _inherits(self, one: ast.ClassDef, other: ast.ClassDef) -> bool:
        """Whether a class is another one, or has it among its bases in the file."""

        def find() -> bool:
            bases = map(self.index.definition, one.bases)
            return any(self._inherits(base, other) for base in bases if isinstance(base, ast.ClassDef))

        return one is other or self.index.ask(("inherits", other), one, find, False)

    def _options(self, dest: str) -> list[ast.Call]:
        """The calls that add the option of which a parser keeps the value under a name."""

        def find() -> dict[str, list[ast.Call]]:
            found: dict[str, list[ast.Call]] = {}
            self.index.named(*_OPTIONS)  # so that all calls are known that add options
            for call in self.index.calls:
                for name in _dests(call) if called_name(call) in _OPTIONS else ():
                    found.setdefault(name, []).append(call)
            return found

        return self.index.once(("options",), find).get(dest, [])


def _dests(call: ast.Call) -> list[str]:
    """The names under which a parser may keep the value of an option; it takes the first."""
    texts = [string_value(each) or "" for each in (argument_of(call, "dest"), *call.args)]
    long = [text for text in texts if text.startswith("--") or text[:1] != "-"]
    return [text.lstrip("-").replace("-", "_") for text in long if text]


def _fields(owner: ast.AST | None) -> list[str]:
    """What a class is given by place that has no ``__init__`` of its own: the fields with an annotation."""
    body = owner.body if isinstance(owner, ast.ClassDef) else []
    if any(getattr(each, "name", "") == "__init__" for each in body):
        return []
    return [bare_name(each.target) for each in body if isinstance(each, ast.AnnAssign)]


def _tables(function: Any, names: Collection[str] = _TABLES | _ROWS) -> list[ast.Call]:
    """The decorators of a test that call it with the rows of a table, or of a fixture."""
    calls = (each for each in getattr(function, "decorator_list", ()) if isinstance(each, ast.Call))
    return [each for each in calls if called_name(each) in names]


def _asked(index: ModuleIndex, node: ast.AST | None) -> list[ast.Attribute]:
    """Where a fixture, or that around a node, reads its parameter: ``request.param``."""
    function = node if isinstance(node, FUNCTIONS) else index.function_of(node) if node else None
    read = (each for each in index.members("param") if bare_name(each.value) == "request")
    return [each for each in read if index.function_of(each) is function]


def _columns(index: ModuleIndex, table: ast.Call, function: Function) -> Iterator[tuple[str, Path]]:
    """The parameters of a test, each with the path of its values in the table that it is called with."""
    names = given_names(index, function)
    if called_name(table) == "parametrize":
        given = argument_of(table, "argnames", 0)
        texts = [string_value(each) or "" for each in elements(given)]
        names = texts or [name.strip() for name in (string_value(given) or "").split(",")]
        if not texts and len(names) == 1:
            yield names[0], (IN,)
            return
    first = int(called_name(table) == "named_parameters")
    yield from ((name, (IN, f"{AT} {place}")) for place, name in enumerate(names, first))
    if len(names) == 1:
        yield names[0], (IN,)


def _is_method(index: ModuleIndex, definition: ast.AST) -> bool:
    return isinstance(definition, FUNCTIONS) and isinstance(index.parent(definition), ast.ClassDef)
