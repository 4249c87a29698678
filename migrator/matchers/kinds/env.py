"""Kinds ``env`` and ``variable``: environment variables of CUDA and NCCL, in Python and in other files."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, Optional

from migrator.api_support import env_vars
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, Said, TextContext, found, found_in_text
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import String, bare_name, called_name, string_value

if TYPE_CHECKING:  # a hook does without
    from migrator.other_files.index import Content, Setting

_ENV_NAME = r"(?i)(?:^|_)env(?:iron|ironment|s|_vars?|_dict|_variables)?$|^environ$"
_CALLS = frozenset({"getenv", "putenv", "unsetenv", "setenv", "delenv", "get_env", "env"})
_MESSAGE = re.compile(
    r"(?:Error|Warning|Exception|^(?:print|info|debug|warning|warn|error|critical|exception|log|write|skip|fail))$"
)
_MESSAGE_KEYWORDS = frozenset("help description epilog usage reason msg message".split())
# A setting in a text; behind an option it is handed to a program: ``mpirun -x NAME=value``.
_SETTING = re.compile(r"((?:^|\s)--?[\w{}-]+[ =])?\b([A-Z][A-Z0-9_]+)=([\w.:,-]*)")


class EnvOptions(Options):
    """Where the variables are: ``certain`` in the environment itself, ``likely`` in other exact texts.

    The rule with ``report`` speaks of those that have no NPU variable.
    """

    verdict: Literal["certain", "likely", "report"] = "certain"


def find(context: FileContext, rules: list[Rule[EnvOptions]]) -> Iterator[Match]:
    """Names of the variables where an environment is read or written, and in other texts."""
    by_verdict: dict[str, Rule] = {rule.options.verdict: rule for rule in reversed(rules)}
    for call in context.index.calls:
        yield from _keywords(context, by_verdict, call)
    for node in context.index.strings:
        if isinstance(node, ast.JoinedStr):
            texts = (part.raw for part in context.index.parts(node) if part.expression is None)
            yield from _inside(context, by_verdict, node, "".join(texts))
            continue
        text = str(node.value)
        variable = env_vars.look_up(text)
        if variable is None:
            yield from _inside(context, by_verdict, node, text)
        elif variable.npu != text:
            yield from _named(context, by_verdict, node, variable)


def _named(
    context: FileContext, by_verdict: dict[str, Rule], node: ast.Constant, variable: env_vars.EnvVar
) -> Iterator[Match]:
    """A text that is the name of a variable."""
    name, index = variable.name, context.index
    place = _place(context, node)
    is_set, value = _given(index, node)
    beside = is_set and _is_set_beside(index, node, variable.npu)
    rename = bool(variable.npu) and variable.keeps_values and place != "report" and not beside
    rule = by_verdict.get(place if rename else "report") if place else None
    if rule is None:
        return
    bad = _foreign_value(context, variable, value) if rename else ""
    edits: list[Edit] = []
    advice, safety = variable.advice, ""
    if bad:
        rule = by_verdict.get("report", rule)
        message = variable.refuses(bad)
        advice = advice or _("Set {npu} with options that torch_npu accepts.", npu=variable.npu)
    elif rename:
        edits = replace_text(index, node, name, variable.npu)
        message = variable.on_npus("" if variable.same_values else _("; the values differ"))
        advice = advice if variable.values or not variable.same_values else ""
        safety = _safety(variable, value) if is_set else ""
    elif place == "report":
        message = _("{name} appears outside an environment", name=name)
    elif beside:
        message = variable.on_npus(_(", which is also set here"))
    elif variable.npu:
        message = _("on NPUs {name} is {npu}, with other values", name=name, npu=variable.npu)
    else:
        message = variable.on_npus()
    yield found(context, rule, node, api=name, edits=edits, message=message, advice=advice, safety=safety)


def _keywords(context: FileContext, by_verdict: dict[str, Rule], call: ast.Call) -> Iterator[Match]:
    """``os.environ.update(CUDA_VISIBLE_DEVICES="0")``, ``dict(os.environ, CUDA_VISIBLE_DEVICES="0")``."""
    holders = [getattr(call.func, "value", None), *call.args]
    is_patch = any(isinstance(each, ast.Constant) and each.value == "os.environ" for each in call.args)
    certain = is_patch or any(_is_environment(context, each) for each in holders)
    # A function of the program's own reads its arguments by the names that it knows.
    given = certain or called_name(call) in ("dict", "update")
    for keyword in call.keywords:
        variable = env_vars.look_up(keyword.arg) if keyword.arg else None
        if variable is None or variable.npu == variable.name:
            continue
        bad = _foreign_value(context, variable, keyword.value)
        twice = any(each.arg == variable.npu for each in call.keywords)
        rename = bool(variable.npu) and variable.keeps_values and not bad and given and not twice
        rule = by_verdict.get(("certain" if certain else "likely") if rename else "report")
        if rule is None:
            continue
        start, name = context.index.start(keyword), variable.name
        edits = [Edit(start, start + len(name), variable.npu)] if rename else []
        where = "" if given else _(", where it enters the environment")
        where = _(", which is also set here") if twice else where
        message = variable.refuses(bad) if bad else variable.on_npus(where)
        about: Said = {"api": name, "edits": edits, "advice": variable.advice, "message": message}
        about["safety"] = _safety(variable, keyword.value) if rename else ""
        yield found(context, rule, keyword, **about)


def _place(context: FileContext, node: ast.Constant) -> str | None:
    """``certain`` for an environment's key, ``likely`` for another exact text, None for prose."""
    parent, others = context.index.parent(node), list[Optional[ast.expr]]()
    if isinstance(parent, ast.Expr):
        return None
    if isinstance(parent, ast.Subscript):
        return "certain" if _is_environment(context, parent.value) else "report"
    if isinstance(parent, ast.Call) and node in parent.args:
        called, is_first = called_name(parent), parent.args[0] is node
        if called in ("get", "pop", "setdefault") and is_first:
            return "certain" if _is_environment(context, getattr(parent.func, "value", None)) else "report"
        if called in _CALLS and is_first:
            return "certain"
        if called in ("print", "info", "warning", "error", "debug", "add_argument", "compile", "Exception"):
            return None
    elif isinstance(parent, ast.Compare):
        others = [parent.left, *parent.comparators]
    elif isinstance(parent, ast.Dict) and node in parent.keys:
        holder = context.index.parent(parent)
        if isinstance(holder, ast.Assign):
            others = [holder.targets[0]]
        if None in parent.keys or (isinstance(holder, ast.keyword) and holder.arg == "env"):
            return "certain"
        if not any(_is_environment(context, other) for other in others):
            return None if _is_own_name(context, parent, node) else "likely"
    return "certain" if any(_is_environment(context, other) for other in others) else "likely"


