"""Kind ``pattern``: expressions by what they compute, and definitions by their names.

A pattern is a Python expression. A name in capital letters stands for any expression, the same one wherever
it occurs; ``within(P)`` for any expression that P is a part of. Both are brought into one normal form:
``torch.f(x, …)``, ``F.f(x, …)`` and ``x.f(…)`` are one, and so are ``x ** 2``, ``x * x`` and ``x.square()``;
sums and products match in either order. What a name was last assigned counts as written in its place,
``self.act(x)`` as ``F.silu(x)`` where ``self.act`` is ``nn.SiLU()``, and conversions of the data type are
looked through.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain, islice, takewhile
from typing import Optional

from migrator.findings.finding import Edit
from migrator.language import _
from migrator.light import NamedTuple
from migrator.matchers.context import ONLY_BY_NAME, FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.matchers.query.shapes import shape
from migrator.matchers.starting_words import starting_words
from migrator.names.index import ModuleIndex, identifiers
from migrator.names.tree import FUNCTIONS, LOOPS, Function, bare_name, called_name, hands_on, only_target

_WORD = re.compile(r"[A-Z][A-Z0-9]*\b")
_SIMPLE = (ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.UnaryOp)
_LEVELS = 8  # how far a pattern may reach above the call that it starts from


class PatternOptions(Options):
    """What else counts as the pattern, and when it is replaced.

    ``definitions`` (``class *RMSNorm``, ``def rotate_half``): one with such a name and without a fitting
    expression is only likely; it must hold a word of ``body`` and none of ``body_not``. With ``only_defined``
    an expression counts only in such a definition; ``not_where`` are patterns of other rules, which know
    better, of the expression or of what the function computes from it. Before anything is replaced, the
    variables in ``plain`` must be numbers or attributes.
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
    for anchor in _anchors(index, words):
        inside = takewhile(lambda up: not isinstance(up, ast.stmt), chain([anchor], index.above(anchor)))
        around = islice((up for up in inside if isinstance(up, ast.expr)), _LEVELS + 1)
        outcomes = ((each, _first(index, rule.match, each)) for each in around)
        node, outcome = next((each for each in outcomes if each[1] is not None), (anchor, None))
        if outcome is None or _is_known_better(index, rule, node):
            continue
        holder = index.function_of(node)
        owners = (each for each in (holder, index.class_of(node)) if each is not None)
        defined = next((_form(each) for each in owners if _is_named(rule, each)), None)
        if defined or not rule.options.only_defined:
            edits = _rewriting(index, rule, node, outcome)
            if node not in seen and (edits or holder not in holders):
                seen.add(node)
                holders.add(holder)
                form, name = defined or ("special", rule.name)
                yield found(context, rule, node, api=name, edits=edits, form=form, needs_npu=own)


def _first(index: ModuleIndex, patterns: Iterable[str], node: ast.expr) -> PatternMatch | None:
    """What the variables of the first pattern that fits an expression stand for; None where none does."""
    outcomes = (_Reader(index).fitted(shape(each), node, PatternMatch({})) for each in patterns)
    return next(filter(None, outcomes), None)


def _is_known_better(index: ModuleIndex, rule: PatternRule, node: ast.expr) -> bool:
    """Whether a pattern of ``not_where`` fits the expression, or what its function computes from it."""
    patterns = rule.options.not_where
    if not patterns:
        return False
    inner, holder = {*ast.walk(node)}, index.function_of(node)
    near = (each for each in index.calls if index.function_of(each) is holder)
    outcomes = (_first(index, patterns, each) for each in (node, *near))
    return any(each is not None and not inner.isdisjoint(each.variables.values()) for each in outcomes)


def _module_of(index: ModuleIndex, call: ast.Call) -> ast.Call | None:
    """What ``self.act(x)`` calls, such as ``torch.nn.SiLU()``: a module that constants alone describe."""
    made = index.stored_as(call.func) if isinstance(call.func, ast.Attribute) else []
    module = made[0] if len(made) == 1 else None
    if not isinstance(module, ast.Call) or not index.qualified_name(module.func).startswith("torch.nn."):
        return None
    given = [*module.args, *(keyword.value for keyword in module.keywords)]
    return module if all(isinstance(each, (ast.Constant, ast.UnaryOp)) for each in given) else None


