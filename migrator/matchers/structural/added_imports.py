"""Imports that the whole file or project calls for: of torch_npu, and of bundled modules.

A bundled module helps a library that does not find NPUs, or has its functions: apex.amp. In a migration the
result gets the module, and imports it in place of the library. Where there is none (in lint; in a file that
has another way beside it) imports and calls are reported, if the rule says so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cache, partial

from migrator.api_support.versions import in_range
from migrator.data_folders import data_folder
from migrator.files.naming import MADE
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.light import Frozen
from migrator.matchers.context import FileContext, Match, Said, found, insertion, instead_of
from migrator.matchers.kinds.library import every_import
from migrator.matchers.npu_import import (
    import_at_top,
    insert_import,
    names_package,
    torch_npu_imports,
    without_names,
)
from migrator.matchers.options import EXPRESSION, NEVER, SAID
from migrator.matchers.packs import Options, Rule, pattern_fits
from migrator.matchers.query.uses import is_replaced
from migrator.names.tree import (
    Import,
    argument_of,
    attributes,
    bare_name,
    called_name,
    holder_of,
    imported,
    root,
    string_value,
)
from migrator.names.what_is import options_like
from migrator.project.module_names import Read, import_pattern
from migrator.project.offers import LIBRARY
from migrator.project.project import Project
from migrator.project.wanted_versions import limits_hold, wanted_of


def find_outside_devices(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Programs that get their device from a command line or a configuration, and name none themselves.

    A file that is started needs the import of torch_npu, without which torch does not know the device. From
    torch 2.5 on torch imports it by itself.
    """
    index = context.index
    if not context.is_entry():
        return
    made = [call for call, _ in context.calls_of(rule) if call.args]
    # A function may be given it by a library that reads the command line.
    outside = [call for call in made if _is_outside(call.args[0]) or index.is_bound_by("param", call.args[0])]
    # model.to(args.device)
    moves = (call for call in index.calls if holder_of(call) is not None and called_name(call) == "to")
    outside += [call for call in moves if call.args and _is_outside(call.args[0])]
    for node, edit in torch_npu_imports(index, outside, context.version.replaces_names) if outside else ():
        yield insertion(context, rule, node, edit)


def _is_outside(device: ast.expr) -> bool:
    """Whether a device is what an option or a setting says."""
    if isinstance(device, ast.Subscript):
        key = string_value(device.slice)
        return key is not None and "device" in key.lower()
    holder = device.value if isinstance(device, ast.Attribute) else device
    return holder is not device and "device" in bare_name(device).lower() and options_like(holder)


def find_early_imports(context: FileContext, rule: Rule) -> Iterator[Match]:
    """Names that torch_npu replaces in torch before 2.1: whoever imported them before has the old ones.

    Of a file that imports such names, and nothing of torch_npu, this goes above the first import of torch.
    """
    index = context.index
    for node in index.imports:
        if not isinstance(node, ast.ImportFrom) or node.level:
            continue
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        replaced = [name for name in names if rule.fits(name)]
        if not replaced:
            continue
        api = ", ".join(replaced)
        for place, edit in torch_npu_imports(index, [node], above=True):
            yield insertion(context, rule, place, edit, api=api)
        below = (other for other in index.behind(node) if isinstance(other, (ast.Import, ast.ImportFrom)))
        if any(names_package(other, "torch_npu") for other in below):
            yield found(context, rule, node, api=api, advice=_("Import torch_npu above it."))
        return


class Added(Frozen):
    """When a result gets the module: files import one of the ``libraries``, for these versions of ``torch``.

    ``packages``: the versions of libraries that it helps. ``some``: an expression that one of the files has;
    ``none``: one that none of them may have, where requirements leave the versions open.
    """

    libraries: tuple[str, ...] = ()
    torch: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    some: str = field(default="", metadata=EXPRESSION)
    none: str = field(default=NEVER, metadata=EXPRESSION)


class ModuleOptions(Options):
    """``stands_for``: library modules in whose place ``module`` is imported; else it is imported beside.

    ``beside``: what a file has that keeps the library, as do the ``names`` missing in the module.
    ``spared``: what shows that a file can do without it: it brings no module, but uses that of others.
    ``reports``: then its imports and calls are reported, but for calls with a value in ``unless``;
    ``started`` are those that raise, if not all do, with the message ``raises``. ``unhelped`` is the advice
    where requirements, or the call, show that the module is not for the project.
    """

    module: str = ""
    stands_for: tuple[str, ...] = ()
    beside: str = field(default=NEVER, metadata=EXPRESSION)
    spared: str = field(default=NEVER, metadata=EXPRESSION)
    names: str = field(default=NEVER, metadata=EXPRESSION)
    reports: bool = False
    unless: dict[str, str] = field(default_factory=dict)
    started: tuple[str, ...] = ()
    raises: str = field(default="", metadata=SAID)
    unhelped: str = field(default="", metadata=SAID)
    added: Added = Added()


ModuleRule = Rule[ModuleOptions]


def is_added(
    rule: ModuleRule, project: Project, version: tuple[int, ...], files: Sequence[str], read: Read
) -> bool:
    """Whether a result gets the module, by the project's requirements and the texts of its Python files."""
    added, own = rule.options.added, f"{rule.options.module}.py"
    known = project.offers.names(LIBRARY).intersection(added.libraries)
    helps = _helps(added, project)
    if not known or not in_range(added.torch, version) or helps is False:
        return False
    if any(name.rpartition("/")[2] == own and MADE not in (read(name) or "")[:1000] for name in files):
        return False
    libraries = rule.options.stands_for or (min(known),)
    own_files = (name for name in files if not all(project.owns(each, name) for each in libraries))
    naming = (text for name in own_files if any(map((text := read(name) or "").__contains__, known)))
    imports = re.compile(import_pattern(known))
    texts = [each for text in naming if imports.search(each := "\n" + text.replace("\r", "\n"))]
    needing = (each for each in texts if not re.search(rule.options.spared, each))
    shown = (re.search(added.some, each) and not _keeps(rule, each) for each in needing)
    by_notebooks = not (texts or added.some)  # whose texts are not read here
    others = not helps and any(re.search(added.none, text) for text in texts)
    return (any(shown) or by_notebooks) and not others


