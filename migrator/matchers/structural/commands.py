"""Commands that a program runs.

Where it reads what ``nvidia-smi`` prints, the same lines are made from torch.npu's answers, and what the
program does with them stays as it is; where it only counts them, ``device_count()`` is enough. An option that
names CUDA, as in ``[sys.executable, "t.py", "--device=cuda"]``, changes where the program that is started is
one of the project, and its parser takes the value for a device: then it is changed there, too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from typing import NamedTuple, Optional

from migrator.findings.finding import Edit
from migrator.matchers.argument_edits import without_statement
from migrator.matchers.context import FileContext, Match, Said, found, instead_of
from migrator.matchers.device_listing import (
    Form,
    Listing,
    Printed,
    all_known,
    functions,
    knows_visible_devices,
    program,
    read,
    source,
)
from migrator.matchers.npu_import import npu_module
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule
from migrator.names.commands import Command, commands
from migrator.names.device_strings import is_docstring, written
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import argument_of, bare_name, called_name, last_name, only_target, string_value

_KEYWORDS = frozenset(
    "args shell stdout stderr stdin text universal_newlines encoding errors check capture_output timeout"
    " bufsize close_fds".split()
)
# What stands once in each line of a list of devices.
_ONCE_A_LINE = frozenset({"UUID", "UUID:", "GPU ", "\n"})
# What asks for no more than how many devices are visible, and of what kind.
_PLAIN = frozenset({"device_count", "get_device_name"})
_SHOWING = frozenset({"print", "info", "debug", "warning", "write", "log"})
_IN_TEXT = ("text", "universal_newlines", "encoding")


class OutputOptions(Options):
    """What the command ``prints``; ``shown`` is the one that shows a person the same.

    Where the answer chooses the visible devices, ``all_visible`` are the words that start Python in another
    process, which sees all of them, and ``chosen`` is said.
    """

    prints: Printed = field(default_factory=Printed)
    shown: str = ""
    all_visible: str = ""
    chosen: str = field(default="", metadata=SAID)


def find_runs(context: FileContext, rule: Rule[OutputOptions]) -> Iterator[Match]:
    """The calls that run the command, and the questions whether it is there."""
    index = context.index
    runs = [each for command in _runs(index, rule) for each in _judged(context, rule, command)]
    yield from runs
    there = rule.options.shown.partition(" ")[0] if all(each.edits for each in runs) else ""
    for node in index.strings if runs else ():
        if _asks_whether_there(index, node) and string_value(node) in rule.match:
            edits = replace_text(index, node, written(index, node), there) if there else []
            about: Said = {"api": written(index, node), "edits": edits}
            about["severity"] = "" if there else "warning"
            yield found(context, rule, node, needs_npu=False, **about)


def find_mentions(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Texts that are such a command and no call of it that the other rule sees."""
    index, runs = context.index, _runs(context.index, rule)
    seen = {node for command in runs for word in command.words for node in ast.walk(word.node)}
    # A command, or a line with one: the name with options, or alone behind a path.
    names = "|".join(map(re.escape, rule.match))
    wanted = re.compile(rf"(?:^|[|;&(/]\s*)(?:{names})(?:\s|$)|(?:{names})\s+-")
    for node in index.strings:
        if node in seen or is_docstring(index, node) or isinstance(index.parent(node), ast.JoinedStr):
            continue
        if wanted.search(written(index, node)) and not (runs and _asks_whether_there(index, node)):
            above = (index.parent(node), *index.above(node))
            # Some are only shown to a person.
            if not any(isinstance(each, ast.Raise) or called_name(each) in _SHOWING for each in above):
                yield found(context, rule, node, api=rule.match[0])


def _asks_whether_there(index: ModuleIndex, node: ast.AST) -> bool:
    return called_name(index.parent(node)) in ("which", "find_executable")


def _runs(index: ModuleIndex, rule: Rule) -> list[Command]:
    named = (command for command in commands(index) if command.texts)
    return [command for command in named if command.texts[0].rpartition("/")[2] in rule.match]