def _anchors(index: ModuleIndex, words: frozenset[str]) -> Iterator[ast.Call]:
    """The calls that a word names, and those of what ``self.act = nn.SiLU()`` stores."""
    for call in (each for each in index.calls if called_name(each) in words):
        yield call
        stored = only_target(index.statement_of(call))
        members = index.members(stored.attr) if isinstance(stored, ast.Attribute) else ()
        yield from filter(None, map(index.call_of, members))


def _form(node: Function | ast.ClassDef) -> tuple[str, str]:
    return "class" if isinstance(node, ast.ClassDef) else "function", node.name


def _keyword(node: Function | ast.ClassDef) -> str:
    return "class" if isinstance(node, ast.ClassDef) else "def"


def _is_named(rule: PatternRule, node: Function | ast.ClassDef) -> bool:
    """Whether one of the rule's ``definitions`` names a definition."""
    return any(fnmatchcase(f"{_keyword(node)} {node.name}", pattern) for pattern in rule.options.definitions)


def _by_name(context: FileContext, rule: PatternRule, holders: set[ast.AST | None]) -> Iterator[Match]:
    needed, unwanted, index = rule.options.body, rule.options.body_not, context.index
    for node in (each for each in (*index.classes, *index.functions) if _is_named(rule, each)):
        words = identifiers(index.segment(node).partition(node.name)[2])
        if (needed and words.isdisjoint(needed)) or not words.isdisjoint(unwanted):
            continue
        if any(inner in holders for inner in ast.walk(node)):
            continue
        start, (form, name) = index.start(node), _form(node)
        keyword = "async def" if isinstance(node, ast.AsyncFunctionDef) else _keyword(node)
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
    names = {binding.name for binding in index.module_scope.bindings.get("torch", ())}
    if rule.replace.startswith("torch.") and names != {"torch"}:
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
    return [] if before is None else [*before, Edit(*index.span(node), text)]


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
    return None if index.data[index.end(before) : end].strip() else [Edit(start, end, "")]


_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*\Z")
_CASTS = frozenset({"float", "half", "bfloat16", "to", "type_as", "contiguous"})
# The names of the positional arguments behind the tensor itself.
_PARAMETERS = {"chunk": "chunks dim", "topk": "k dim", "masked_fill": "mask value", "gelu": "approximate"}
_PARAMETERS.update(dict.fromkeys(("softmax", "log_softmax", "cat", "stack"), "dim"))
_PARAMETERS.update(dict.fromkeys(("mean", "sum"), "dim keepdim"))
_SPELLINGS = {"concat": "cat", "concatenate": "cat", "axis": "dim", "keepdims": "keepdim", "bmm": "matmul"}
_OPERATORS = {ast.Mult: "mul", ast.MatMult: "matmul"}  # the others are called as torch calls them
_COMPUTING = frozenset({"matmul", "square", "pow", "add", "mul", "sub", "div"})
_EITHER_ORDER = frozenset({"add", "mul"})
_OTHER_LIBRARIES = frozenset({"math", "numpy", "jax", "tensorflow"})
_CAST = "cast"
_DEEPEST = 12

Form = tuple[str, list[ast.expr]]  # what an expression computes, and of which others


class PatternMatch(NamedTuple):
    """What a pattern's variables stand for, and what had to be looked through to see it."""

    variables: Mapping[str, ast.expr]
    assignments: tuple[ast.Assign, ...] = ()  # statements whose values stand for names
    names: tuple[ast.Name, ...] = ()  # these names
    casts: bool = False