def _keeps(rule: ModuleRule, text: str) -> str:
    """What of a file keeps the library: something that stands in it, or names missing in the module."""
    beside = re.search(rule.options.beside, text)
    lacking = set(re.findall(rule.options.names, text)) - _defined(rule.options.module)
    return beside[0] if beside else ", ".join(sorted(lacking))


@cache
def _defined(module: str) -> frozenset[str]:
    """The names that a bundled module defines."""
    text = (data_folder("reports") / "modules" / f"{module}.py").read_text("utf-8")
    return frozenset(re.findall(r"^(?:def |class )?([A-Za-z]\w*)(?:\(| =)", text, re.MULTILINE))


def _helps(added: Added, project: Project) -> bool | None:
    """Whether requirements ask for versions that the module helps; None where they leave it open."""
    wanted = wanted_of(project.requirements, frozenset(added.packages))
    known = {limits_hold(added.packages[name], limits) for name, limits in wanted.items()}
    return False if False in known else (True in known or None)


def find_own_modules(context: FileContext, rule: ModuleRule) -> Iterator[Match]:
    """The imports and the uses that need the module, or each import and each call."""
    index, options = context.index, rule.options
    every, statement = [*context.uses_of(rule)], context.project.import_of(options.module, context.name)
    is_free = not index.module_scope.bindings.get(options.module)
    if statement and not options.stands_for:
        place = import_at_top(index, statement) if every else None
        if place is not None:
            message = _("with the module {name} the library finds NPUs as it finds GPUs", name=options.module)
            yield insertion(context, rule, *place, api=options.module, message=message, safety="unsafe")
    elif statement and is_free and not _keeps(rule, index.text):
        for library in options.stands_for:
            yield from _moved(context, rule, every, statement, library)
    elif options.reports and is_free:  # a result imports it already
        yield from _reported(context, rule, every)


def _reported(context: FileContext, rule: ModuleRule, every: list[tuple[ast.expr, str]]) -> Iterator[Match]:
    """Each import of what the module stands for, and each call but those that need no help."""
    index, options = context.index, rule.options
    yield from every_import(context, [rule]) if options.stands_for else ()
    for_others, kept = _helps(options.added, context.project) is False, _keeps(rule, index.text)
    stays = _("{api} stays: {module} does not replace it in a file that has {what}")
    stays = stays.replace("{what}", kept).replace("{module}", options.module) if kept else ""
    for node, name in every:
        call = index.call_of(node)
        if call is None or (options.stands_for and is_replaced(context, rule, call)):
            continue
        given = {key: string_value(argument_of(call, key)) for key in options.unless}
        starts = not options.started or name.rpartition(".")[2] in options.started
        if not starts or (given and given == options.unless):
            continue
        is_others = for_others or re.search(options.added.none, index.segment(call))
        about: Said = {"api": name, "advice": options.unhelped if is_others else ""}
        about["severity"] = "blocker" if options.raises else ""
        about["message"] = options.raises or stays
        yield found(context, rule, call, **about)


def _moved(
    context: FileContext, rule: ModuleRule, every: list[tuple[ast.expr, str]], statement: str, old: str
) -> Iterator[Match]:
    """Imports of the library's module, and its names in full, which need an import beside the library's."""
    index, new, library = context.index, rule.options.module, old.partition(".")[0]
    changed = partial(found, safety="unsafe", needs_npu=False)
    for node in index.imports:
        is_its = any(context.fits(rule, name) and pattern_fits(f"{old}.*", name) for name in imported(node))
        if is_its and (edit := _import(context, rule, node, statement, old)):
            yield changed(context, rule, node, api=old, edits=[edit])
    named: dict[ast.expr, ast.AST] = {}  # the library in them, with what imports it
    for use, name in every if library != old else ():
        own = next((each for each in attributes(use) if index.qualified_name(each) == old), None)
        first = root(use)
        if own is None or not isinstance(first, ast.Name) or index.qualified_name(first) != library:
            continue
        for binding in index.bindings(first)[:1]:
            named[first] = binding.node
            yield changed(context, rule, use, api=name, edits=[instead_of(index, own, new)])
    for node in dict.fromkeys(each for each in named.values() if isinstance(each, ast.Import)):
        only = len(node.names) == 1 and set(index.uses(library, index.scope_of(node))) <= set(named)
        edit = instead_of(index, node, statement) if only else insert_import(index, node, statement)
        yield changed(context, rule, node, api=old, edits=[edit])


def _import(context: FileContext, rule: ModuleRule, node: Import, statement: str, old: str) -> Edit | None:
    """The edit that imports it from ours; None for what binds the library, or has comments between names."""
    index = context.index
    if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{old}."):
        module = context.project.places[context.name].module(rule.options.module)
        return instead_of(index, node, f"from {module} import {', '.join(map(ast.unparse, node.names))}")
    gone = [each for each, name in zip(node.names, imported(node)) if pattern_fits(f"{old}.*", name)]
    bound = gone[0].asname or ("" if isinstance(node, ast.Import) and "." in old else gone[0].name)
    return without_names(index, node, gone, [f"{statement} as {bound}"]) if bound and len(gone) == 1 else None
