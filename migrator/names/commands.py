"""Commands that a program runs: with subprocess and os, as a list of words or as a line of a shell.

Also the words that it gives its own parsers, as a command would.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from migrator.light import NamedTuple
from migrator.names.index import ModuleIndex
from migrator.names.made_from import given, last_assigned, parameter_of
from migrator.names.tree import (
    argument_of,
    bare_name,
    called_name,
    holder_of,
    is_none,
    string_value,
    summands,
)

_SHELLS = ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput")
RUNNERS = frozenset(
    {*_SHELLS, *(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))}
)
# What parses the arguments of a program, or hands them to its parser; that of click, and of Hydra.
_SECOND = {"invoke": "args", "compose": "overrides"}
_PARSING = frozenset(
    "parse_args parse_known_args parse_intermixed_args parse_args_into_dataclasses main".split()
)
_PATCHING = frozenset({"patch", "object", "setattr"})
_ERRORS_GO = r"\b2>\s*(?:/dev/null|&1)"  # where they go says nothing of the output
_UNKNOWN = r"[\0$`]"
_FIELD = r"\{[^{}]*\}"
_MOST_STEPS = 50  # back from one command


class Word(NamedTuple):
    """A word of a command: its text, empty where that is not known, and the literal that holds it."""

    text: str
    node: ast.expr


class Command(NamedTuple):
    """A command that a call runs.

    ``runner`` is what runs it, by its full name. ``line`` says that it is one text, which is read by a shell
    where ``shell``. ``through`` are the assignments of names that it comes by, the last one first.
    """

    call: ast.Call
    runner: str
    words: tuple[Word, ...]
    line: bool
    shell: bool
    through: tuple[ast.stmt, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The words; empty ones are not known."""
        return [word.text for word in self.words]


def commands(index: ModuleIndex) -> Iterator[Command]:
    """The commands of a file, in the order in which its calls are known."""
    for call in index.calls:
        runner = index.qualified_name(call.func)
        if runner in RUNNERS:
            reader, written = _Reader(index), argument_of(call, "args", 0)
            words, is_list = reader.read(written) if written is not None else (None, False)
            if words or (is_list and words is not None):
                shell = argument_of(call, "shell")
                in_shell = runner in _SHELLS or (isinstance(shell, ast.Constant) and bool(shell.value))
                yield Command(call, runner, tuple(words), not is_list, in_shell, tuple(reader.through))


def given_to_parsers(index: ModuleIndex) -> dict[ast.expr, tuple[Word, ...]]:
    """The words that a file gives its program's parsers, in a call or as ``sys.argv``, by what holds them."""

    def find() -> Iterator[tuple[ast.expr, tuple[Word, ...]]]:
        for node, is_whole in _for_parsers(index):
            words, is_list = _Reader(index).read(node)
            if words and (is_list or len(words) == 1):  # sys.argv.append("--device=cuda")
                yield node, tuple(words[is_whole:])

    return index.once(("given to parsers",), lambda: dict(find()))