def _is_variable(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and _VARIABLE.match(node.id) is not None


@cache
def _wanted(pattern: ast.expr) -> Form:
    return _Reader(None).form(pattern)


class _Reader(NamedTuple):
    """Brings expressions into normal form: of a file, or of a pattern where there is no index."""

    file: Optional[ModuleIndex]

    def fitted(
        self, pattern: ast.expr, node: ast.expr, so_far: PatternMatch, depth: int = 0
    ) -> Optional[PatternMatch]:
        """What is known once the pattern is laid on the expression; None where it does not fit."""
        if depth > 4 * _DEEPEST:
            return None
        if isinstance(pattern, ast.Name) and _is_variable(pattern):
            known = so_far.variables.get(pattern.id)
            if known is None:
                return so_far._replace(variables={**so_far.variables, pattern.id: node})
            if self.same(known, node):
                return so_far
            alike = self.same(self.without_casts(known), self.without_casts(node))
            return so_far._replace(casts=True) if alike else None
        if isinstance(pattern, ast.Call) and called_name(pattern) == "within":
            return self.inside(pattern.args[0], node, so_far)
        (wanted, inner), (label, parts) = _wanted(pattern), self.form(node)
        if label == _CAST:
            return self.fitted(pattern, parts[0], so_far._replace(casts=True), depth + 1)
        if label != wanted and (value := self.assigned(node, label)) is not None:
            expression, statement, name = value
            assignments, names = (*so_far.assignments, statement), (*so_far.names, name)
            so_far = so_far._replace(assignments=assignments, names=names)
            return self.fitted(pattern, expression, so_far, depth + 1)
        if label != wanted or len(parts) != len(inner):
            return None
        for order in (parts, parts[::-1]) if label in _EITHER_ORDER else (parts,):
            outcome: Optional[PatternMatch] = so_far
            for each, part in zip(inner, order):
                outcome = outcome and self.fitted(each, part, outcome, depth + 1)
            if outcome is not None:
                return outcome
        return None

    def inside(
        self, pattern: ast.expr, node: ast.expr, so_far: PatternMatch, depth: int = 0
    ) -> Optional[PatternMatch]:
        """The same for an expression of which the pattern fits a part."""
        attempt = self.fitted(pattern, node, PatternMatch(so_far.variables))
        if attempt is not None:  # what is around it is not part of the match
            return so_far._replace(variables=attempt.variables, casts=True)
        if depth > _DEEPEST:
            return None
        label, parts = self.form(node)
        value = self.assigned(node, label)
        parts = parts if value is None else [value[0]]
        return next(filter(None, (self.inside(pattern, part, so_far, depth + 1) for part in parts)), None)

    def same(self, one: ast.expr, other: ast.expr, depth: int = 0) -> bool:
        """Whether both are the same expression."""
        (label, parts), (another, others) = self.form(one), self.form(other)
        is_like = label == another and len(parts) == len(others) and depth <= 4 * _DEEPEST
        return is_like and all(self.same(*each, depth + 1) for each in zip(parts, others))

    def without_casts(self, node: ast.expr) -> ast.expr:
        """What is converted to another data type."""
        label, parts = self.form(node)
        return self.without_casts(parts[0]) if label == _CAST else node

    def form(self, node: ast.expr) -> Form:
        """What an expression computes: a name, a value, an operator, a function with its arguments."""
        name = self.full_name(node)
        if name:
            return name, []
        if isinstance(node, ast.Name):
            return f"name {node.id}", []
        if isinstance(node, ast.Constant):
            is_number = isinstance(node.value, int) and node.value is not True
            return repr(float(node.value) if is_number else node.value), []  # type: ignore[arg-type]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            is_number = isinstance(node.operand, ast.Constant)
            return (f"-{self.form(node.operand)[0]}", []) if is_number else ("neg", [node.operand])
        if isinstance(node, ast.BinOp):
            operator = _OPERATORS.get(type(node.op), type(node.op).__name__.lower())
            return self.squared(operator, [node.left, node.right])
        if isinstance(node, ast.Call) and not hands_on(node):
            return self.called(node)
        if isinstance(node, ast.Attribute):
            return f".{node.attr}", [node.value]
        if isinstance(node, ast.Subscript):
            return "[]", [node.value, node.slice]
        if isinstance(node, (ast.Tuple, ast.List)):
            return "()", node.elts
        if isinstance(node, ast.Slice):
            return ":", [end or ast.Constant(None) for end in (node.lower, node.upper, node.step)]
        return f"other {id(node)}", []

    def full_name(self, node: ast.expr) -> str:
        """The full name of a name or an attribute; of a pattern's, where it begins with a library."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return ""
        if self.file is not None:
            return self.file.qualified_name(node)
        text = ast.unparse(node)
        return text if text.split(".")[0] in ("torch", "math", "numpy") else ""

    def called(self, node: ast.Call) -> Form:
        """The form of a call: ``torch.f(x, …)`` and ``x.f(…)`` are one."""
        module = _module_of(self.file, node) if self.file is not None else None
        if module is not None:  # its own arguments stand behind the input, as those of the function do
            function = ast.Name(called_name(module).lower())
            node = ast.Call(function, [*node.args, *module.args], module.keywords)
        name, rest = self.full_name(node.func) if module is None else "", node.args
        last = name.rpartition(".")[2] or bare_name(node.func)
        last = _SPELLINGS.get(last, last)
        if name.startswith("torch.") or not isinstance(node.func, ast.Attribute):
            if name.split(".")[0] in _OTHER_LIBRARIES:
                return f"{name}()", node.args
            by_keyword = (each.value for each in node.keywords if each.arg in ("input", "tensors"))
            itself, rest = next(iter([*rest[:1], *by_keyword]), None), rest[1:]
        else:
            itself = node.func.value
        if itself is None or not last:
            return f"other {id(node)}", []
        if last in _CASTS:
            return _CAST, [itself]
        places = dict(enumerate(_PARAMETERS.get(last, "").split()))
        given = {places.get(place, str(place)): value for place, value in enumerate(rest)}
        for keyword in node.keywords:
            if keyword.value is not itself:
                given[_SPELLINGS.get(str(keyword.arg), str(keyword.arg))] = keyword.value
        if last in _COMPUTING and len(given) == (0 if last == "square" else 1):
            # x.add(y, alpha=2) is another one, and so is x.add(other=y) for all that is known.
            if last in ("matmul", "square", "pow") or "0" in given:
                return self.squared(last, [itself, *given.values()])
        labels = sorted(given)
        return f"{last}({','.join(labels)})", [itself, *(given[label] for label in labels)]

    def squared(self, label: str, parts: list[ast.expr]) -> Form:
        """``x ** 2``, ``x.pow(2)`` and ``x * x`` in one form."""
        first, last = parts[0], parts[-1]
        twice = label == "mul" and type(first) is type(last) and self.same(first, last)
        if twice and not (self.file is None and _is_variable(first)):
            return "square", [first]
        return ("square", [first]) if label == "pow" and self.form(last)[0] == "2.0" else (label, parts)

    def assigned(self, node: ast.expr, label: str) -> Optional[tuple[ast.expr, ast.Assign, ast.Name]]:
        """What a name was last assigned before it is read, and the statement that does it."""
        if self.file is None or not isinstance(node, ast.Name) or not label.startswith("name "):
            return None
        every = (binding.node for binding in self.file.scope_of(node).bindings.get(node.id, ()))
        assigned = (each for each in every if isinstance(each, ast.Assign))
        earlier = (each for each in assigned if (each.end_lineno or 0) < node.lineno)
        best = max(earlier, key=lambda statement: statement.lineno, default=None)
        target = only_target(best)
        if best is None or target is None:
            return None
        self.file.expand(best)
        value = best.value
        if isinstance(target, ast.Name):
            return value, best, node
        targets = target.elts if isinstance(target, ast.Tuple) else []
        place = next((n for n, each in enumerate(targets) if bare_name(each) == node.id), None)
        if place is None or not isinstance(targets[place], ast.Name):
            return None
        if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(targets):
            return value.elts[place], best, node
        item = ast.Subscript(value, ast.Constant(place), ast.Load())
        return ast.copy_location(item, targets[place]), best, node