def _judged(context: FileContext, rule: Rule[OutputOptions], command: Command) -> Iterator[Match]:
    api, call = command.texts[0].rpartition("/")[2], command.call
    # A shell only says that it does not know the command, and what reads its output finds nothing.
    raises = not command.shell or command.runner in ("subprocess.check_output", "subprocess.check_call")
    is_shown = _is_shown(context.index, command)
    severity = "" if raises else "warning" if is_shown else "error"
    if len(command.words) == 1 and is_shown:  # the NPU's command is run instead
        first, shown, edits = command.words[0].node, rule.options.shown, list[Edit]()
        if shown and not command.through:
            words = ", ".join(f'"{word}"' for word in shown.split())
            words = f"[{words}]" if command.line else words
            text = f'"{shown}"' if command.line and command.shell else words
            edits = [instead_of(context.index, first, text)]
        yield found(context, rule, call, api=api, edits=edits, severity=severity, needs_npu=False)
        return
    listing = read(rule.options.prints, command.texts)
    known = listing is not None and all_known(context, functions(listing))
    asks = listing is not None and bool(functions(listing) - _PLAIN)
    chooses = known and asks and knows_visible_devices(context.index.text)
    advice, changes = "", []
    if listing and chooses:
        advice, changes = rule.options.chosen, _elsewhere(context.index, rule, command, listing)
    elif listing and known:
        changes = _changes(context.index, command, listing)
    says = partial(found, api=api, severity=severity, advice=advice, needs_npu=False if chooses else None)
    if not changes:
        yield says(context, rule, call)
    for node, edit in changes:
        yield says(context, rule, node, edits=[edit])


def _is_shown(index: ModuleIndex, command: Command) -> bool:
    """Whether nobody but a person reads what a command prints."""
    holder = index.parent(command.call)
    if isinstance(holder, ast.Expr):
        return not any(argument_of(command.call, name) for name in ("stdout", "capture_output"))
    while isinstance(holder, ast.Attribute) and (call := index.call_of(holder)) is not None:
        holder = index.parent(call)  # .decode(), .read()
    return isinstance(holder, ast.Call) and called_name(holder) in _SHOWING


def _changes(index: ModuleIndex, command: Command, listing: Listing) -> list[tuple[ast.AST, Edit]]:
    """What changes where the NPU's lines are put there; nothing where that is unknown."""
    if any(keyword.arg not in _KEYWORDS for keyword in command.call.keywords):
        return []
    npu = npu_module(index, command.call)
    reading = None
    if not listing.file:
        reading = _reading(index, command)
    elif command.runner == "os.system" and isinstance(index.parent(command.call), ast.Expr):
        # os.system("nvidia-smi … > file")
        reading = _Reading(command.call, Form("text"), f'open("{listing.file}", "w").write({{}})')
    if npu is None or reading is None:
        return []
    node, form = (reading.node, reading.form) if reading.around else _used(index, reading, listing)
    text = source(listing, form)
    if not text:
        return []
    text = reading.around.replace("{}", text) if reading.around else text
    unused = [(each, without_statement(index, each)) for each in _unused(index, command, reading.held)]
    return [(node, instead_of(index, node, text.replace("torch.npu.", f"{npu}."))), *unused]


class _Reading(NamedTuple):
    """Where a program takes the output, in which form; ``around`` is source that wraps it.

    ``held`` is the assignment of what runs the command, where that is read by its name.
    """

    node: ast.expr
    form: Form
    around: str = ""
    held: Optional[ast.stmt] = None


def _elsewhere(
    index: ModuleIndex, rule: Rule[OutputOptions], command: Command, listing: Listing
) -> list[tuple[ast.AST, Edit]]:
    """What changes where another process prints the lines: the program reads them as before."""
    given, errors = argument_of(command.call, "args", 0), argument_of(command.call, "stderr")
    start = rule.options.all_visible
    if not start or given is None or command.line != command.shell or last_name(errors) == "STDOUT":
        return []
    lines = program(listing)
    if command.line:
        file = f" > {listing.file}" if listing.file else ""
        # What reads the output by these two functions reads warnings, too.
        quiet = " 2>/dev/null" if command.runner.startswith("subprocess.get") else ""
        text = '"{}"'.format(f"{start} '{lines}'{file}{quiet}".replace("\\", "\\\\").replace('"', '\\"'))
    else:
        words = ", ".join(f'"{word}"' for word in start.split())
        text = f"[{words}, '{lines}']"
    unused = [(each, without_statement(index, each)) for each in _unused(index, command, None)]
    return [(given, instead_of(index, given, text)), *unused]


