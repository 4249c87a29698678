"""A program: the script that is started and the files that it imports, and what its names stand for.

A scope is a function, or the module for what stands in no function.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, KeysView
from dataclasses import field, replace
from functools import partial
from typing import NamedTuple, Optional, TypeVar, Union

from migrator.light import Declared
from migrator.names import outline
from migrator.names.made_from import given_names
from migrator.names.tree import FUNCTIONS, Function, argument_of, bare_name, called_name
from migrator.names.whole_file import WholeFile
from migrator.project.definitions import Definitions
from migrator.project.module_names import Read, imported_names, place_of_import
from migrator.project.program_files import rows_of

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
LOOPS = (ast.For, ast.While)
_OTHERS = {
    *("torch", "torchvision", "torchaudio", "numpy", "scipy", "PIL"),
    *getattr(sys, "stdlib_module_names", ()),
}
_DEPTH = 12  # files through which a name is handed on

Loop = Union[ast.For, ast.While]
Definition = Union[Function, ast.ClassDef]
Scope = Union[Function, ast.Module]
Named = Union[ast.Name, ast.Attribute]
# What an assignment gives to a name, and its place in a tuple or -1; None: something else binds the name.
Value = tuple[Optional[ast.expr], int]
Node = TypeVar("Node", bound=ast.AST)
Answer = TypeVar("Answer")


# -- what nodes say by themselves --------------------------------------------------------------------------


def dotted(node: ast.AST | None) -> str:
    """``a.b.c`` for such an expression, empty for any other."""
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def base_name(node: ast.AST) -> str:
    """The object that a name belongs to: ``stopper`` of ``stopper.stop``, ``self.stopper`` likewise."""
    parts = dotted(node).split(".")
    return ".".join(parts[: 1 + (parts[0] == "self")])


def method_name(node: ast.AST | None) -> str:
    """The name of the method that a call calls, of whatever; empty for any other node."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else ""


def constant(node: ast.AST | None) -> object:
    """The value of a constant; None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None


def is_main_guard(node: ast.AST | None) -> bool:
    """``if __name__ == "__main__":``."""
    return isinstance(node, ast.If) and "__name__" in ast.dump(node.test)


def below(*nodes: ast.AST) -> KeysView[ast.AST]:
    """Some nodes and all below them, in order."""
    return {one: None for node in nodes for one in ast.walk(node)}.keys()


def calls_in(*nodes: ast.AST) -> list[ast.Call]:
    """The calls in some nodes."""
    return [one for one in below(*nodes) if isinstance(one, ast.Call)]


def names_below(node: ast.AST) -> set[str]:
    """The dotted names in a node."""
    return {dotted(one) for one in ast.walk(node)} - {""}


def is_stored(node: ast.AST | None) -> bool:
    """Whether a name or an attribute is set where it stands."""
    return isinstance(getattr(node, "ctx", None), ast.Store)


def names_set(*nodes: ast.AST) -> set[str]:
    """The dotted names that are set in some nodes."""
    return {dotted(one) for one in below(*nodes) if is_stored(one)} - {""}


def parameters(function: ast.AST | None) -> list[str]:
    """The names of a function's parameters, without the starred ones; none of anything else."""
    if not isinstance(function, FUNCTIONS):
        return []
    given = function.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def method(owner: ast.AST, name: str) -> Function | None:
    """A class's own method; of anything else, none."""
    body = owner.body if isinstance(owner, ast.ClassDef) else ()
    return next((one for one in body if isinstance(one, FUNCTIONS) and one.name == name), None)


# -- the program ---------------------------------------------------------------------------------------------


class Home(NamedTuple):
    """A scope in which something has a name: a function, a module, or a class for ``self.name``."""

    scope: ast.AST
    text: str

    @property
    def is_parameter(self) -> bool:
        """Whether the name is a parameter of a function."""
        return self.text in parameters(self.scope)


class AlreadyDistributedError(Exception):
    """A program that is for many devices."""


