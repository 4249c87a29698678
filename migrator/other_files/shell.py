"""Reader of shell scripts, by tree-sitter-bash: places are exact, and an odd line spoils only itself."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, product

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point, Range

from migrator.files.source import Lines
from migrator.other_files.command_lines import (
    SHELLS,
    ShellWord,
    is_python,
    programs,
    settings,
    shell_word,
    span_of,
    starts_program,
    text_of,
    variable_of,
    without_quotes,
)
from migrator.other_files.index import FILLED, Command, Content, Program, Setting, Span, Word

WORDS = frozenset(
    "word number raw_string string concatenation simple_expansion expansion command_substitution"
    " arithmetic_expansion process_substitution brace_expression extglob_pattern ansi_c_string"
    " translated_string".split()
)
_DEFAULTS = (":-", "-", ":=", "=")
# What these print is for people; what stands behind it is no option.
_PRINTING = frozenset({"echo", "printf", "log", "logger", ":"})
# The rest of such a comment are options of what submits the script.
_DIRECTIVE = re.compile(rb"#(?:(SBATCH)|(PBS)|(BSUB))[ \t]+")
# A byte between double quotes, without the backslash that is for the shell around it.
_UNESCAPED = re.compile(rb"(?:\\\n)*(?:\\(?=[\"$`\\]))?(.)", re.DOTALL)
_SUBMITTERS = ("sbatch", "qsub", "bsub")
# Their words, put together, are what a shell runs; and what takes a shell from its input.
_TAKE_SHELL = ("eval", "ssh", "tmux", "parallel")
_READ_SHELL = (*SHELLS, "sbatch", "qsub", "bsub", "ssh")
_WRAP = "--wrap="
_DEEPEST = 4
_SOME_COMMAND = b"x "
# Options, perhaps behind what other variables hold.
_OPTIONS = re.compile(rf"\s*(?:{FILLED}\s+)*--?[A-Za-z]")
_MOST_PAIRS = 10_000  # of the texts of a variable and the options that it goes to


def read(lines: Lines) -> Content:
    """What a shell script says. What the grammar cannot read is left out."""
    return read_shell(lines.data)


def read_shell(data: bytes, spans: tuple[Span, ...] = (), depth: int = 0, in_value: bool = False) -> Content:
    """The same of bytes, or of the ``spans`` in them that are shell; ``depth`` shells are around it.

    ``in_value``: it stands in a value of a configuration, where quotes may be around it.
    """
    script = _Script(data, depth, in_value)
    script.take(spans)
    return script.content()


def listed(words: Sequence[Word], span: Span) -> Content:
    """A command whose words stand one by one in a list, each with the place of its text, or around it."""
    known = []
    for text, place in words:
        own = FILLED if text is None else text
        *starts, end = accumulate((len(char.encode("utf-8")) for char in own), initial=place[0])
        is_there = end == place[1] or FILLED in own
        known.append(ShellWord(place, own, starts if is_there else [], [""] * own.count(FILLED)))
    started = tuple(programs(known))
    found = [
        setting._replace(command=0, program=place)
        for place, program in enumerate(started)
        for setting, _ in settings(program, known)
    ]
    return Content(tuple(found), (Command(tuple(words), span, started),))


_LANGUAGE = Language(tree_sitter_bash.language())


def parsed(data: bytes, spans: Iterable[Span] = ()) -> Node:
    """The tree of some data, or of the parts of it that are shell."""
    parser = Parser(_LANGUAGE)
    ranges = [Range(Point(0, start), Point(0, end), start, end) for start, end in spans]
    if ranges:
        parser.included_ranges = ranges
    return parser.parse(data).root_node


# The nodes around a node, by its id: tree-sitter finds a parent by a walk from the root.
_Around = dict[int, Node]


def nodes_in(root: Node, around: _Around) -> Iterator[Node]:
    """All nodes in the order of the text, without recursion; none of a part that is no shell.

    ``around`` gets the parent of each that was given.
    """
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.type == "ERROR":
            continue
        yield node
        children = node.children
        around.update((child.id, node) for child in children)
        waiting += reversed(children)


class _Script:
    """A script while it is read.

    ``_texts`` are the texts that each variable is given, or compared with, ``_lists`` the options that it
    holds; ``_flows`` the options whose value is a variable. ``_reads`` are the places at which each is asked
    for, ``_shown`` those that only print, compare or export. ``_exported`` variables go to programs. What a
    function is given is a variable, too, called after it: ``run 1``, and ``run @`` for all. ``_functions``
    are those defined so far.
    """

    def __init__(self, data: bytes, depth: int, in_value: bool) -> None:
        self._data = data
        self._depth = depth - 1  # of the shells around what is read
        self._in_value = in_value
        self._settings: list[Setting] = []
        self._commands: list[Command] = []
        self._comments: list[Span] = []
        self._bodies: list[Span] = []
        self._texts: dict[str, list[tuple[str, Span | None]]] = {}
        self._lists: dict[str, list[Setting]] = {}
        self._flows: dict[str, list[tuple[Setting, Span]]] = {}
        self._handed: dict[str, tuple[int, int]] = {}
        self._reads: list[tuple[str, Span]] = []
        self._shown: list[Span] = []
        self._exported: set[str] = set()
        self._functions: set[str] = set()
        self._around: _Around = {}

    def take(self, spans: tuple[Span, ...]) -> None:
        """Read all of the data, or the parts of it that are shell."""
        outer = self._around
        self._around = {}
        self._depth += 1
        for node in nodes_in(parsed(self._data, spans), self._around):
            handler = getattr(self, f"on_{node.type}", None)
            if handler is not None:
                handler(node)
        self._around = outer
        self._depth -= 1

    def on_comment(self, node: Node) -> None:
        self._comments.append(span_of(node))
        directive = _DIRECTIVE.match(node.text or b"")
        start, end = node.start_byte + (directive.end() if directive else 0), node.end_byte
        if directive and node.start_point.column == 0 and start < end:
            words = self._words_at((start, end))
            submitter = Program(_SUBMITTERS[(directive.lastindex or 1) - 1], "command", -1, (0, len(words)))
            self._commands.append(Command(_known(words), span_of(node), (submitter,)))
            self._options(submitter, words, len(self._commands) - 1, 0)

    def on_variable_name(self, node: Node) -> None:
        parent = self._around.get(node.id)
        if parent is not None and parent.type in ("variable_assignment", "for_statement"):
            return
        outer = self._around.get(parent.id) if parent is not None and parent.type == "subscript" else None
        if outer is not None and outer.type == "variable_assignment":
            return
        name, span = self._scoped(text_of(node), node), span_of(node)
        if _is_export(parent):  # export NAME
            self._exported.add(name)
            self._shown.append(span)
        self._reads.append((name, span))
        self._settings.append(Setting("variable", name, span, reads=True))

    def _scoped(self, name: str, node: Node) -> str:
        """The name of a variable at a node, which may be what the function around it is given."""
        around = self._around.get(node.id) if name == "@" or name.isdecimal() else None
        while around is not None and around.type != "function_definition":
            around = self._around.get(around.id)
        return name if around is None else f"{_name_of(around)} {name}"

    def on_function_definition(self, node: Node) -> None:
        self._functions.add(_name_of(node))

    def on_unary_expression(self, node: Node) -> None:
        """``[ -n "$DEVICE" ]``: whether it has a value says nothing of the value."""
        self._shown.append(span_of(node))

    def content(self) -> Content:
        """All that was read, in the order of the text."""
        self._follow_variables()
        ordered = sorted(self._settings, key=lambda item: (item.name_span, item.value_span or (0, 0)))
        unique = tuple(dict.fromkeys(ordered))
        return Content(unique, tuple(self._commands), tuple(self._comments), bodies=tuple(self._bodies))

    def on_heredoc_body(self, node: Node) -> None:
        """A here-document: a script of what reads it, where that is a shell."""
        around = self._around.get(node.id)
        if around is not None and around.type == "heredoc_redirect":
            around = self._around.get(around.id)
        while around is not None and around.type in ("redirected_statement", "pipeline"):
            around = around.children[-1 if around.type == "pipeline" else 0]
        words = _words(around, self._data)
        started = list(programs(words)) if around is not None and around.type == "command" else []
        last = started[-1] if started else None
        reads = last is not None and last.name in _READ_SHELL and self._depth < _DEEPEST
        if last is not None and last.name in SHELLS and "-s" not in {word.text for word in words}:
            own = words[slice(*last.words)]
            reads = reads and all(word.text.startswith("-") for word in own)  # not bash script.sh <<EOF
        if reads and b"\\" not in (node.text or b"").replace(b"\\\n", b"").replace(b"\\$", b""):
            self.take((span_of(node),))
        else:
            self._bodies.append(span_of(node))

    def on_command(self, node: Node) -> None:
        words = _words(node, self._data)
        number = len(self._commands)
        started = tuple(programs(words))
        captured = _is_captured(node, self._around)
        in_script = captured and self._depth == 0 and not self._in_value
        pipeline = _pipeline_from(node, self._around) if in_script else None
        self._commands.append(Command(_known(words), span_of(node), started, captured, pipeline))
        if started and started[0].name in _PRINTING:
            self._shown.append(span_of(node))
            return
        if words and words[0].text == "shift":  # behind it the places mean others
            self._functions.discard(self._scoped("@", node).partition(" ")[0])
        if started and started[0].name in self._functions:
            self._call(started[0].name, words[1:])
            started = started if f"{started[0].name} @" not in self._handed else ()
        for place, program in enumerate(started):
            self._options(program, words, number, place, node)
        for word in words:
            if word.variable:
                name = self._scoped(word.variable, node)
                self._handed.setdefault(name, (number, max(0, len(started) - 1)))
        self._texts_in(words, started)

    def _call(self, function: str, words: list[ShellWord]) -> None:
        """What a function of the script is given, one by one, and all together for who hands on ``$@``."""
        for place, word in enumerate(words, 1):
            self._may_be(f"{function} {place}", word)
        if f"{function} @" in self._handed:
            self._hold(f"{function} @", words)

    def _options(
        self,
        program: Program,
        words: list[ShellWord],
        command: int | None,
        place: int | None,
        node: Node | None = None,
    ) -> list[Setting]:
        found = []
        for setting, flow in settings(program, words):
            found.append(setting._replace(command=command, program=place))
            if flow is not None:
                name = flow[0] if node is None else self._scoped(flow[0], node)
                self._flows.setdefault(name, []).append((found[-1], flow[1]))
        self._settings += found
        return found

    def _texts_in(self, words: list[ShellWord], started: tuple[Program, ...]) -> None:
        """Shell and Python that a command is given as a word: ``bash -c '…'``, ``ssh host "…"``, ``eval``."""
        last = started[-1] if started else None
        for program in started:
            own = words[slice(*program.words)]
            if program.name in SHELLS or is_python(program.name):
                code = next((b for a, b in zip(own, own[1:]) if a.text == "-c"), None)
                if code is not None and is_python(program.name):
                    self._bodies.append(code.span)
                elif code is not None:
                    self._inside(code)
        taking = next((program for program in started if program.name in _TAKE_SHELL), None)
        for word in words[taking.place + 1 :] if taking is not None else ():
            self._inside(word)
        for word in words if last is not None and last.name == "sbatch" else ():
            if word.text.startswith(_WRAP) and word.known and self._depth < _DEEPEST:
                text, places = word.text[len(_WRAP) :], word.places[len(_WRAP) :]
                if text.isascii():
                    self._read_places(text.encode("ascii"), [*places, word.span[1]])

    def _inside(self, word: ShellWord) -> None:
        """Read the shell in a quoted word."""
        start, end = word.span
        quote = self._data[start : start + 1]
        inner = self._data[start + 1 : end - 1]
        if self._depth >= _DEEPEST or quote not in (b"'", b'"') or not inner.strip() or end - start < 3:
            return
        if quote != self._data[end - 1 : end]:
            return
        if b"\\" not in inner.replace(b"\\\n", b""):
            self.take(((start + 1, end - 1),))
        elif quote == b'"':  # where ``\\$`` and ``\\"`` are for the shell inside
            places = [start + 1 + found.start(1) for found in _UNESCAPED.finditer(inner)]
            self._read_places(bytes(self._data[place] for place in places), [*places, end - 1])

    def _read_places(self, text: bytes, places: Sequence[int]) -> None:
        """Read the shell whose bytes, and its end, stand at some places."""
        from migrator.other_files.entries import read_at  # it reads by this module

        found = read_at(self._data, text, places, self._depth + 1)
        self._settings += found.behind(len(self._commands))
        self._commands += found.commands
        self._comments += found.comments

    def _words_at(self, span: Span) -> list[ShellWord]:
        """The words of a line that begins with an option, which alone is no command."""
        start = span[0] - len(_SOME_COMMAND)  # there is ``="`` or the directive's name before
        # A shell takes the ends of lines between quotes for blanks, once the variable is split.
        held = self._data[slice(*span)].replace(b"\\\n", b"  ").replace(b"\n", b" ").replace(b"\r", b" ")
        data = self._data[:start] + _SOME_COMMAND + held + self._data[span[1] :]
        nodes = nodes_in(parsed(data, [(start, span[1])]), {})
        command = next((node for node in nodes if node.type == "command"), None)
        return _words(command, data)[1:]

    def on_variable_assignment(self, node: Node) -> None:
        name = node.child_by_field_name("name") or node.children[0]
        value = node.child_by_field_name("value")
        # Those before a command come after it in the walk's order, so the command is the last one.
        parent = self._around.get(node.id)
        is_before = parent is not None and parent.type == "command"
        command = len(self._commands) - 1 if is_before else None
        exported = is_before or _is_export(parent)
        own = text_of(name)
        if exported:
            self._exported.add(own)
        found: str | None = ""
        span: Span | None = (node.end_byte, node.end_byte)
        if value is not None and value.type == "array":
            words = [shell_word(child, self._data) for child in value.children if child.type in WORDS]
            self._hold(own, words)
            found, span = None, None
        elif value is not None:
            word = shell_word(value, self._data)
            found, span = word.known, word.whole if word.text else None
            begins = word.text.partition(FILLED)[0] if found is None else ""
            self._holds_command(own, word, value)
            if begins:
                setting = Setting("variable", own, span_of(name), None, word.place(0, len(begins)))
                self._settings.append(setting._replace(command=command, begins=begins, exported=exported))
                return
            self._may_be(own, word)
            default = _default_of(value) if word.text == FILLED else None
            if default is not None:
                word = shell_word(default, self._data)
                self._holds_command(own, word, default)
                self._may_be(own, word)
        self._settings.append(
            Setting("variable", own, span_of(name), found, span, command=command, exported=exported)
        )

    def _hold(self, variable: str, words: list[ShellWord]) -> None:
        """``ARGS=(--device cuda)``: options of who is given the variable; ``CMD=(env A=1 python)``."""
        whole = starts_program(" ".join(word.text for word in words[:2]))
        own = programs(words) if whole else (Program("", "command", -1, (0, len(words))),)
        held = self._lists.setdefault(variable, [])
        for program in own:
            held.extend(self._options(program, words, None, None))

    def _holds_command(self, variable: str, word: ShellWord, node: Node) -> None:
        """``ARGS="$MORE --device cuda"``, ``CMD="python a.py --device cuda"``, ``PREFIX="NAME=value"``."""
        quotes = int(node.type in ("string", "raw_string"))
        if not quotes and (node.type != "word" or " " not in word.text):  # ${ARGS:---device cuda}
            return
        if _OPTIONS.match(word.text) and "\\" not in text_of(node).replace("\\\n", ""):
            self._hold(variable, self._words_at((node.start_byte + quotes, node.end_byte - quotes)))
        elif starts_program(word.text):
            self._inside(word)

    def on_for_statement(self, node: Node) -> None:
        """``for device in cuda cpu``"""
        variable = node.child_by_field_name("variable")
        for child in node.children_by_field_name("value"):
            if variable is not None and child.type in WORDS:
                self._may_be(text_of(variable), shell_word(child, self._data))

    def on_binary_expression(self, node: Node) -> None:
        """``[ "$DEVICE" = cuda ]``"""
        if len(node.children) == 3 and text_of(node.children[1]) in ("=", "==", "!="):
            first, _, last = node.children
            for asked, other in ((first, last), (last, first)):
                if other.type in WORDS:
                    self._compare(asked, [other])

    def on_case_statement(self, node: Node) -> None:
        """``case $DEVICE in cuda) … ;; *) … ;; esac``"""
        asked = node.child_by_field_name("value")
        items = [child for child in node.children if child.type == "case_item"]
        words = [word for item in items for word in item.children_by_field_name("value")]
        if asked is not None:
            self._compare(asked, [word for word in words if text_of(word) != "*"])

    def _compare(self, asked: Node, others: list[Node]) -> None:
        """A variable is compared with texts, which are what it may be; a pattern may be more than one."""
        variable = shell_word(asked, self._data).variable if asked.type in WORDS else ""
        words = [shell_word(other, self._data) for other in others]
        if variable and not any(word.known is None or set("*?[") & set(word.text) for word in words):
            self._shown.append(span_of(asked))
            for word in words:
                self._may_be(variable, word)

    def on_expansion(self, node: Node) -> None:
        """``${DEVICE:-cuda}``: what the variable is where nobody gives it."""
        default, variable = _default_of(node), variable_of(node)
        if default is not None and variable:
            word = shell_word(default, self._data)
            self._holds_command(variable, word, default)
            self._may_be(variable, word)

    def _may_be(self, variable: str, word: ShellWord) -> None:
        """A variable is given, or compared with, what a word says."""
        if word.known:
            self._texts.setdefault(variable, []).append((word.text, word.whole))

    def _follow_variables(self) -> None:
        """What is in a variable is where the variable goes: ``--device "$DEVICE"``."""
        owned: dict[Setting, Setting] = {}
        for variable, held in self._lists.items():
            command, program = self._handed.get(variable, (None, None))
            if command is not None:
                owned |= {setting: setting._replace(command=command, program=program) for setting in held}
        self._settings = [owned.get(setting, setting) for setting in self._settings]
        only_flows = self._only_flows()
        for variable, flows in self._flows.items():
            names = {setting.name.lstrip("-").replace("-", "_") for setting, _ in flows}
            plain = len(names) == 1 and only_flows[variable]
            texts = self._texts.get(variable, [])
            if not plain:  # the same text at another place tells nothing more
                texts = [*dict(texts).items()]
            pairs: Iterable[tuple[tuple[str, Span | None], tuple[Setting, Span]]] = product(texts, flows)
            if len(texts) * len(flows) > _MOST_PAIRS:  # each with one
                pairs = chain(((text, flows[0]) for text in texts), ((texts[0], flow) for flow in flows[1:]))
            for (text, span), (setting, _) in pairs:
                own = owned.get(setting, setting)
                self._settings.append(own._replace(value=text, value_span=span if plain else None))
        # What a variable is that programs get, and what the script compares it with, are the same.
        known: dict[str, set[Span | None]] = {name: set() for name in self._exported}
        for place, setting in enumerate(self._settings):
            if setting.kind == "variable" and setting.name in known and not setting.reads:
                known[setting.name].add(setting.value_span)
                where = setting.value_span if only_flows[setting.name] else None
                self._settings[place] = setting._replace(value_span=where, exported=True)
        for name, spans in known.items():
            for text, span in self._texts.get(name, ()):
                if span is not None and span not in spans:
                    where = span if only_flows[name] else None
                    self._settings.append(Setting("case", name, span, text, where, exported=True))

    def _only_flows(self) -> dict[str, bool]:
        """Which variables are used for options only, and to be printed."""
        shown = _Spans(self._shown)
        allowed: dict[str, list[Span]] = {}
        for setting in self._settings:
            if setting.kind == "variable" and not setting.reads:  # NAME=${NAME:-…}
                end = self._data.find(b"\n", setting.name_span[1])
                place = setting.name_span[0], end if end >= 0 else len(self._data)
                allowed.setdefault(setting.name, []).append(place)
        for name, flows in self._flows.items():
            allowed.setdefault(name, []).extend(span for _, span in flows)
        spans = {name: _Spans(places) for name, places in allowed.items()}
        found = dict.fromkeys((*self._flows, *self._exported), True)
        for name, span in self._reads:
            if name in found and not (shown.hold(span) or (name in spans and spans[name].hold(span))):
                found[name] = False
        return found


class _Spans:
    """Some places, which are asked whether one of them holds another."""

    def __init__(self, spans: Iterable[Span]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))  # the furthest so far

    def hold(self, span: Span) -> bool:
        place = bisect_right(self._starts, span[0])
        return place > 0 and self._ends[place - 1] >= span[1]


def _words(command: Node | None, data: bytes) -> list[ShellWord]:
    children = command.children if command is not None else []
    named = (c.children[0] if c.type == "command_name" and c.children else c for c in children)
    return [shell_word(child, data) for child in named if child.type in WORDS]


def _name_of(function: Node) -> str:
    name = function.child_by_field_name("name")
    return text_of(name) if name is not None else ""


def _known(words: Iterable[ShellWord]) -> tuple[Word, ...]:
    return tuple(Word(word.known, word.span) for word in words)


def _is_export(parent: Node | None) -> bool:
    """Whether what stands around an assignment is ``export`` or ``declare -x``."""
    return (
        parent is not None
        and re.match(rb"export\b|(?:declare|typeset) -\w*x", parent.text or b"") is not None
    )


def _is_captured(command: Node, around: _Around) -> bool:
    """Whether something reads what a command prints: another command, the script."""
    child, parent = command, around.get(command.id)
    while parent is not None and parent.type in ("pipeline", "redirected_statement", "negated_command"):
        if parent.type == "pipeline" and parent.children[-1] != child:
            return True
        child, parent = parent, around.get(parent.id)
    return parent is not None and parent.type in ("command_substitution", "process_substitution")


def _pipeline_from(command: Node, around: _Around) -> Span | None:
    """The place of the pipeline that a command begins."""
    child, parent = command, around.get(command.id)
    if parent is not None and parent.type == "redirected_statement":
        child, parent = parent, around.get(parent.id)
    begins = parent is not None and parent.type == "pipeline" and parent.children[0] == child
    return span_of(parent) if parent is not None and begins else None


def _default_of(node: Node) -> Node | None:
    """The word of ``${NAME:-word}``, with or without quotes around all."""
    node = without_quotes(node)
    if node.type != "expansion":
        return None
    for sign, word in zip(node.children, node.children[1:]):
        if sign.type in _DEFAULTS and word.type in WORDS:
            return word
    return None