def _reading(index: ModuleIndex, command: Command) -> Optional[_Reading]:
    call, runner = command.call, command.runner.rpartition(".")[2]
    given = [argument_of(call, name) for name in _IN_TEXT]
    form = Form("text" if any(each and getattr(each, "value", True) for each in given) else "bytes")
    if runner == "check_output":
        return _Reading(call, form)
    if runner == "getoutput":
        return _Reading(call, Form("text", ends=False))
    if runner == "getstatusoutput":
        return _Reading(call, Form("text", ends=False), "(0, {})")
    if runner == "run" and (argument_of(call, "stdout") or argument_of(call, "capture_output")):
        holder = index.parent(call)
        if isinstance(holder, ast.Attribute) and holder.attr == "stdout":
            return _Reading(holder, form)
        module = index.segment(call.func).rpartition(".")[0]
        errors = _errors(call, form)
        rest = f", {errors}" if errors else ""
        return _Reading(call, form, f"{module}.CompletedProcess([], 0, {{}}{rest})") if module else None
    if runner in ("popen", "Popen"):
        return _from_pipe(index, command, form)
    return None


def _errors(call: ast.Call, form: Form) -> str:
    """What a program finds in the errors that it asks for, of which there are none."""
    asked = argument_of(call, "capture_output") or argument_of(call, "stderr")
    if asked is None or last_name(asked) in ("STDOUT", "DEVNULL"):
        return ""
    return '""' if form.kind == "text" else 'b""'


def _from_pipe(index: ModuleIndex, command: Command, form: Form) -> Optional[_Reading]:
    """What is read of ``os.popen(…)`` and ``Popen(…)``, also where that has a name and one use."""
    pipe: ast.expr = command.call
    held = index.parent(pipe)
    if isinstance(held, ast.Assign) and isinstance(only_target(held), ast.Name):
        uses = index.reads_of(pipe)
        read = _read_before_next(index, held, uses)
        if len(read) != 1 or (len(uses) > 1 and index.statement_of(read[0]) not in index.block(held)):
            return None
        pipe = read[0]
    else:
        held = None
    if command.runner == "os.popen":
        form = Form("text")
    else:
        holder = index.parent(pipe)
        if not isinstance(holder, ast.Attribute):
            return None
        if holder.attr == "communicate" and (call := index.call_of(holder)) is not None:
            item = index.parent(call)
            if isinstance(item, ast.Subscript) and getattr(item.slice, "value", None) == 0:
                return _Reading(item, form, held=held)
            return _Reading(call, form, f"({{}}, {_errors(command.call, form) or None})", held)
        if holder.attr != "stdout":
            return None
        pipe = holder
    around = index.parent(pipe)
    if isinstance(around, (ast.For, ast.comprehension)) and around.iter is pipe and form.kind == "text":
        return _Reading(pipe, Form("lines", breaks=True), held=held)
    call = index.call_of(around)
    if call is None or call.args or not isinstance(around, ast.Attribute):
        return None
    if around.attr == "readlines":
        return _Reading(call, Form("lines" if form.kind == "text" else "byte lines", breaks=True), held=held)
    return _Reading(call, form, held=held) if around.attr == "read" else None


def _read_before_next(index: ModuleIndex, held: ast.Assign, uses: Sequence[ast.expr]) -> list[ast.expr]:
    """The reads of a name that stand between an assignment and the next one."""
    target = held.targets[0]
    lines = [each.node.lineno for each in index.bindings(target)] if isinstance(target, ast.Name) else []
    # The next assignment may read the name before it binds it.
    end = min((line for line in lines if line > held.lineno), default=sys.maxsize)
    return [use for use in uses if held.lineno <= use.lineno <= end]