def is_value_for_parser(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a string stands behind an option in what a parser of the program is given."""

    def find() -> set[ast.AST]:
        pairs = (pair for words in given_to_parsers(index).values() for pair in zip(words, words[1:]))
        return {word.node for option, word in pairs if option.text.startswith("-") and "=" not in option.text}

    return node in index.once(("values for parsers",), find)


def _for_parsers(index: ModuleIndex) -> Iterator[tuple[ast.expr, bool]]:
    """What parsers are given, and whether the name of the program is the first of it."""
    has_argv = "argv" in index.text
    for call in index.calls:
        called = called_name(call)
        texts = map(string_value, call.args if called in _PATCHING else ())
        is_patch = any(text in ("argv", "sys.argv") for text in texts)
        given = argument_of(call, "args", 0) or argument_of(call, "argv") if called in _PARSING else None
        if called in _SECOND:
            given = argument_of(call, _SECOND[called], 1)
        if is_patch or (has_argv and call.args and _is_argv(index, holder_of(call))):
            given = call.args[-1]
        if given is not None:
            yield given, is_patch
    for ref in index.refs if has_argv else ():
        if _is_argv(index, ref):
            first = index.parent(ref)
            around = index.parent(first) if isinstance(first, ast.Subscript) else first
            if isinstance(around, (ast.Assign, ast.AugAssign)) and around.value not in (ref, first):
                yield around.value, around is first and isinstance(around, ast.Assign)


def _is_argv(index: ModuleIndex, node: ast.expr | None) -> bool:
    return node is not None and bare_name(node) == "argv" and index.qualified_name(node) == "sys.argv"


@dataclass(eq=False, repr=False)
class _Reader:
    """Reads a command, and the assignments of the names that it comes by."""

    index: ModuleIndex
    through: list[ast.stmt] = field(default_factory=list)
    steps: int = 0

    def read(self, node: ast.expr, in_line: bool = False) -> tuple[list[Word] | None, bool]:
        """The words of a command, None where they are not known, and whether it is a list; or of a line."""
        if isinstance(node, (ast.List, ast.Tuple)) and not in_line:
            return [word for item in node.elts for word in self._words(item)], True
        if isinstance(node, ast.Call) and called_name(node) == "split" and not in_line:
            by_shell = self.index.qualified_name(node.func) == "shlex.split" and node.args
            line = node.args[0] if by_shell else holder_of(node)
            between = None if by_shell else argument_of(node, "sep", 0)
            if between is not None and not is_none(between) and string_value(between) != " ":
                return None, True  # words between commas
            while isinstance(line, ast.Call) and called_name(line) == "strip":
                line = holder_of(line)
            return self.read(line, in_line=True)[0] if line is not None else None, True
        part = node.slice if isinstance(node, ast.Subscript) and not in_line else None
        if isinstance(node, ast.Subscript) and isinstance(part, ast.Slice) and part.step is None:
            listed, bounds = self._listed(node.value), (part.lower, part.upper)
            first, last = (getattr(each, "value", None) for each in bounds)
            is_known = all(each is None or isinstance(each, ast.Constant) for each in bounds)
            return listed[first:last] if listed and is_known else None, True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and not in_line:
            left, right = self._listed(node.left), self._listed(node.right)
            if left is not None or right is not None:
                return [*(left or [Word("", node.left)]), *(right or [Word("", node.right)])], True
        text = _text(node)
        if isinstance(node, ast.Call) and called_name(node) == "format":
            node = holder_of(node) or node
            text = string_value(node)
            text = None if text is None or "{{" in text else re.sub(_FIELD, "\0", text)
        if text is not None:
            return _split(text, node), False
        value = self._assigned(node)
        words, is_list = self.read(value, in_line) if value is not None else (None, False)
        return [*words, *self._added(node)] if words and is_list and not in_line else words, is_list

    def _listed(self, node: ast.expr) -> list[Word] | None:
        words, is_list = self.read(node)
        return words if is_list else None

    def _added(self, node: ast.expr) -> list[Word]:
        """What is added to a list that a name holds, up to a use: ``command += ["--device", device]``."""
        added: dict[int, list[Word]] = {}
        for binding in self.index.bindings(node) if isinstance(node, ast.Name) else ():
            if isinstance(statement := binding.node, ast.AugAssign):
                self.index.expand(statement)
                added[statement.lineno] = self._listed(statement.value) or []
        for use in self.index.uses_of(node) if isinstance(node, ast.Name) else ():
            call = self.index.call_of(self.index.parent(use))
            if call is not None and call.args and called_name(call) in ("append", "extend"):
                read = self._words if called_name(call) == "append" else self._listed
                added[call.lineno] = read(call.args[0]) or []
        first = self.through[-1].lineno if self.through else 0
        return [word for line in sorted(added) if first < line < node.lineno for word in added[line]]

    def _words(self, node: ast.expr) -> list[Word]:
        """The words of an element: of ``*options`` those that its list holds, or that callers hand in.

        Behind those one that is not known, as there may be others, too.
        """
        if not isinstance(node, ast.Starred):
            return [self._word(node)]
        lists = [node.value]
        parameter = parameter_of(self.index, node.value)
        if parameter is not None and self._goes_on():
            lists = list(given(self.index, parameter))
        known = [word for each in lists for word in self._listed(each) or ()]
        return [*known, Word("", node)]

    def _word(self, node: ast.expr) -> Word:
        text = string_value(node) or _script(node)
        if text is None and isinstance(node, ast.Name):
            value = self._assigned(node, follows=False)
            text = string_value(value)
        if text is None and self.index.qualified_name(node) == "sys.executable":
            text = "python"
        return Word(text or "", node)

    def _assigned(self, node: ast.expr, follows: bool = True) -> ast.expr | None:
        """What a name was given last; with ``follows`` the command comes by that assignment."""
        if not isinstance(node, ast.Name) or not self._goes_on():
            return None
        last = last_assigned(self.index, node, changes=not follows)
        if last is None or last.kind != "assign" or last.value is None:
            return None
        self.index.expand(last.node)
        if follows and isinstance(last.node, ast.stmt):
            self.through.append(last.node)
        return last.value

    def _goes_on(self) -> bool:
        """Whether one more step back may be made: what is made of itself has no end."""
        self.steps += 1
        return self.steps < _MOST_STEPS


def _script(node: ast.expr) -> str | None:
    """The name of the script at the end of a path: ``str(HERE / "t.py")``, ``os.path.join(HERE, "t.py")``."""
    if isinstance(node, ast.Call) and called_name(node) in ("str", "fspath", "join") and node.args:
        return _script(node.args[-1])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _script(node.right)
    text = string_value(node)
    return text if text and text.endswith(".py") else None


def _text(node: ast.expr) -> str | None:
    """A string; what a field or a part of a sum gives is not known, nor is the word that it is a part of."""
    if isinstance(node, ast.JoinedStr):
        return "".join(string_value(part) or "\0" for part in node.values)
    parts = summands(node)
    return "".join(string_value(part) or "\0" for part in parts) if len(parts) > 1 else string_value(node)


def _split(text: str, node: ast.expr) -> list[Word] | None:
    """The words of a text as a shell takes them; an operator of the shell is one, too."""
    lexer = shlex.shlex(re.sub(_ERRORS_GO, " ", text), posix=True, punctuation_chars="|;&<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:  # a quote that nothing closes
        return None
    return [Word("" if re.search(_UNKNOWN, word) else word, node) for word in words]
