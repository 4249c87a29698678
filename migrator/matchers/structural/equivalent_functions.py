"""APIs without an NPU kernel, or absent in the project's torch, for which functions of ours stand.

They lie in ``reports/ascend_function``, one file each, and take what torch's take. In a migration that adds
their package ``Project.import_of`` says how each file imports it; elsewhere the uses are only reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field
from functools import cache

from migrator.api_support.verdicts import judge
from migrator.data_folders import data_folder
from migrator.files.naming import EQUIVALENTS
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import FileContext, Match, found, insertion, instead_of
from migrator.matchers.npu_import import import_at_top
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule
from migrator.matchers.structural.api_verdicts import asks_for_type, uses_of
from migrator.names.conditions import is_guarded
from migrator.names.index import ModuleIndex
from migrator.names.tree import hands_on


class FunctionOptions(Options):
    """``functions``: what stands for an API where that is not called as the API's last part.

    ``differs``: what a function does not do as torch does, by its name. In the message ``{function}`` is that
    name, ``{why}`` why torch's is not used.
    """

    functions: dict[str, str] = field(default_factory=dict)
    differs: dict[str, str] = field(default_factory=dict, metadata=SAID)


FunctionRule = Rule[FunctionOptions]


def find(context: FileContext, rule: FunctionRule) -> Iterator[Match]:
    """The uses of the APIs that the NPU, or this torch, lacks; with the import that their fixes need."""
    index = context.index
    statement = context.project.import_of(EQUIVALENTS, context.name)
    module = statement.rpartition(" ")[2]
    # Its name has to be bound by nothing in the file, or by the import that is wanted.
    bindings = (each for scope in index.scopes for each in scope.bindings.get(module, ()))
    if any(each.kind != "import" or index.segment(each.node) != statement for each in bindings):
        module = ""
    needing: list[ast.AST] = []
    absent = dict(_absent(context, rule))
    for node, api in {**dict(_lacking(context, rule)), **absent}.items():
        function = function_of(rule, api)
        why = _("has no NPU kernel")
        if node in absent:
            why = _("is absent in torch {version}", version=context.version.text)
        message = rule.message.replace("{function}", function).replace("{why}", why)
        edits = _edits(index, node, f"{module}.{function}", function) if module else []
        needing += [node] if edits else []
        differs = rule.options.differs.get(function, "")
        message = message + _("; ") + differs if differs else message
        advice = "" if edits else rule.advice
        yield found(context, rule, node, api=api, edits=edits, message=message, advice=advice)
    place = import_at_top(index, statement) if needing else None
    if place is not None:
        yield insertion(context, rule, *place, EQUIVALENTS, _("the functions that are called below"))


def function_of(rule: FunctionRule, api: str) -> str:
    """The name of the function that stands for an API, which is that of its file."""
    return rule.options.functions.get(api) or api.rpartition(".")[2]


def _lacking(context: FileContext, rule: FunctionRule) -> Iterator[tuple[ast.expr, str]]:
    """The uses for which the NPU has no kernel, of names and of tensors' methods."""
    for use in uses_of(context):
        verdict = use.verdict
        if verdict.api in rule.match and use.certainty == "certain" and isinstance(use.node, ast.expr):
            if use.status == "fallback" or (use.status == "unsupported" and not verdict.runs):
                yield use.node, verdict.api


def _absent(context: FileContext, rule: FunctionRule) -> Iterator[tuple[ast.expr, str]]:
    """The uses of names that this torch does not have, where the program does not ask first."""
    index = context.index
    for node, api in context.uses_of(rule):
        if isinstance(node, ast.Attribute) and not asks_for_type(index, node):
            if judge(api, context.version).status == "absent" and not is_guarded(index, node, [node.attr]):
                yield node, api


def _edits(index: ModuleIndex, node: ast.expr, written: str, function: str) -> list[Edit]:
    """The edits that call the function; none where it does not take what is given."""
    call = index.call_of(node)
    names, positions = parameters_of(function)
    if call is not None:
        given = len(call.args) + (0 if index.qualified_name(node) else 1)
        if hands_on(call) or given > positions or any(each.arg not in names for each in call.keywords):
            return []
    if index.qualified_name(node):
        return [instead_of(index, node, written)]
    if call is None or not isinstance(node, ast.Attribute) or call.func is not node:
        return []  # a bound method
    # What stands between the tensor and its arguments: a parenthesis, the point, the name, a parenthesis.
    start, end = index.start(call), index.end(node)
    name = end - len(node.attr.encode())
    point = index.data.rfind(b".", 0, name)
    opening = index.data.find(b"(", end)
    if index.data[point + 1 : name].strip() or index.data[end:opening].strip():
        return []  # a comment
    rest = ", " if call.args or call.keywords else ""
    return [Edit(start, start, f"{written}("), Edit(point, opening + 1, rest)]


@cache
def parameters_of(function: str) -> tuple[frozenset[str], int]:
    """The names of a function's parameters, and how many of them may be given by position."""
    tree = ast.parse((data_folder("reports") / EQUIVALENTS / f"{function}.py").read_bytes())
    own = next(each for each in tree.body if getattr(each, "name", "") == function)
    first = 0
    if isinstance(own, ast.ClassDef):
        inits = (each for each in own.body if getattr(each, "name", "") == "__init__")
        own, first = next(inits, own), 1
    if not isinstance(own, ast.FunctionDef):
        return frozenset(), 0
    positional = own.args.args[first:]
    return frozenset(each.arg for each in (*positional, *own.args.kwonlyargs)), len(positional)