def _is_own_name(context: FileContext, table: ast.Dict, key: ast.expr) -> bool:
    """Whether a key is the program's own name for what it reads: ``{name: lambda: os.environ.get(name)}``."""
    value = table.values[table.keys.index(key)]
    if isinstance(value, ast.Call) and context.index.qualified_name(value.func).startswith("os."):
        return False
    name = string_value(key) or ""
    variable = env_vars.look_up(name)
    names = {name, variable.npu if variable is not None else ""}
    reads = isinstance(value, (ast.Lambda, ast.Call))
    return reads and any(string_value(part) in names for part in ast.walk(value))


def _is_environment(context: FileContext, node: ast.expr | None) -> bool:
    if re.search(_ENV_NAME, bare_name(node)):
        return True
    if node is None or context.index.parent(node) is None:
        return False
    return context.index.qualified_name(node) in ("os.environ", "os.environb")


def _foreign_value(context: FileContext, variable: env_vars.EnvVar, value: ast.expr | None) -> str:
    """What is set beside a variable and refused on NPUs: a number, or an option of the allocator."""
    text = string_value(value)
    return "" if text is None else env_vars.refused(variable, text, context.version.tuple)


def _safety(variable: env_vars.EnvVar, value: ast.expr | None) -> str:
    """How safe a renaming is: what is not written there may be a value that the NPU's one does not take."""
    checked = variable.values or variable.name in env_vars.ALLOCATOR_VARIABLES
    return "unsafe" if checked and string_value(value) is None else ""


def _given(index: ModuleIndex, node: ast.AST) -> tuple[bool, ast.expr | None]:
    """Whether the place gives the variable a value, and does not only ask for it; and that value."""
    parent = index.parent(node)
    if isinstance(parent, ast.Dict):
        return True, parent.values[parent.keys.index(node)] if node in parent.keys else None
    if isinstance(parent, ast.Call) and called_name(parent) in ("setdefault", "putenv", "setenv"):
        return True, parent.args[1] if node in parent.args and len(parent.args) > 1 else None
    if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store):
        around = index.parent(parent)
        return True, around.value if isinstance(around, ast.Assign) else None
    return False, None


def _is_set_beside(index: ModuleIndex, node: ast.Constant, name: str) -> bool:
    """Whether the dictionary or the block of statements that sets a variable sets another one, too."""
    block = index.block(index.statement_of(node))
    same = (each for each in index.named(name) if isinstance(each, ast.Constant) and each.value == name)
    return any(index.block(index.statement_of(each)) is block and _given(index, each)[0] for each in same)