class Program(Declared):
    """The files of a program, the entry first, and the file of each node.

    ``imports``: what a file's imports bind, as file and name there. ``stores``: the names and attributes that
    each scope sets. ``calls``: where each function and class of the program is called. ``families``: for each
    class those of the project that it inherits from, and those that inherit from it. ``elsewhere`` knows more
    of names than what is read here; ``found`` is what it knows of what is called. ``mixed``: the functions
    that are called both to train and not to, or for which that is not known. What is
    ``asked`` is answered once.
    """

    entry: WholeFile
    files: dict[str, WholeFile]
    elsewhere: Optional[Definitions] = None
    homes: dict[ast.AST, WholeFile] = field(default_factory=dict)
    imports: dict[tuple[WholeFile, str], tuple[str, str]] = field(default_factory=dict)
    stores: dict[tuple[ast.AST, str], list[ast.expr]] = field(default_factory=dict)
    calls: dict[Definition, list[ast.Call]] = field(default_factory=dict)
    families: dict[ast.ClassDef, list[ast.ClassDef]] = field(default_factory=dict)
    found: dict[ast.expr, Optional[Definition]] = field(default_factory=dict)
    mixed: frozenset[ast.AST] = frozenset()
    asked: object = field(default_factory=object)

    def nodes(self, *kinds: type[Node], file: WholeFile | None = None) -> list[Node]:
        """The nodes of these kinds that have a place, of one file or of all, in the order of the lines."""

        def find(each: WholeFile) -> list[Node]:
            found = [one for one in each.every_node() if isinstance(one, kinds) and hasattr(one, "lineno")]
            return sorted(found, key=lambda one: (one.lineno, one.col_offset))  # type: ignore[attr-defined]

        files = [file] if file else self.files.values()
        return [one for each in files for one in each.once(("nodes", *kinds), partial(find, each))]

    def ask(self, question: str, node: ast.AST, find: Callable[[], Answer], unknown: Answer) -> Answer:
        """The answer to a question about a node; ``unknown`` where that leads back, or too far."""
        return self.entry.ask((question, self.asked), node, find, unknown)

    def but(self, **fields: object) -> Program:
        """The program with other calls, or other definitions; what it is asked, it is asked anew."""
        return replace(self, asked=object(), **fields)  # type: ignore[arg-type]

    def file(self, node: ast.AST) -> WholeFile:
        """The file that a node is in."""
        return self.homes[node]

    def segment(self, node: ast.AST) -> str:
        """A node's source."""
        return self.homes[node].segment(node)

    def name(self, node: ast.AST) -> str:
        """The full name that an expression stands for, through imports; of a call, that of what it calls.

        Empty where it is not known.
        """
        return self.homes[node].qualified_name(node.func if isinstance(node, ast.Call) else node)

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What a node is part of; None for a module."""
        return self.homes[node].parent(node)

    def above(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """What a node is in, from the inside out, each behind its part that holds the node."""
        return self.homes[node].way_up(node)

    def around(self, node: ast.AST, *kinds: type[Node]) -> Iterator[Node]:
        """What a node is in that is of these kinds, from the inside out."""
        return (up for up in self.homes[node].above(node) if isinstance(up, kinds))

    def scope_of(self, node: ast.AST) -> Scope:
        """The function around a node, or its module; around a parameter's default, the outer one."""
        file = self.homes[node]
        return file.tree if node is file.tree else file.function_of(node) or file.tree

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        """The class whose method a function is."""
        owner = self.parent(function)
        return owner if isinstance(owner, ast.ClassDef) else None

    def taker_of(self, node: ast.AST) -> ast.AST | None:
        """What a node is given to: a call, where it is one of its arguments."""
        up = self.parent(node)
        return self.parent(up) if isinstance(up, ast.keyword) else up

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """The statement that an expression belongs to."""
        return next(up for up in (node, *self.homes[node].above(node)) if isinstance(up, ast.stmt))

    def is_alone(self, statement: ast.stmt) -> bool:
        """Whether nothing else stands in a statement's body around it."""
        return len(getattr(self.parent(statement), "body", [])) == 1

    def own_line(self, statement: ast.stmt) -> bool:
        """Whether a statement stands on lines of its own, so that others can be put around it."""
        return self.homes[statement].stands_alone(statement)

    def family(self, owner: ast.ClassDef) -> list[ast.ClassDef]:
        """A class, those that it inherits from, and those that inherit from it."""
        return [owner, *self.families.get(owner, ())]

    def stored_value(self, node: ast.expr) -> Value:
        """What an assignment gives to the node that it stores to, and the place in a tuple or -1."""
        up = self.parent(node)
        if isinstance(up, (ast.Assign, ast.AnnAssign, ast.NamedExpr)) and up.value is not node:
            return up.value, -1
        around = self.parent(up) if isinstance(up, (ast.Tuple, ast.List)) else None
        if isinstance(up, (ast.Tuple, ast.List)) and isinstance(around, ast.Assign):
            return around.value, up.elts.index(node)
        return None, -1

    def values(self, scope: ast.AST, name: str) -> list[Value]:
        """The values that a scope's assignments give to a name, or a class's methods to ``self.name``."""
        scopes = scope.body if isinstance(scope, ast.ClassDef) else [scope]
        return [self.stored_value(node) for each in scopes for node in self.stores.get((each, name), ())]

    def only_value(self, scope: ast.AST, name: str) -> ast.expr | None:
        """The value of a name that a scope sets once, and plainly."""
        bound = self.values(scope, name)
        return bound[0][0] if len(bound) == 1 and bound[0][1] < 0 else None

    def argument(self, call: ast.Call, function: ast.AST | None, name: str) -> ast.expr | None:
        """What a call gives to a parameter; None where it gives nothing, or that is unknown."""
        names = given_names(self.file(function), function) if isinstance(function, FUNCTIONS) else []
        return argument_of(call, name, names.index(name) if name in names else None)

    def own_nodes(self, scope: ast.AST, kind: type[Node]) -> list[Node]:
        """The nodes of a kind in a scope, without those of functions inside it, in the order of the lines."""
        file = self.file(scope)

        def find() -> dict[ast.AST, list[Node]]:
            found: dict[ast.AST, list[Node]] = {}
            for one in self.nodes(kind, file=file):
                found.setdefault(self.scope_of(one), []).append(one)
            return found

        return file.once(("own nodes", kind), find).get(scope, [])

    # -- what names stand for ---------------------------------------------------------------------------

    def call_sites(self, function: ast.AST) -> list[ast.Call]:
        """Where a function is called; of ``__init__``, where its class is; none of a module."""
        if not isinstance(function, FUNCTIONS):
            return []
        sites, owner = self.calls.get(function, []), self.class_of(function)
        if owner is None or function.name != "__init__":
            return sites
        heirs = [one for one in self.families.get(owner, ()) if method(one, "__init__") is None]
        return [site for one in (owner, *heirs) for site in self.calls.get(one, ())] + sites

    def live_sites(self, function: ast.AST) -> list[ast.Call]:
        """Where a function is called, without what further files do not use themselves."""
        sites, entry = self.call_sites(function), self.entry
        around = [(site, self.scope_of(site)) for site in sites]
        return [
            site
            for site, scope in around
            if self.file(site) is entry or isinstance(scope, ast.Module) or self.call_sites(scope)
        ] or sites

    def definition_of(self, call: ast.AST | None) -> Definition | None:
        """The project's own function, class or method that a call calls; None for what is no call."""
        return self.defined_as(call.func) if isinstance(call, ast.Call) else None

    def function_of(self, call: ast.AST | None) -> Function | None:
        """The same, where it is a function or a method."""
        found = self.definition_of(call)
        return found if isinstance(found, FUNCTIONS) else None

    def defined_as(self, func: ast.expr) -> Definition | None:
        """The project's own function, class or method that an expression names."""
        if func in self.found:
            return self.found[func]
        if not isinstance(func, (ast.Name, ast.Attribute)):
            return None
        return self.ask("definition", func, lambda: self._defined(func), None)

    def _defined(self, func: Named) -> Definition | None:
        file = self.file(func)
        if isinstance(func, ast.Name):
            around = self.class_of(self.scope_of(func)) if func.id == "cls" else None
            return around or self._named(file, func.id, file.scope_of(func))
        name, inside = self.imports.get((file, dotted(func.value)), ("", ""))
        if name in self.files and not inside:
            return self._named(self.files[name], func.attr)
        return self.method_of(func.value, func.attr)

    def _named(self, file: WholeFile, name: str, scope: outline.Scope | None = None) -> Definition | None:
        """The definition that a name has in a scope of a file, or in the files from which it is imported."""
        for _ in range(_DEPTH):
            bound = [one.node for one in (scope or file.module_scope).look_up(name)]
            found = [one for one in bound if isinstance(one, (*FUNCTIONS, ast.ClassDef))]
            other, inside = self.imports.get((file, name), ("", ""))
            if found or not inside or other not in self.files:
                return found[0] if len(found) == 1 else None
            file, name, scope = self.files[other], inside, None
        return None

    def method_of(self, node: ast.expr, name: str) -> Function | None:
        """The project's method that an object has under a name, one that is written before one left open."""
        upwards = isinstance(node, ast.Call) and dotted(node.func) == "super"
        if dotted(node) in ("self", "cls") or upwards:
            owner = self.class_of(self.scope_of(node))
        else:
            owner = next(iter(self.classes_of(node)), None)
        family = self.family(owner)[upwards:] if owner else ()
        found = [own for one in family if (own := method(one, name)) is not None]
        for own in found:
            last = own.body[-1]
            raised = ast.dump(last.exc) if isinstance(last, ast.Raise) and last.exc is not None else ""
            abstract = any("abstract" in dotted(one) for one in own.decorator_list)
            if "NotImplementedError" not in raised and not abstract:
                return own
        return found[0] if found else None

    def classes_of(self, node: ast.expr) -> list[ast.ClassDef]:
        """The one class of which an object is; none where that is not known."""
        made = {self.definition_of(origin) for origin in self.origins(node)}
        return [one for one in made if isinstance(one, ast.ClassDef)] if len(made) == 1 else []

    def origins(self, node: ast.expr | None, place: int = -1) -> list[ast.expr]:
        """The expressions from which a value comes: by names, parameters, attributes and returns.

        With a ``place``, those of what stands there in a tuple. Empty where a way to it is not known.
        """
        if node is None:
            return []
        return self.ask(f"origins {place}", node, lambda: self._origins(node, place), [])

    def _origins(self, node: ast.expr, place: int) -> list[ast.expr]:
        found: list[Value] = []
        if place >= 0 and isinstance(node, (ast.Tuple, ast.List)):
            if place < len(node.elts) and not any(isinstance(one, ast.Starred) for one in node.elts):
                found, place = [(node.elts[place], -1)], -1
        elif isinstance(node, ast.Name):
            found = self._of_name(node) or self._stored_elsewhere(node)
        elif isinstance(node, ast.Attribute):
            owner = self.class_of(self.scope_of(node)) if dotted(node.value) == "self" else None
            kept = (self.values(one, f"self.{node.attr}") for one in (self.family(owner) if owner else ()))
            found = next(filter(None, kept), []) or self._stored_elsewhere(node)
        else:
            function = self.function_of(node)
            if function is None or self.own_nodes(function, ast.Yield):
                return [node] if place < 0 else []
            found, place = [(one.value, place) for one in self.own_nodes(function, ast.Return)], -1
        ways = [
            self.origins(value, max(position, place)) if min(position, place) < 0 else []
            for value, position in found
        ]
        return list(dict.fromkeys(one for way in ways for one in way)) if all(ways) else []

    def _of_name(self, node: ast.Name) -> list[Value]:
        """The values that a name is given: by assignments, by calls, where it is imported from."""
        scope, file = self.scope_of(node), self.file(node)
        found = self.values(scope, node.id)
        if node.id in parameters(scope) and not found:
            sites = self.live_sites(scope)
            return [(self.argument(call, scope, node.id), -1) for call in sites] or [(None, -1)]
        found = found or self.values(file.tree, node.id)
        name, inside = self.imports.get((file, node.id), ("", ""))
        if not found and inside and name in self.files:
            found = self.values(self.files[name].tree, inside)
        return found

    def _stored_elsewhere(self, node: ast.Name | ast.Attribute) -> list[Value]:
        """The values that something named has by ``elsewhere``."""
        found = (one for one in self._found_elsewhere(node) if isinstance(one, (ast.Name, ast.Attribute)))
        return [self.stored_value(one) for one in found if one is not node]

    def _found_elsewhere(self, node: ast.expr) -> list[Definition | ast.expr]:
        """The definitions, and the names that are set, that ``elsewhere`` says an expression means."""
        file = self.file(node)
        places = self.elsewhere.places(file.name, file, node) if self.elsewhere else []
        return [
            one
            for name, line, column in places
            if name in self.files
            for there in [self.files[name]]
            for one in (*there.functions, *there.classes, *self.nodes(ast.Name, ast.Attribute, file=there))
            if one.lineno == line
            if isinstance(one, ast.stmt) or (one.end_col_offset or 0) - len(bare_name(one)) == column
        ]

    # -- where names are at home ------------------------------------------------------------------------

    def home_of(self, node: ast.AST, text: str) -> Home:
        """Where a name, or an attribute of ``self``, that a node holds is at home."""
        scope = self.scope_of(node)
        owner = self.class_of(scope)
        if text.startswith("self.") and owner is not None:
            return Home(next((one for one in self.family(owner) if self.values(one, text)), owner), text)
        known = text in parameters(scope) or self.values(scope, text)
        return Home(scope if known else self.file(node).tree, text)

    def home_of_target(self, target: ast.expr | None, node: ast.AST) -> Home | None:
        """The scope and the name that a target of an assignment is, where they are plain."""
        scope, text = self.scope_of(node), dotted(target)
        owner = self.class_of(scope)
        if isinstance(target, ast.Name):
            return Home(scope, text)
        own = text.startswith("self.") and text.count(".") == 1
        return Home(owner, text) if own and owner is not None else None

    def uses(self, home: Home) -> list[ast.expr]:
        """The nodes by which a scope has a name, in the order of the lines."""
        found: list[ast.expr] = []
        kind: type[ast.expr] = ast.Attribute if "." in home.text else ast.Name
        for node in self.nodes(kind, file=self.file(home.scope)):
            if dotted(node) != home.text:
                continue
            scope: ast.AST | None = self.scope_of(node)
            if isinstance(home.scope, ast.ClassDef) and scope is not None:
                scope = self.class_of(scope)
            while isinstance(scope, FUNCTIONS) and scope is not home.scope:
                if home.text in parameters(scope) or self.values(scope, home.text):
                    break
                scope = self.scope_of(scope)
            if scope is home.scope:
                found.append(node)
        return found

    def receiving(self, call: ast.AST | None, node: ast.AST) -> list[Home]:
        """The project's function, and its parameter, that gets an argument of a call."""
        start: ast.AST | None = self.definition_of(call)
        if isinstance(start, ast.ClassDef):
            own = (method(one, "__init__") for one in self.family(start))
            start = next(filter(None, own), None)
        names = parameters(start) if isinstance(call, ast.Call) and call.func is not node else ()
        given = ((name, self.argument(call, start, name)) for name in names if isinstance(call, ast.Call))
        return [Home(start, name) for name, value in given if start and value is node]


