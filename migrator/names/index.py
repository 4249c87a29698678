"""ModuleIndex: what a file's names mean, found without walking what nobody asks about.

Finding uses the standard library's ``ast`` (fast, exact spans). Statements are walked once; expressions only
in statements that hold a word in question. What is known of a node lies in tables, never on the node: so
nothing in a tree points back, and the indexes of a text share one (``migrator.names.outline``). Spans are
byte offsets into the file's text encoded as UTF-8, because that is what ``ast`` counts in.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, dropwhile, islice, takewhile
from typing import Any, Callable, TypeVar

from migrator.files.source import Lines
from migrator.names.outline import Binding, Outline, Scope, outline
from migrator.names.qualified import Neighbours, full_name, of_name
from migrator.names.strings import Part, place_fstring
from migrator.names.tree import (
    BODY_FIELDS,
    FUNCTIONS,
    STATEMENTS,
    Function,
    Statement,
    String,
    attributes,
    bare_name,
    body_fields,
    called_name,
    children,
    fields_of,
    head_lines,
    only_target,
    parameters,
    string_value,
    targets_of,
    touches,
)

_WORD = re.compile(r"[^\W\d]\w*")
_WORD_BYTES = frozenset(bytes([byte]) for byte in range(256) if bytes([byte]).isalnum() or byte in (95,))
# Everything but words as blanks: split() then takes a third of what a pattern does.
_BLANKS = bytes(byte if byte > 127 or bytes([byte]) in _WORD_BYTES else 32 for byte in range(256))
_BYTES_OF_WORD = rb"[A-Za-z0-9_]+"
_MOST_SEARCHED = 500  # times the whole text, which take as long as to list its words with their lines
_REGISTERS = ("register_buffer", "register_parameter")
_FEW = 12  # words, to look for each of which takes less than to list those of a text
_MOST_ANSWERS = 50_000  # that are kept; no file that a person wrote has as many
_MOST_STEPS = 500  # from one question to others
_DEEPEST = 60  # questions of which each waits for the next
_COMPREHENSIONS = frozenset({ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp})

Answer = TypeVar("Answer")


def identifiers(text: str) -> set[str]:
    """The words of a text that could be Python names."""
    return set(_WORD.findall(text))


def parsed(text: str | None, words: Iterable[str]) -> ModuleIndex | None:
    """The index of a text; None where there is none, or where it cannot be parsed."""
    try:
        return None if text is None else ModuleIndex(text, words)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class ModuleIndex:
    """One parsed file.

    ``words`` are the words that some rule starts from. After construction, ``refs`` holds the outermost
    dotted names, ``calls`` the calls and ``strings`` the string literals (f-strings once, as a whole) of all
    statements that hold such a word or an alias of one. Who changes the tree gives an outline of ``its_own``;
    ``neighbours`` know what is imported from the project's other files. ``lines`` are the text's, where
    somebody has them.
    """

    def __init__(
        self,
        text: str,
        words: Iterable[str],
        its_own: Outline | None = None,
        neighbours: Neighbours | None = None,
        lines: Lines | None = None,
    ) -> None:
        self.text = text
        self.neighbours = neighbours
        shared = its_own or outline(text, lines)
        self.lines = lines = shared.lines
        self.data, self._starts = lines.data, lines.starts
        self.line_of, self.column_of, self.line_span = lines.line_of, lines.column_of, lines.span
        self.tree, self.module_scope = shared.tree, shared.module_scope
        self.statements, self.imports = shared.statements, shared.imports
        self.classes, self.functions = shared.classes, shared.functions
        self.stars, self._meant = shared.stars, shared.meant
        self._opened, self._heads = shared.opened, shared.heads
        self._parents = shared.parents.copy()  # those of expressions are added
        self.refs: list[ast.expr] = []
        self.calls: list[ast.Call] = []
        self.strings: list[String] = []
        # Most names stand once in their scope: one by itself takes less than in a list.
        self._named: dict[str, dict[Scope, ast.Name | list[ast.Name]]] = {}
        self._parts: dict[ast.JoinedStr, list[Part]] = {}
        self._spans: dict[ast.AST, tuple[int, int]] = {}  # of what is inside f-strings
        self._answers: dict[tuple[object, ast.AST], Any] = {}
        self._of_names: dict[ast.Name, str] = {}
        self._open: dict[tuple[object, ast.AST], int] = {}  # questions that wait for others, with their depth
        self._steps = self._searched = 0
        self._cut = _DEEPEST  # the depth of the outermost question without whose answer another one was given
        self._last: tuple[object, tuple[int, int]] = object(), (0, 0)
        self._known: dict[tuple[object, ...], Any] = {}  # what others have found out, see once
        words = set(words)
        self._expand_on(self._lines_with(words | self._aliases(words)))

    # -- places ---------------------------------------------------------

    def start(self, node: ast.AST) -> int:
        """Byte offset of a node's first byte."""
        return self.span(node)[0]

    def end(self, node: ast.AST) -> int:
        """Byte offset behind a node's last byte."""
        return self.span(node)[1]

    def span(self, node: Any) -> tuple[int, int]:
        """Byte offsets of a node's first byte and behind its last one."""
        last, span = self._last
        if node is last:  # who edits a node tells its place, too: the same numbers then
            return span
        known = self._spans.get(node)
        if known is None:
            starts = self._starts
            known = (
                starts[node.lineno - 1] + node.col_offset,
                starts[node.end_lineno - 1] + node.end_col_offset,
            )
        self._last = node, known
        return known

    def segment(self, node: ast.AST) -> str:
        """A node's source."""
        start, end = self.span(node)
        return self.data[start:end].decode("utf-8")

    # -- the walk over expressions ----------------------------------------

    def _aliases(self, words: set[str]) -> set[str]:
        """Names that stand for something that one of ``words`` names."""
        found: set[str] = set()
        for node in self.imports:
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if alias.asname and words.intersection(f"{module}.{alias.name}".split(".")):
                    found.add(alias.asname)
                elif module and words.intersection(module.split(".")):
                    found.add(alias.asname or alias.name)
        for scope in self.scopes:
            for name, bindings in scope.bindings.items():
                for binding in bindings:
                    if binding.value is not None and not words.isdisjoint(_named_last(binding.value)):
                        found.add(name)
        return found

    def _lines_with(self, words: set[str], first: int = 1, last: int | None = None) -> list[int]:
        """The lines from ``first`` to ``last`` that hold one of the words as a whole word, in order."""
        # One plain search a word: much faster than a pattern of alternatives. Most of many are not there.
        lines: set[int] = set()
        data = self.data
        every = {word.encode("utf-8") for word in words if word}  # an empty one would be found for ever
        if len(every) > _FEW:
            every.intersection_update(data.translate(_BLANKS).split())
        begin, stop = self.line_span(first, last or len(self._starts))
        self._searched += (stop - begin) * len(every)
        for wanted in every:
            if self._searched > _MOST_SEARCHED * len(data) and re.fullmatch(_BYTES_OF_WORD, wanted):
                known = self.once(("lines of words",), self._lines_of_words).get(wanted, ())
                lines.update(
                    known[bisect_left(known, first) : bisect_right(known, last or len(self._starts))]
                )
                continue
            position = data.find(wanted, begin, stop)
            while position >= 0:
                end = position + len(wanted)
                beside = data[position - 1 : position], data[end : end + 1]
                if _WORD_BYTES.isdisjoint(beside):
                    lines.add(self.line_of(position))
                position = data.find(wanted, end, stop)
        return sorted(lines)

    def _lines_of_words(self) -> dict[bytes, list[int]]:
        """The lines of each word of the file: for a file whose names are looked for one by one."""
        found: dict[bytes, list[int]] = {}
        for place in re.finditer(_BYTES_OF_WORD, self.data):
            known, line = found.setdefault(place[0], []), self.line_of(place.start())
            if known[-1:] != [line]:
                known.append(line)
        return found

    def _expand_on(self, lines: list[int]) -> None:
        """Walk the expressions of statements that lie on one of ``lines``; both are in order."""
        statements = self.statements
        if statements and not self._heads:
            self._heads += map(list, zip(*map(head_lines, statements)))
        firsts, ends = self._heads or ([], [])
        found: dict[Statement, None] = {}  # a few of many are found fast
        for line in lines:
            for statement in statements[bisect_left(ends, line) : bisect_right(firsts, line)]:
                found[statement] = None
        for statement in found:
            self.expand(statement, lines)

    def expand(self, statement: ast.AST, lines: list[int] | None = None) -> None:
        """Walk the expressions of a statement; of one with a body those that lie on some lines, if given."""
        fresh = [child for child in children(statement, BODY_FIELDS) if child not in self._parents]
        if lines is not None and body_fields(statement.__class__):
            fresh = [child for child in fresh if touches(child, lines)]
        if fresh:
            self._expand(statement, fresh)

    def _expand(self, statement: ast.AST, nodes: list[ast.AST]) -> None:
        parents = self._parents
        for node in nodes:
            parents.setdefault(node, statement)
        stack: list[Any] = nodes[::-1]
        scope = self._scope_around(statement)
        while stack:
            node = stack.pop()
            cls = node.__class__
            if cls is ast.Attribute or cls is ast.Name:
                if parents[node].__class__ is not ast.Attribute:
                    self.refs.append(node)
                if cls is ast.Name:
                    in_scopes = self._named.setdefault(node.id, {})
                    known = in_scopes.get(scope)
                    if known is None:
                        in_scopes[scope] = node
                    elif isinstance(known, list):
                        known.append(node)
                    else:
                        in_scopes[scope] = [known, node]
            elif cls is ast.Constant:
                if node.value.__class__ is str:
                    self.strings.append(node)
                continue
            elif cls is ast.JoinedStr:
                self.strings.append(node)
                self._parts[node] = place_fstring(self.segment(node), self.start(node)) or []
                for part in self._parts[node]:
                    if part.expression is not None:
                        self._spans.update(part.spans)
                        parents[part.expression] = node
                        stack.append(part.expression)
                continue
            elif cls is ast.Call:
                self.calls.append(node)
            for field in fields_of(cls):
                child = getattr(node, field)
                if child.__class__ is list:
                    for item in reversed(child):
                        if isinstance(item, ast.AST):
                            parents[item] = node
                            stack.append(item)
                elif isinstance(child, ast.AST):
                    parents[child] = node
                    stack.append(child)

    # -- what is around a node -------------------------------------------

    def parent(self, node: ast.AST | None) -> ast.AST | None:
        """The node around one; None for the module, and for a node that no word led to."""
        return self._parents.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around one, the innermost first."""
        around = self._parents.get(node)
        while around is not None:
            yield around
            around = self._parents.get(around)

    def way_up(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """The same, each behind its part that holds the node."""
        child = node
        for around in self.above(node):
            yield child, around
            child = around

    def chosen(self, node: ast.expr) -> ast.expr:
        """The widest choice around a value of which it is one: ``a if x else value``; else the value."""
        around = self._parents.get(node)
        return self.chosen(around) if isinstance(around, ast.IfExp) and node is not around.test else node

    def call_of(self, node: ast.AST | None) -> ast.Call | None:
        """The call that calls a node; None where it is not called."""
        call = self._parents.get(node)
        return call if isinstance(call, ast.Call) and call.func is node else None

    def block(self, statement: ast.AST) -> Sequence[ast.stmt]:
        """The statements in a row, of which this is one; empty for the part of another statement."""
        around = self._parents.get(statement)
        return self.once(("blocks", around), lambda: _blocks(around)).get(statement, ())

    def before(self, statement: ast.AST) -> Iterator[ast.stmt]:
        """The statements of the same block before one, in order."""
        return takewhile(lambda each: each is not statement, self.block(statement))

    def behind(self, statement: ast.AST) -> Iterator[ast.stmt]:
        """The statements of the same block behind one, in order."""
        return islice(dropwhile(lambda each: each is not statement, self.block(statement)), 1, None)

    def parts(self, string: ast.JoinedStr) -> Sequence[Part]:
        """The parts of an f-string, in order; empty where its text cannot be read."""
        return self._parts.get(string, ())

    def statement_of(self, node: ast.AST) -> Statement:
        """The statement (or except handler, or match case) that a node belongs to."""
        found: Any = node
        while not isinstance(found, STATEMENTS):
            found = self._parents.get(found) or self._statement_around(found)
        return found

    def _statement_around(self, node: Any) -> Any:
        """The statement of a node that was not walked, because no word led to it; walks it."""
        place = (node.lineno, node.col_offset)
        starts, statements = self.once(("places of statements",), self._places_of_statements)
        before = reversed(statements[: bisect_right(starts, place)])
        # An inner one comes behind its outer one.
        around = next((a for a in before if place < (a.end_lineno, a.end_col_offset)), statements[0])
        self.expand(around)
        return around

    def _places_of_statements(self) -> tuple[list[tuple[int, int]], list[Any]]:
        statements = [each for each in self.statements if isinstance(each, (ast.stmt, ast.ExceptHandler))]
        heads = [getattr(each, "decorator_list", None) or [each] for each in statements]
        return [(first.lineno, first.col_offset) for first, *_ in heads], statements

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope in which a node's names are looked up."""
        if isinstance(node, ast.Module):  # no statement holds it
            return self.module_scope
        return self._scope_around(self.statement_of(node))

    def _scope_around(self, statement: ast.AST) -> Scope:
        around = self._parents[statement]
        while around not in self._opened:
            around = self._parents[around]
        return self._opened[around]

    def function_of(self, node: ast.AST) -> Function | None:
        """The innermost function whose body holds a node."""
        owners = (scope.node for scope in self.scope_of(node).and_outer())
        return next((owner for owner in owners if isinstance(owner, FUNCTIONS)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class whose body, or whose methods' bodies, hold a node."""
        owners = (scope.node for scope in self.scope_of(node).and_outer())
        return next((owner for owner in owners if isinstance(owner, ast.ClassDef)), None)

    @property
    def scopes(self) -> Iterable[Scope]:
        """All scopes, each right before those inside it."""
        return self._opened.values()

    def inside(self, node: ast.AST | None) -> Scope | None:
        """The scope that a function or a class opens; None for anything else."""
        return self._opened.get(node)

    def statements_in(self, function: Function) -> list[Statement]:
        """The statements of a function's body, without those of functions and classes inside it."""
        return self._opened[function].statements

    def returned(self, function: Function) -> list[ast.expr | None]:
        """What a function's return statements give; None for a bare ``return``."""
        returns = [each for each in self.statements_in(function) if isinstance(each, ast.Return)]
        for statement in returns:
            self.expand(statement)
        return [statement.value for statement in returns]

    def stored_as(self, node: ast.Attribute) -> list[ast.expr]:
        """The values that the class around ``self.name`` stores under it; nothing for another attribute."""
        owner = self.class_of(node) if bare_name(node.value) == "self" else None
        return self.stored_on_self(owner).get(node.attr, []) if owner is not None else []

    def stored_on_self(self, owner: ast.ClassDef) -> dict[str, list[ast.expr]]:
        """The values that a class's methods store as ``self.name``, or register as buffers or parameters."""

        def find() -> dict[str, list[ast.expr]]:
            stored: dict[str, list[ast.expr]] = {}
            methods = (method for method in owner.body if isinstance(method, FUNCTIONS))
            for statement in chain.from_iterable(map(self.statements_in, methods)):
                for name, value in _on_self(statement):
                    self.expand(statement)
                    stored.setdefault(name, []).append(value)
            return stored

        return self.once(("stored", owner), find)

    # -- what a name means -------------------------------------------------

    def bindings(self, node: ast.Name) -> list[Binding]:
        """Everything that binds a name in the scope where Python would find it."""
        name, parents = node.id, self._parents
        child: Any = node
        while not isinstance(child, ast.stmt):
            parent: Any = parents.get(child)
            if parent is None:  # no word led to it
                child = self.statement_of(node)
                continue
            cls = parent.__class__
            if cls is ast.Lambda and child is parent.body:
                if any(each.arg == name for each in parameters(parent.args)):
                    return [Binding("param", parent)]
            elif cls in _COMPREHENSIONS:
                for generator in parent.generators:
                    if any(isinstance(t, ast.Name) and t.id == name for t in ast.walk(generator.target)):
                        return [Binding("other", parent)]
            child = parent
        return self._scope_around(child).look_up(name)

    def qualified_name(self, node: ast.AST) -> str:
        """The full dotted name that an expression stands for; empty where that is unknown."""
        if isinstance(node, ast.Name):
            if node.id not in self._meant and not self.stars:  # a parameter: a third of all uses
                return ""
            known = self._of_names.get(node)
            if known is None:
                known = of_name(self, node)
                if not self._open and len(self._of_names) < _MOST_ANSWERS:  # nothing was left open for it
                    self._of_names[node] = known
            return known
        return self.ask("name", node, lambda: full_name(self, node), "")

    def references(self) -> list[tuple[ast.expr, str]]:
        """The outermost dotted names, and calls of ``getattr``, with the full names that they stand for."""
        calls = (call for call in self.calls if bare_name(call.func) == "getattr")
        return [(each, self.qualified_name(each)) for each in (*self.refs, *calls)]

    def ask(self, question: object, node: ast.AST, find: Callable[[], Answer], unknown: Answer) -> Answer:
        """The answer to a question about a node, which may ask others: each is found once.

        It is ``unknown`` where a question leads back to itself, or to too many others. What was answered
        without the answer to a question that is still open is not kept.
        """
        key = question, node
        if key in self._answers:
            known: Answer = self._answers[key]
            return known
        depth = len(self._open)
        self._steps = self._steps + 1 if depth else 0
        if key in self._open or depth == _DEEPEST or self._steps > _MOST_STEPS:
            self._cut = min(self._cut, self._open.get(key, 0))
            return unknown
        around, self._cut = self._cut, _DEEPEST
        self._open[key] = depth
        try:
            answer = find()
        finally:
            del self._open[key]
        if self._cut >= depth:
            if len(self._answers) == _MOST_ANSWERS:
                self._answers.clear()
            self._answers[key] = answer
            self._cut = around
        else:
            self._cut = min(self._cut, around)
        return answer

    def assigned(self, node: ast.Name) -> list[ast.expr]:
        """The values that assignments give a name."""
        found = []
        for binding in self.bindings(node):
            if binding.kind == "assign" and binding.value is not None:
                self.expand(binding.node)
                found.append(binding.value)
        return found

    def only_assigned(self, node: ast.Name) -> list[ast.expr]:
        """The values of a name that nothing else binds than assignments to it alone; else nothing."""
        values = self.assigned(node)
        return values if len(values) == len(self.bindings(node)) else []

    def is_bound_by(self, kind: str, node: ast.AST) -> bool:
        """Whether a node is a name that something of a kind binds: an import, a parameter."""
        return isinstance(node, ast.Name) and any(each.kind == kind for each in self.bindings(node))

    def definition(self, node: ast.AST) -> Function | ast.ClassDef | None:
        """The function or class of the file that a name stands for; None where it may be something else."""
        made = self.bindings(node) if isinstance(node, ast.Name) else []
        definition = made[0].node if len(made) == 1 else None
        return definition if isinstance(definition, (*FUNCTIONS, ast.ClassDef)) else None

    def function_called(self, call: ast.Call) -> Function | None:
        """The one function of the file that a call calls by its name."""
        definition = self.definition(call.func)
        return definition if isinstance(definition, FUNCTIONS) else None

    def once(self, key: tuple[object, ...], find: Callable[[], Answer]) -> Answer:
        """What ``find`` finds out about the file; it is asked once for each key."""
        if key not in self._known:
            self._known[key] = find()
        answer: Answer = self._known[key]
        return answer

    def uses(self, name: str, scope: Scope) -> Sequence[ast.Name]:
        """Every read of a name that a scope binds, there and in the scopes inside it."""

        def find() -> list[ast.Name]:
            first = getattr(scope.node, "lineno", 1)
            lines = self._lines_with({name}, first, getattr(scope.node, "end_lineno", len(self._starts)))
            self._expand_on(lines)
            named = self._named.get(name, {})
            # A file may have thousands of scopes, of which few read the name.
            places = self.once(("places of scopes",), lambda: dict(zip(self.scopes, count())))
            inside = [each for each in sorted(named, key=places.__getitem__) if each.owner(name) is scope]
            held = (named[each] for each in inside)
            uses = (use for each in held for use in (each if isinstance(each, list) else [each]))
            return [use for use in uses if isinstance(use.ctx, ast.Load)]

        return self.once(("uses", name, scope), find)

    def uses_of(self, node: ast.Name | Function | ast.ClassDef) -> Sequence[ast.Name]:
        """Every read of the name that stands at a place, or that a definition has."""
        name = node.id if isinstance(node, ast.Name) else node.name
        owner = self.scope_of(node).owner(name)
        return self.uses(name, owner) if owner is not None else ()

    def reads_of(self, value: ast.expr) -> Sequence[ast.expr]:
        """Where a value is read: where it stands, or by the one name that it is assigned to."""
        statement = self._parents.get(value)
        target = only_target(statement)
        return self.uses_of(target) if isinstance(target, ast.Name) else [value]

    def members(self, name: str) -> Sequence[ast.Attribute]:
        """Every place at which the file names an attribute of any object by this name."""

        def find() -> list[ast.Attribute]:
            if f".{name}" not in self.text:
                return []
            self._expand_on(self._lines_with({name}))
            return [each for ref in self.refs for each in attributes(ref) if each.attr == name]

        return self.once(("members", name), find)

    def named(self, *words: str) -> Sequence[String]:
        """The strings on the lines that hold one of some words."""
        self._expand_on(self._lines_with({*words}))
        return self.strings


def _blocks(around: ast.AST | None) -> dict[ast.AST, list[ast.stmt]]:
    """The blocks of a statement by the statements in them, of which there may be thousands."""
    blocks = (getattr(around, field, None) for field in ("body", "orelse", "finalbody"))
    return {each: block for block in blocks if isinstance(block, list) for each in block}


def _named_last(value: ast.expr | None) -> list[str]:
    """What a value is looked up by: ``cuda`` of ``torch.cuda``, and of ``getattr(torch, "cuda")``."""
    if isinstance(value, ast.Attribute):
        return [value.attr]
    named = value.args if isinstance(value, ast.Call) else [getattr(value, "slice", None)]
    return [text for text in map(string_value, named) if text]


def _on_self(statement: Statement) -> Iterator[tuple[str, ast.expr]]:
    """The attributes of ``self`` that a statement gives a value."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        for target in targets_of(statement):
            if isinstance(target, ast.Attribute) and bare_name(target.value) == "self":
                yield target.attr, statement.value
    elif isinstance(statement, ast.Expr) and isinstance(call := statement.value, ast.Call):
        name = string_value(call.args[0]) if called_name(call) in _REGISTERS and len(call.args) == 2 else None
        if name is not None:
            yield name, call.args[1]