def _inside(context: FileContext, by_verdict: dict[str, Rule], node: String, text: str) -> Iterator[Match]:
    """A shell line such as ``CUDA_VISIBLE_DEVICES=0 python train.py`` in a text, or an option with one."""
    rule, holder = by_verdict.get("report"), context.index.parent(node)
    if rule is None or "=" not in text or len(text) > 2000:
        return
    if isinstance(holder, (ast.Expr, ast.JoinedStr, ast.Raise, ast.Assert)):
        return  # it is only shown, or stands in a longer text
    if getattr(holder, "arg", "") in _MESSAGE_KEYWORDS or _MESSAGE.search(called_name(holder)):
        return
    for option, name, value in _SETTING.findall(text):
        variable = env_vars.look_up(name)
        if variable is not None and variable.npu != name and f"`{name}=" not in text:
            likely = by_verdict.get("likely") if option and variable.npu else None
            if likely and env_vars.carries_over(variable, value, context.version.tuple):
                edits = replace_text(context.index, node, f"{name}=", f"{variable.npu}=")
                yield found(context, likely, node, api=name, edits=edits, message=variable.on_npus())
                return
            other = _("write {npu}.", npu=variable.npu) if variable.npu else variable.advice
            message = _("{name} is set inside a string, which is left unchanged", name=name)
            advice = _("If this command runs: {other}", other=other)
            yield found(context, rule, node, api=name, message=message, advice=advice)
            return


class VariableOptions(Options):
    """``rename`` for variables that an NPU has with the value that is set; ``report`` for the others."""

    verdict: Literal["rename", "report"] = "rename"


def find_variables(context: TextContext, rules: list[Rule[VariableOptions]]) -> Iterator[Match]:
    """The variables of CUDA and NCCL that are set or asked for."""
    by_verdict: dict[str, Rule] = {rule.options.verdict: rule for rule in reversed(rules)}
    settings = [each for each in context.index.content.settings if each.kind == "variable"]
    variables = [(each, known) for each in settings if (known := env_vars.look_up(each.name)) is not None]
    version = context.version.tuple
    beside: dict[object, dict[str, str]] = {}  # what is set at one place, and what that is on NPUs
    for each in settings if variables else ():
        if not each.reads:
            of_place = beside.setdefault(each.block or (each.command, each.exported), {})
            of_place[each.name] = getattr(env_vars.look_up(each.name), "npu", "")
    # What keeps its old name where it is set, is asked for by it.
    kept = {each.name for each, known in variables if not each.reads and not _renames(known, each, version)}
    # One name comes once there. torch_npu does not start with PYTORCH_ALLOC_CONF beside its own variable.
    others: set[Setting] = set()
    for each, known in variables:
        for name, npu in beside.get(each.block or (each.command, each.exported), {}).items():
            if known.npu == name or ("CUDA" in each.name and "CUDA" not in name and known.npu == npu):
                others.add(each)
    names_beside = {each.name for each in others} - kept
    is_of_binary = bool(variables) and _starts_binary(context.index.content)
    for setting, known in variables:
        # What a makefile does not export is its own: USE_CUDNN of one that compiles CUDA sources.
        is_own = context.index.type == "makefile" and not setting.exported
        if (is_own or is_of_binary) and not known.npu:
            continue
        is_beside = setting.name in names_beside and (setting.reads or setting in others)
        asks = setting.reads and setting.name in kept
        rename = _renames(known, setting, version) and not is_beside and not asks
        rule = by_verdict.get("rename" if rename else "report")
        if rule is None or known.npu == known.name:
            continue
        if rename or not known.npu:
            message = known.on_npus()
        elif is_beside:
            message = known.on_npus(_(", which is also set here"))
        elif bad := env_vars.refused(known, setting.value or setting.begins, version):
            message = known.refuses(bad)
        else:
            message = _("on NPUs {name} is {npu}, with other values", name=known.name, npu=known.npu)
        severity = "" if known.npu and not is_beside else "info"
        about: Said = {"api": known.name, "message": message, "severity": severity}
        about["edits"] = [Edit(*setting.name_span, known.npu)] if rename else []
        about["advice"] = "" if rename else known.advice
        yield found_in_text(context, rule, setting.name_span, **about)


def _starts_binary(content: Content) -> bool:
    """Whether a script starts a program that was compiled, and none that may be one of Python."""
    from migrator.other_files.index import FILLED

    started = [(each, command) for command in content.commands for each in command.programs]
    paths = [command.words[each.place].text or "" for each, command in started if each.place >= 0]
    compiled = [path for path in paths if "/" in path and not path.startswith("/") and "." not in path[1:]]
    names = [each.name for each, _command in started if each.kind == "command"]
    may_be = any(not name or FILLED in name or "python" in name or name.endswith("sh") for name in names)
    return bool(compiled) and not may_be and len(names) == len(started)


def _renames(known: env_vars.EnvVar, setting: Setting, version: tuple[int, ...]) -> bool:
    """Whether the NPU's variable takes what stands there; what only a shell knows is taken to be right."""
    if not known.npu:
        return False
    value = setting.begins or ("" if setting.reads else setting.value)
    return env_vars.carries_over(known, value, version) if value else known.keeps_values