def load(entry: str, read: Read, elsewhere: Definitions | None = None) -> Program:
    """The program of the file ``entry``, along its imports; ``read`` gives a file's text, None without one.

    ``elsewhere`` is asked where the names say too little. Raises what of UNREADABLE the entry does (other
    such files are left out), and AlreadyDistributedError.
    """
    files: dict[str, WholeFile] = {}
    imports: dict[tuple[WholeFile, str], tuple[str, str]] = {}
    waiting = [entry]
    for name in waiting:  # grows
        text = None if name in files else read(name)
        if text is None:
            continue
        try:
            file = files[name] = WholeFile(name, text)
        except UNREADABLE:
            if name == entry:
                raise
            continue
        if (rows := rows_of(text)) is not None and rows.distributed:
            raise AlreadyDistributedError
        for node, bound, module, attribute in imported_names(file.imports):
            found = place_of_import(name, entry, module, attribute, read)
            if found is None and elsewhere and module.partition(".")[0] not in _OTHERS:
                places = elsewhere.places(name, file, node)
                found = (places[0][0], attribute if places[0][1] else "") if len(places) == 1 else None
            if found:
                waiting.append(found[0])
                if bound != "*":
                    imports[file, bound] = found
    homes = {node: file for file in files.values() for node in file.every_node()}
    program = Program(files[entry], files, elsewhere, homes, imports)
    for target in program.nodes(ast.Name, ast.Attribute):
        if is_stored(target):
            program.stores.setdefault((program.scope_of(target), dotted(target)), []).append(target)
    bases: dict[ast.ClassDef, list[ast.ClassDef]] = {}
    for owner in program.nodes(ast.ClassDef):
        bases[owner] = line = [owner]
        for one in line:  # grows: the nearest first
            known = (program.defined_as(base) for base in one.bases)
            line += [base for base in known if isinstance(base, ast.ClassDef) and base not in line]
    program.families.update({owner: line[1:] for owner, line in bases.items()})
    for owner, (_, *line) in bases.items():
        for base_class in line:
            program.families[base_class].append(owner)
    program = program.but()
    names = {node.name for file in files.values() for node in (*file.functions, *file.classes)}
    for call in program.nodes(ast.Call):
        definition = program.defined_as(call.func)
        if definition is None and elsewhere and called_name(call) in names:
            found_there = [one for one in program._found_elsewhere(call) if not isinstance(one, ast.expr)]
            definition = found_there[0] if len(found_there) == 1 else None
            program.found[call.func] = definition
        if definition:
            program.calls.setdefault(definition, []).append(call)
    return program.but()
