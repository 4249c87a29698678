"""Kind ``pattern``: expressions by what they compute, and definitions by their names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice, takewhile

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.matchers.context import ONLY_BY_NAME, FileContext, Match, found
from migrator.matchers.normal_form import PatternMatch, ancestors, matched
from migrator.matchers.packs import Options, Rule
from migrator.matchers.starting_words import starting_words
from migrator.names.index import ModuleIndex, identifiers
from migrator.names.tree import FUNCTIONS, LOOPS, Function, called_name

_WORD = re.compile(r"[A-Z][A-Z0-9]*\b")
_SIMPLE = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.UnaryOp)
_LEVELS = 8  # how far a pattern may reach above the call that it starts from


class PatternOptions(Options):
    """What else counts as the pattern, and when it is replaced.

    ``definitions`` (``class *RMSNorm``, ``def rotate_half``): one with such a name and without a fitting
    expression is only likely; it must hold a word of ``body`` and none of ``body_not``. With ``only_defined``
    an expression counts only in such a definition; ``not_where`` are patterns of other rules, which know
    better. Before anything is replaced, the variables in ``plain`` must be numbers or attributes.
    """

    definitions: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    body_not: tuple[str, ...] = ()
    only_defined: bool = False
    not_where: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


PatternRule = Rule[PatternOptions]


def find(context: FileContext, rules: list[PatternRule]) -> Iterator[Match]:
    """The expressions that fit one of a rule's patterns, one for each function, and definitions by name."""
    for rule in rules:
        holders: set[ast.AST | None] = set()  # the functions that have one
        yield from _expressions(context, rule, holders)
        yield from _by_name(context, rule, holders)


def _expressions(context: FileContext, rule: PatternRule, holders: set[ast.AST | None]) -> Iterator[Match]:
    words, seen = starting_words(rule), set[ast.AST]()
    index, own = context.index, rule.replace.startswith("torch_npu.")
    for anchor in (each for each in index.calls if called_name(each) in words):
        around = islice(ancestors(index, anchor), _LEVELS + 1)
        outcomes = ((each, _first(index, rule.match, each)) for each in around)
        node, outcome = next((each for each in outcomes if each[1] is not None), (anchor, None))
        if outcome is None or _first(index, rule.options.not_where, node) is not None:
            continue
        defined, holder = _defined_as(index, rule, node), index.function_of(node)
        if defined or not rule.options.only_defined:
            edits = _rewriting(index, rule, node, outcome)
            if node not in seen and (edits or holder not in holders):
                seen.add(node)
                holders.add(holder)
                form, name = defined or ("special", rule.name)
                yield found(context, rule, node, api=name, edits=edits, form=form, needs_npu=own)


def _first(index: ModuleIndex, patterns: Iterable[str], node: ast.expr) -> PatternMatch | None:
    return next((outcome for p in patterns if (outcome := matched(index, p, node)) is not None), None)


def _defined_as(index: ModuleIndex, rule: PatternRule, node: ast.AST) -> tuple[str, str] | None:
    """The definition around a node that one of the rule's ``definitions`` names: its form and name."""
    around = (index.function_of(node), index.class_of(node))
    return next((_form(each) for each in around if each is not None and _is_named(rule, each)), None)


def _form(node: Function | ast.ClassDef) -> tuple[str, str]:
    return "class" if isinstance(node, ast.ClassDef) else "function", node.name


def _is_named(rule: PatternRule, node: Function | ast.ClassDef) -> bool:
    """Whether one of the rule's ``definitions`` names a definition."""
    kind = "class" if isinstance(node, ast.ClassDef) else "def"
    return any(fnmatchcase(f"{kind} {node.name}", pattern) for pattern in rule.options.definitions)


def _by_name(context: FileContext, rule: PatternRule, holders: set[ast.AST | None]) -> Iterator[Match]:
    needed, unwanted, index = rule.options.body, rule.options.body_not, context.index
    for node in (each for each in (*index.classes, *index.functions) if _is_named(rule, each)):
        words = identifiers(index.segment(node).partition(node.name)[2])
        if (needed and words.isdisjoint(needed)) or not words.isdisjoint(unwanted):
            continue
        if any(inner in holders for inner in ast.walk(node)):
            continue
        start, (form, name) = index.start(node), _form(node)
        keyword = "class" if form == "class" else "def"
        keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else keyword
        span, said = (start, start + len(f"{keyword} {name}")), rule.message or rule.summary
        message = _("{name} may be this, judging by its name:  {message}", name=name, message=said)
        certainty = ONLY_BY_NAME
        yield found(context, rule, node, api=name, form=form, certainty=certainty, span=span, message=message)


def _rewriting(index: ModuleIndex, rule: PatternRule, node: ast.AST, outcome: PatternMatch) -> list[Edit]:
    """The edits that put the replacement there, and take away the assignment that only it needed."""
    plain = (outcome.variables[name] for name in rule.options.plain if rule.replace)
    are_plain = all(isinstance(value, (ast.Constant, ast.Attribute, ast.UnaryOp)) for value in plain)
    if not rule.replace or outcome.casts or not are_plain:
        return []
    torch = index.module_scope.bindings.get("torch", ())
    is_package = bool(torch) and all(binding.name == "torch" for binding in torch)
    if rule.replace.startswith("torch.") and not is_package:
        return []
    used, texts = _WORD.findall(rule.replace), {}
    for name, value in outcome.variables.items():
        simple, segment = isinstance(value, _SIMPLE), index.segment(value)
        if name in used:
            if (not simple and used.count(name) > 1) or "\n" in segment or not segment:
                return []
            texts[name] = segment if simple or isinstance(value, ast.Call) else f"({segment})"
    before = _folded(index, node, outcome)
    text = _WORD.sub(lambda word: texts.get(word.group(), word.group()), rule.replace)
    return [] if before is None else [*before, Edit(index.start(node), index.end(node), text)]


def _folded(index: ModuleIndex, node: ast.AST, outcome: PatternMatch) -> list[Edit] | None:
    """The removal of the one assignment in front that the match looked through; None where it must stay."""
    assignments = outcome.assignments
    if not assignments:
        return []
    here = index.statement_of(node)
    before = assignments[0]
    right_above = [*index.before(here)][-1:]
    if any([each] != right_above for each in assignments):
        return None
    # In a loop what stands above reads the name as well, on the next turn.
    around = takewhile(lambda up: not isinstance(up, FUNCTIONS), (here, *index.above(here)))
    loop = any(isinstance(up, LOOPS) for up in around)
    first = 0 if loop else index.end(before)
    matched_names = {id(name) for name in outcome.names}
    for name in (node.id for node in ast.walk(before.targets[0]) if isinstance(node, ast.Name)):
        uses = [use for use in index.uses(name, index.scope_of(here)) if index.start(use) >= first]
        if not uses or any(id(use) not in matched_names for use in uses):
            return None
    start, end = index.start(before), index.start(here)
    if index.data[index.end(before) : end].strip():
        return None
    return [Edit(start, end, "")]
