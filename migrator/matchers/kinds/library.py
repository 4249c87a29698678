"""Kind ``import``: a library that is made for CUDA. Each import of it is reported, or the first of a file.

One that is tried, and may fail, is less grave: the program goes on without the library.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field
from typing import Literal

from migrator.api_support.libraries import equivalents_of, operators_of_libraries
from migrator.findings.finding import Severity
from migrator.language import N_, _
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.options import SAID
from migrator.matchers.packs import Options, Rule, fitting, rule_of
from migrator.names.conditions import (
    IMPORT_ERRORS,
    catching,
    is_asked_first,
    is_caught,
    is_conditional,
    is_for_types,
    surely_runs,
)
from migrator.names.index import ModuleIndex
from migrator.names.tree import called_name, imported, string_value
from migrator.project.frameworks import imports_torch

_SHARE = 10  # where less than one in so many files is of another framework, the project is not
_LESS: dict[str, Severity] = {"blocker": "warning", "error": "warning", "warning": "info", "info": "info"}


class ImportOptions(Options):
    """``once`` is for the first import of each library in a file only; ``advice`` is that for some names.

    ``alone``: silent for a file of PyTorch, and an info where few files of a project are not.
    ``served``: silent for a module that the result replaces with its own.
    """

    once: Literal["", "file"] = ""
    alone: bool = False
    served: dict[str, str] = field(default_factory=dict)
    advice: dict[str, str] = field(default_factory=dict, metadata=SAID)


def find(context: FileContext, rules: list[Rule[ImportOptions]]) -> Iterator[Match]:
    """Imports of the rules' modules, as statements and as texts given to importers.

    The project's own packages are no libraries.
    """
    if imports_torch(context.index.text):
        rules = [rule for rule in rules if not rule.options.alone]
    by_code = {rule.code: rule.options for rule in rules}
    said: set[tuple[str, str]] = set()
    project = context.project
    # A project with few such files is not of another framework, but has adapters for one.
    are_few = sum(project.frameworks.values()) * _SHARE < project.files
    for item in every_import(context, rules, members=True):
        finding, options = item.finding, by_code[item.finding.code]
        name = finding.api.partition(",")[0]
        said_of = finding.code, name.partition(".")[0]
        own = (new for old, new in options.served.items() if f"{name}.".startswith(f"{old}."))
        if (options.once and said_of in said) or any(project.import_of(new, context.name) for new in own):
            continue
        said.add(said_of)
        advice = options.advice.get(fitting(tuple(options.advice), (), name), finding.advice)
        known = operators_of_libraries()
        fit = (fitting(tuple(known), (), each) for each in finding.api.split(", "))
        about = dict.fromkeys(equivalents_of(known[each]) for each in fit if each)
        advice = " ".join(filter(None, [advice, *about]))
        severity = _LESS[finding.severity] if options.alone and are_few else finding.severity
        if any(f"{folder}/setup" in project.packages for folder in project.folders_with(name)):
            severity = "info"
            advice = _("Install it from the migrated project, whose CUDA operators are listed.")
        yield item._replace(finding=finding._replace(advice=advice, severity=severity))


def every_import(context: FileContext, rules: list[Rule], members: bool = False) -> Iterator[Match]:
    """Every import of the rules' modules, see find; with ``members`` also of what holds these."""
    project = context.project
    about = {pattern.partition(".")[0] for rule in rules for pattern in rule.match}
    is_open = any("*" in package for package in about)
    adds_folders = "sys.path." in context.index.text
    for node in context.index.imports:
        names = (name for name in imported(node) if is_open or name.partition(".")[0] in about)
        others = [name for name in names if not project.owns(name, context.name)]
        others = [name for name in others if not (adds_folders and project.folders_with(name))]
        whole = others if members and isinstance(node, ast.Import) else ()
        if not all(rule_of(rules, name) for name in whole):
            others += dict.fromkeys(_members(context.index, node))
        owners = [(rule_of(rules, name), name) for name in others]
        for rule in rules if owners else ():
            belonging = [name for owner, name in owners if owner is rule]
            if belonging:
                yield _found(context, rule, node, belonging)
    for call in context.index.calls:
        library, name = string_value(call.args[0]) if call.args else None, called_name(call)
        if library is not None and name in ("import_module", "__import__", "find_spec", "importorskip"):
            # Who asks first whether it is there, has an answer for the case that it is not.
            severity = "info" if name in ("find_spec", "importorskip") else ""
            owner = rule_of(rules, library)
            if owner is not None and not project.owns(library, context.name):
                yield _found(context, owner, call, [library], severity)


def _members(index: ModuleIndex, node: ast.AST) -> Iterator[str]:
    """What is used of modules that are imported whole: ultralytics.YOLO."""
    for alias in getattr(node, "names", ()):
        for use in index.uses(alias.asname or alias.name.partition(".")[0], index.scope_of(node)):
            member = index.parent(use)
            name = index.qualified_name(member) if isinstance(member, ast.Attribute) else ""
            if name.startswith(f"{alias.name}."):
                yield name


def _found(context: FileContext, rule: Rule, node: ast.AST, names: list[str], severity: str = "") -> Match:
    library = names[0].partition(".")[0]
    message = (rule.message or rule.summary).replace("{library}", library)
    index, less, sure = context.index, _LESS[rule.severity], node  # what surely needs it
    guard = catching(index, node, IMPORT_ERRORS)
    if severity:
        pass
    elif is_for_types(index, node):
        severity = "info"
        message += _("; only type checkers evaluate this import")
    elif guard is not None and (needing := list(_unguarded(index, node, guard))):
        lines = ", ".join(map(str, sorted({use.lineno for use in needing})[:3]))
        said = N_("; the import is optional, but line {lines} still uses the imported name")
        message += _(said, lines=lines)
        sure = next((use for use in needing if surely_runs(index, use)), node)
        severity = less if sure is node else ""
    elif guard is not None or is_caught(index, node, IMPORT_ERRORS):  # suppress(ImportError)
        severity = less
        message += _("; the program continues if the import fails")
    elif is_asked_first(index, node, library):
        severity = less
        message += _("; the program checks first whether it is installed")
    match = found(context, rule, node, api=", ".join(names), message=message, severity=severity)
    return match._replace(node=sure)


def _unguarded(index: ModuleIndex, node: ast.AST, guard: ast.Try) -> Iterator[ast.Name]:
    """The uses of what a tried import binds that have no condition before them, where nothing replaces it."""
    if not isinstance(node, (ast.Import, ast.ImportFrom)):
        return
    scope = index.scope_of(node)
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        others = [binding for binding in scope.bindings.get(name, ()) if binding.node is not node]
        if all(isinstance(each.value, ast.Constant) and not each.value.value for each in others):
            for use in index.uses(name, scope):
                parent = index.parent(use)  # which asks something of the value, not whether there is one
                needs = isinstance(parent, (ast.Attribute, ast.ClassDef)) or index.call_of(use) is not None
                if needs and guard not in index.above(use) and not is_conditional(index, use):
                    yield use