def _used(index: ModuleIndex, reading: _Reading, listing: Listing) -> tuple[ast.expr, Form]:
    """The widest expression around the output whose value is still known."""
    form = reading.form
    if form.kind.endswith("lines") and listing.header:
        form = replace(form, more=1)
    node, best = reading.node, (reading.node, form)
    while (step := _step(index, node, form, listing)) is not None:
        node, form = step
        if source(listing, form):
            best = step
    return best


def _step(
    index: ModuleIndex, node: ast.expr, form: Form, listing: Listing
) -> Optional[tuple[ast.expr, Form]]:
    """The expression right around the output that makes something known of it."""
    around = index.parent(node)
    if isinstance(around, ast.Attribute):
        call = index.call_of(around)
        after = _method(form, around.attr, call, listing) if call is not None else None
        return (call, after) if call is not None and after is not None else None
    if isinstance(around, ast.Call) and around.args == [node] and not around.keywords:
        name, after = bare_name(around.func), form if form.kind == "lines" else None
        if name == "str" and form.kind in ("bytes", "text"):
            after = replace(form, kind="repr" if form.kind == "bytes" else "text")
        elif name == "len" and form.kind in ("lines", "byte lines") and not listing.counted:
            after = Form("count", more=form.more)
        elif name == "int" and listing.counted and form.kind in ("text", "bytes"):
            after = Form("count")
        elif name != "list":
            after = None
        return (around, after) if after is not None else None
    if isinstance(around, ast.Subscript) and around.value is node and form.kind.endswith("lines"):
        gone = _left_out(around.slice, form.more)
        return (around, replace(form, more=form.more - gone)) if gone else None
    if isinstance(around, ast.BinOp) and around.left is node and form.kind == "count":
        less = around.right.value if isinstance(around.right, ast.Constant) else None
        if isinstance(around.op, ast.Sub) and isinstance(less, int) and less == form.more:
            return around, replace(form, more=0)
    return None


def _method(form: Form, name: str, call: ast.Call, listing: Listing) -> Optional[Form]:
    if form.kind == "bytes" and name == "decode":
        return replace(form, kind="text")
    if call.keywords or form.kind not in ("text", "bytes", "repr"):
        return None
    given = [getattr(argument, "value", None) for argument in call.args]
    text = given[0].decode() if given and isinstance(given[0], bytes) else given[0] if given else None
    if name in ("strip", "rstrip") and text in (None, "\n") and form.kind != "repr":
        return replace(form, ends=False)
    if listing.counted:
        return None
    by_lines = name == "split" and text == ("\\n" if form.kind == "repr" else "\n")
    if by_lines or (name == "splitlines" and form.kind != "repr"):
        more = (form.ends and by_lines) + bool(listing.header)
        return Form("lines" if form.kind == "text" else "byte lines", more=more)
    if name == "count" and text in _ONCE_A_LINE and "UUID" in listing.line:
        return None if text == "\n" and (form.kind == "repr" or not form.ends) else Form("count")
    return None


def _left_out(where: ast.expr, most: int) -> int:
    """How many of the lines that are no device's a slice leaves out: ``[1:]``, ``[:-1]``, ``[1:-1]``."""
    if not isinstance(where, ast.Slice) or where.step is not None:
        return 0
    upper = where.upper.operand if isinstance(where.upper, ast.UnaryOp) else where.upper
    ends = [0 if end is None else getattr(end, "value", None) for end in (where.lower, upper)]
    if (upper is not None and upper is where.upper) or any(end not in (0, 1) for end in ends):
        return 0
    gone = sum(end for end in ends if end)
    return gone if gone <= most else 0


def _unused(index: ModuleIndex, command: Command, held: Optional[ast.stmt]) -> Iterator[ast.stmt]:
    """The assignments that nobody reads any more: of the command, and of what runs it."""
    if held is not None:
        yield held
    for statement in dict.fromkeys(command.through):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            if len(_read_before_next(index, statement, index.uses_of(statement.targets[0]))) == 1:
                yield statement
