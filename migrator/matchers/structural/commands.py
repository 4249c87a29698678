"""Commands that a program runs.

Where it is known what ``nvidia-smi`` prints, Python prints the same lines in its place, from torch.npu's
answers, and what the program does with them stays as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from getopt import GetoptError, getopt

from migrator.api_support import npu_names
from migrator.findings.finding import Edit
from migrator.light import Frozen
from migrator.matchers.argument_edits import without_statement
from migrator.matchers.context import FileContext, Match, Said, found, instead_of
from migrator.matchers.packs import Options, Rule
from migrator.names.commands import Command, commands
from migrator.names.device_strings import is_docstring, written
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import argument_of, called_name, last_name, string_value

_SHOWING = frozenset({"print", "info", "debug", "warn", "warning", "error", "write", "log"})
_SHOWS = re.compile(rf"^(?:{'|'.join(_SHOWING)})$|(?:Error|Exception|Warning)$")
# What reads lines, and asks nothing of them that those of an NPU answer otherwise.
_READS_LINES = re.compile(r"wc -l|grep (?:-c )?(?:GPU|UUID|\.|\^)|head -(?:n ?)?\d+|tail -n \+\d+|cat")
_CALL = re.compile(r"\btorch\.npu\.(\w+)")


class Printed(Frozen):
    """What a command prints, a line for each device.

    ``lists`` gives the line by what stands behind the command, ``fields`` the value of what ``--query-gpu``
    asks for, ``units`` its unit; ``{i}`` in a line, and ``i`` in a value, is the device.
    """

    lists: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)


class OutputOptions(Options):
    """What the command ``prints``; ``shown`` is the one that shows a person the same.

    ``runs`` are the words that start Python in another process: it sees all devices, as the command does,
    where the program has chosen some.
    """

    prints: Printed = field(default_factory=Printed)
    shown: str = ""
    runs: str = ""


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
    wanted = re.compile(rf"(?:^|[|;&(/]\s*)(?:{names})(?:\s+[a-z]+)?\s*(?:$|[-|<>;&)])|(?:{names})\s+-")
    for node in index.strings:
        if node in seen or is_docstring(index, node) or isinstance(index.parent(node), ast.JoinedStr):
            continue
        if wanted.search(written(index, node)) and not (runs and _asks_whether_there(index, node)):
            above = [*index.above(node)]
            shown = any(map(_SHOWS.search, map(called_name, above)))  # only to a person
            if not shown and not any(isinstance(each, ast.Raise) for each in above):
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
    changes = _printed_by_python(context, rule, command)
    if not changes:
        yield found(context, rule, call, api=api, severity=severity)
    for node, edit in changes:
        yield found(context, rule, node, api=api, edits=[edit], severity=severity, needs_npu=False)


def _is_shown(index: ModuleIndex, command: Command) -> bool:
    """Whether nobody but a person reads what a command prints."""
    holder = index.parent(command.call)
    if isinstance(holder, ast.Expr):
        return not any(argument_of(command.call, name) for name in ("stdout", "capture_output"))
    while isinstance(holder, ast.Attribute) and (call := index.call_of(holder)) is not None:
        holder = index.parent(call)  # .decode(), .read()
    return isinstance(holder, ast.Call) and called_name(holder) in _SHOWING


def _printed_by_python(
    context: FileContext, rule: Rule[OutputOptions], command: Command
) -> list[tuple[ast.AST, Edit]]:
    """What changes where Python prints the lines in another process; nothing where they are not known."""
    index, errors = context.index, argument_of(command.call, "stderr")
    given, start = argument_of(command.call, "args", 0), rule.options.runs
    program, behind = _program(rule.options.prints, command.texts)
    known = (npu_names.look_up(f"torch.cuda.{name}", context.version) for name in _CALL.findall(program))
    is_there = program and all(each is not None and each.npu for each in known)
    # Warnings would be among the lines.
    if not is_there or given is None or command.line != command.shell or last_name(errors) == "STDOUT":
        return []
    if command.line:
        quiet = " 2>/dev/null" if command.runner.startswith("subprocess.get") else ""
        text = f"{start} '{program}'{quiet}{behind}".replace("\\", "\\\\").replace('"', '\\"')
        text = f'"{text}"'
    else:
        words = ", ".join(f'"{word}"' for word in start.split())
        text = f"[{words}, '{program}']"
    changes: list[tuple[ast.AST, Edit]] = [(given, instead_of(index, given, text))]
    for each in dict.fromkeys(command.through):  # what nobody reads any more is taken out
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            if len(index.reads_of(each.value)) <= 1:
                changes.append((each, without_statement(index, each)))
    return changes


def _program(printed: Printed, texts: Sequence[str]) -> tuple[str, str]:
    """A Python program, without single quotes, that prints a command's lines, and what reads them behind it.

    Empty where the lines are not known.
    """
    last = len(texts) - 2 if texts[-2:-1] == [">"] else len(texts)
    stages = [stage.strip() for stage in " ".join(texts[1:last]).split("|")]
    beginnings = {" | ".join(stages[:count]): count for count in range(1, len(stages) + 1)}
    listed = next((each for each in beginnings if each in printed.lists), "")
    lines = _lines(printed.lists[listed]) if listed else _query(printed, stages[0].split())
    behind = stages[beginnings.get(listed, 1) :]
    if not all(texts) or not lines or not all(map(_READS_LINES.fullmatch, behind)):
        return "", ""
    file = "".join(f" {text}" for text in texts[last:])
    return f"import torch, torch_npu; {lines}", "".join(f" | {stage}" for stage in behind) + file


def _lines(line: str, devices: str = "range(torch.npu.device_count())") -> str:
    return f'[print(f"{line}") for i in {devices}]'


def _query(printed: Printed, words: Sequence[str]) -> str:
    """Python source that prints what ``--query-gpu=… --format=csv`` asks for; empty for others."""
    try:
        options, others = getopt(list(words), "i:", ["query-gpu=", "format=", "id="])
    except GetoptError:
        return ""
    given = dict(options)
    asked = [each.strip() for each in given.get("--query-gpu", "").split(",")]
    how, device = (
        given.get("--format", "").replace(" ", "").split(","),
        given.get("--id", given.get("-i", "")),
    )
    if others or "csv" not in how or not set(asked) <= printed.fields.keys():
        return ""
    if device and not device.isdecimal():
        return ""
    units = [printed.units.get(each, "") for each in asked]
    heads = ", ".join(f"{each} [{unit}]" if unit else each for each, unit in zip(asked, units))
    behind = ["" if "nounits" in how or not unit else f" {unit}" for unit in units]
    line = ", ".join(f"{{{printed.fields[each]}}}{unit}" for each, unit in zip(asked, behind))
    header = "" if "noheader" in how else f'print("{heads}"); '
    return header + (_lines(line, f"[{device}]") if device else _lines(line))
