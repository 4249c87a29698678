"""The places in a program that a failure is about, what was seen there, and where these values came from."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from migrator.files.errors import Unreadable
from migrator.files.source import Source, read
from migrator.findings.finding import Edit
from migrator.light import Frozen
from migrator.matchers.npu_import import import_at_top
from migrator.names.made_from import Parameter, one_step_back, parameter_of, returned_values
from migrator.names.outline import Binding
from migrator.names.tree import (
    FUNCTIONS,
    Function,
    argument_of,
    called_name,
    defaults,
    hands_on,
    last_name,
    string_value,
    targets_of,
)
from migrator.names.whole_file import WholeFile
from migrator.verify.diagnosis import Failure, Frame, is_own
from migrator.verify.observed import Span
from migrator.verify.verdict import Course

_FOLLOWED = (ast.Name, ast.Attribute, ast.Call, ast.IfExp, ast.BoolOp)
_MOST_FILES = 12  # through which a name is handed on


class Code(WholeFile):
    """A Python file of the project, with all of its expressions. Offsets are those of its UTF-8 text.

    ``name`` is its path below the project's folder. Raises as ``names.tree.parse`` does.
    """

    def __init__(self, name: str, path: Path, origin: Source) -> None:
        super().__init__(name, origin.text)
        self.path, self.origin = path, origin

    def spot(self, node: Any) -> tuple[str, Span]:
        """Path, line, column in bytes, last line, column behind the last byte."""
        return str(self.path), (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def added(self, node: ast.AST, text: str) -> Edit:
        """An edit that puts a text behind a node."""
        return Edit(self.end(node), self.end(node), text)

    def place(self, node: ast.expr | ast.stmt) -> str:
        """File, line and the line's text."""
        return f"{self.name}:{node.lineno}: {self.text.splitlines()[node.lineno - 1].strip()}"

    def import_of_torch(self) -> list[Edit]:
        """What a file that calls torch.npu has to import."""
        if any(alias.name == "torch" and not alias.asname for node in self.imports for alias in node.names):
            return []
        made = [import_at_top(self, f"import {name}") for name in ("torch", "torch_npu")]
        return [each[1] for each in made if each]


class Origin(NamedTuple):
    """An expression that a value came from, in its file."""

    code: Code
    node: Any  # an expression

    @property
    def line(self) -> str:
        """File, line and source, for a person."""
        return self.code.place(self.node)


class Proposal(Frozen):
    """Edits of one file. ``evidence``: what was seen there; ``origin``: the line that the value came from."""

    code: Code
    node: ast.expr | ast.stmt
    edits: Sequence[Edit]
    evidence: str
    origin: str = ""


class Site(Frozen):
    """One call of the program on the way to a failure; ``above``: those that led to it, innermost first."""

    seen: Seen
    code: Code
    frame: Frame
    statement: ast.stmt
    expression: ast.AST  # what failed; the statement where that is not known
    above: tuple[Frame, ...] = ()

    def values(self, *kinds: str) -> list[tuple[ast.expr, Mapping[str, Any]]]:
        """The expressions in what failed whose values are known (and of some kinds), the outermost first."""
        known = {value["expression"]: value for value in self.frame.values}
        inside = (node for node in ast.walk(self.expression) if isinstance(node, ast.expr))
        own = (node for node in inside if self.code.statement_of(node) is self.statement)
        found = ((node, known.get(ast.unparse(node))) for node in own)
        return [(node, value) for node, value in found if value and (not kinds or value["kind"] in kinds)]

    def calls(self, *names: str) -> list[ast.Call]:
        """The calls in what failed (of functions with some names), that which failed first."""
        calls = [node for node in ast.walk(self.expression) if isinstance(node, ast.Call)]
        return [call for call in calls if not names or called_name(call) in names]

    def proposal(
        self, node: ast.expr | ast.stmt, edits: Sequence[Edit], evidence: str, of: ast.expr | None = None
    ) -> Proposal:
        """A change of the file; with the line that the value ``of`` an expression came from."""
        return Proposal(self.code, node, edits, evidence, self.origin(of).line if of is not None else "")

    def origin(self, node: ast.expr, value: object = None) -> Origin:
        """Where the value of an expression was made, as far back as its way is clear."""
        return self.seen.origin(Origin(self.code, node), value, self.above)


class Seen:
    """What a run showed of a project: a failure, or where its processes waited. Files are read on demand.

    ``files`` are those that were loaded: no other one has to do with it.
    """

    def __init__(
        self,
        folder: Path,
        failure: Failure | None = None,
        course: Course = Course(),
        files: Iterable[str] = (),
    ) -> None:
        self.folder, self.failure, self.stacks = folder.resolve(), failure, course.stacks
        self.evaluated = course.evaluated
        own = (frame.file for stack in (failure, *course.stacks) if stack for frame in reversed(stack.frames))
        self._files = dict.fromkeys((*own, *files))
        self._known: dict[Path, Code | None] = {}

    def waiting(self) -> list[tuple[str, Frame]]:
        """Who waits, or was waiting when its peer had gone, and where in the program."""
        stacks = (*self.stacks, *filter(None, [self.failure]))
        return [(each.who, own) for each in stacks if (own := each.own(self.folder)) is not None]

    def code(self, file: str) -> Code | None:
        """A file by its path; None where it is not the project's, or cannot be parsed."""
        path = Path(file).resolve()
        if path not in self._known:
            self._known[path] = None
            with suppress(Unreadable, SyntaxError, ValueError, RecursionError):
                if is_own(str(path), self.folder):
                    name = path.relative_to(self.folder).as_posix()
                    self._known[path] = Code(name, path, read(path, path.name))
        return self._known[path]

    def every(self) -> Iterator[Code]:
        """The files that the run loaded, those on the way to the failure first."""
        yield from filter(None, map(self.code, self._files))

    def functions(self, *nodes: ast.AST) -> Iterator[tuple[Code, Function]]:
        """The functions of the project that have the name of one that is called in an expression."""
        names = {called_name(call) for node in nodes for call in ast.walk(node) if isinstance(call, ast.Call)}
        for code in self.every():
            yield from ((code, each) for each in code.functions if each.name in names)

    def origin(self, start: Origin, value: object = None, above: tuple[Frame, ...] = ()) -> Origin:
        """Where a value was made; ``above`` are the calls under way, which gave parameters theirs."""
        way, entered = [start], list[Origin]()
        while True:
            here = way[-1]
            before = self._before(here, value)
            parameter = parameter_of(here.code, here.node) if before is None else None
            if parameter is not None and entered:
                before = _given(entered.pop(), parameter, here.code)
            elif parameter is not None:
                caller = next(iter(self.sites(above[::-1])), None)
                above = caller.above if caller else ()
                calls = caller.calls(parameter.function.name, "") or caller.calls() if caller else []
                if caller and calls:
                    before = _given(Origin(caller.code, calls[0]), parameter, here.code)
            elif before is not None and isinstance(here.node, ast.Call):
                entered.append(here)
            text = string_value(before.node) if before else None
            if before is None or before in way or (text is not None and str(value or text) not in text):
                return here
            way.append(before)

    def _before(self, here: Origin, value: object) -> Origin | None:
        """What gave an expression its value: the last assignment, the only one elsewhere, a result."""
        code, node = here
        steps = (one_step_back(code, node) or []) if isinstance(node, _FOLLOWED) else []
        if isinstance(node, ast.Name):
            steps = [each for each in steps if each.lineno <= node.lineno][-1:]
        elif isinstance(node, (ast.IfExp, ast.BoolOp)):  # the side that has this value
            steps = [each for each in steps if value is not None and string_value(each) == value]
        found = [Origin(code, each) for each in steps]
        called = isinstance(node, ast.Call)
        for other, binding in () if found else self._imported(code, node.func if called else node):
            if called and isinstance(binding.node, FUNCTIONS):
                found += [Origin(other, each) for each in returned_values(other, binding.node)]
            elif not called and binding.value is not None:
                found.append(Origin(other, binding.value))
        if not found and isinstance(node, (ast.Attribute, ast.Subscript)):
            name = last_name(node)
            found = [Origin(other, each) for other in self.every() for each in _kept_as(other, name)]
        return found[0] if len(found) == 1 else None

    def _imported(self, code: Code, node: ast.expr) -> list[tuple[Code, Binding]]:
        """What binds a name in the module of the project that it is imported from, or looked up in."""
        full, found = code.qualified_name(node), list[tuple[Code, Binding]]()
        for _ in range(_MOST_FILES):
            module, _, name = full.rpartition(".")
            path = f"/{module.strip('.').replace('.', '/')}.py"
            files = (each for each in self.every() if f"/{each.name}".replace("/__init__", "").endswith(path))
            found = [(file, one) for file in [*files][:1] for one in file.module_scope.look_up(name)]
            full = next((one.name for _, one in found if one.kind == "import"), "")
            if not full:
                break
        return found

    def sites(self, frames: Sequence[Frame] | None = None) -> list[Site]:
        """The program's own calls on the way to the failure, the innermost first."""
        frames = (self.failure.frames if self.failure else ()) if frames is None else frames
        found = []
        for place, frame in reversed(list(enumerate(frames))):
            code = self.code(frame.file)
            every = (node for node in code.statements if isinstance(node, ast.stmt)) if code else ()
            around = [node for node in every if node.lineno <= frame.line <= (node.end_lineno or node.lineno)]
            if code is None or not around:
                continue
            statement = max(around, key=lambda node: node.lineno)
            span = (frame.line, frame.column, frame.end_line, frame.end_column)
            inside = (node for node in ast.walk(statement) if isinstance(node, (ast.expr, ast.stmt)))
            expression = next((node for node in inside if code.spot(node)[1] == span), statement)
            above = tuple(reversed(frames[:place]))
            found.append(Site(self, code, frame, statement, expression, above))
        return found


def _given(call: Origin, parameter: Parameter, code: Code) -> Origin | None:
    """What a call gives a parameter of a function in ``code``, or else its default."""
    known = list(defaults(parameter.function.args))
    place = None if hands_on(call.node) else parameter.place - (known[0][0].arg in ("self", "cls"))
    value, usual = argument_of(call.node, parameter.name, place), known[parameter.place][1]
    if value is not None:
        return Origin(call.code, value)
    return Origin(code, usual) if usual is not None and place is not None else None


def _kept_as(code: Code, name: str) -> Iterator[ast.expr]:
    """What a file stores under the name of an attribute, of a class's field, or of a key."""
    for node in ast.walk(code.tree) if name and name in code.text else ():
        if isinstance(node, ast.Dict):
            yield from (value for key, value in zip(node.keys, node.values) if string_value(key) == name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in targets_of(node):
                field = isinstance(target, ast.Name) and isinstance(code.parent(node), ast.ClassDef)
                if last_name(target) == name and (field or not isinstance(target, ast.Name)):
                    yield node.value
