"""What ``where`` may ask of a use: each function is a condition, and its parameters' types are checked.

A condition on arguments speaks of those that the call writes: what ``*`` and ``**`` bring is unknown, so that
an argument may be neither ``given`` nor ``missing``.
"""

from __future__ import annotations

import ast
import re

from migrator.matchers.options import LONGEST
from migrator.matchers.query.shapes import Comparison
from migrator.matchers.query.uses import Argument, Call, Literal, Regex, Shape, Use, is_replaced
from migrator.names.conditions import is_asked_first, is_asked_for, is_for_cpu, is_guarded
from migrator.names.device_strings import written as text_of
from migrator.names.goes_to import behind, goes_to, kept_as, taken_by
from migrator.names.made_from import made_from, one_step_back
from migrator.names.together import together
from migrator.names.tree import (
    FUNCTIONS,
    argument_of,
    arguments_of,
    bare_name,
    called_name,
    elements,
    hands_on,
    holder_of,
    is_off,
    only_target,
    string_value,
    targets_of,
    walk,
)
from migrator.names.what_is import stays_on_the_cpu

# Functions that look for a string in another one.
_MOST_VALUES = 100  # that an argument may have, by as many assignments
_TESTS = frozenset(
    "startswith endswith find index count search match fullmatch findall compile raises assertRaisesRegex"
    " assertIn assertRegex any all".split()
)


# -- which use it is


def base(use: Use) -> bool:
    """The API is a base of a class."""
    return use.on == "base"


def api(use: Use, *names: str) -> bool:
    """The API's last name is one of these."""
    return use.api.rpartition(".")[2] in names


def replaced(use: Use) -> bool:
    """The name means something else if the library is missing: an ``except`` binds it again."""
    return is_replaced(use.context, use.rule, use.node)


def dotted(use: Use) -> bool:
    """The API is written as a member of its module."""
    return isinstance(use.call.func, ast.Attribute)


def free(use: Use, name: str) -> bool:
    """The file binds no such name where the use is, so that one of Python's own means itself."""
    return not use.index.scope_of(use.node).look_up(name)


# -- arguments


def given(call: Call, name: Argument) -> bool:
    """The argument is written."""
    return call.argument(name) is not None


def missing(call: Call, name: Argument) -> bool:
    """The argument is certainly not given."""
    return call.argument(name) is None and not hands_on(call.call)


def by_keyword(call: Call, name: Argument) -> bool:
    """The argument is given by keyword."""
    return call.keyword(name) is not None


def unpacks(call: Call) -> bool:
    """The call passes ``*`` or ``**``."""
    return hands_on(call.call)


def off(call: Call, name: Argument) -> bool:
    """The argument is not written, or is ``False`` or ``None``."""
    return is_off(call.argument(name))


def source(call: Call, name: Argument, pattern: Regex) -> bool:
    """A regular expression matches the whole source of the argument."""
    node = call.argument(name)
    return node is not None and re.fullmatch(pattern, call.index.segment(node)) is not None


def made_as(call: Call, name: Argument, pattern: Regex) -> bool:
    """A regular expression is found in the source of the argument, or of its origin or loop."""
    node = call.argument(name)
    made = [node, *made_from(call.index, node, inside=True)] if node is not None else []
    return any(re.search(pattern, call.index.segment(each)) for each in made)


def value(call: Call, name: Argument, *values: Literal) -> bool:
    """The argument is one of some literals."""
    node = call.argument(name)
    known = [(type(each), each) for each in values]
    return isinstance(node, ast.Constant) and (type(node.value), node.value) in known


def takes(call: Call, *names: str) -> bool:
    """An argument has one of these qualified names, or is one of these strings."""
    given = (string_value(each) or call.index.qualified_name(each) for each in arguments_of(call.call))
    return not {*given}.isdisjoint(names)


def literal(call: Call, name: Argument, *types: str) -> bool:
    """The argument is a literal of one of these types: list, tuple, dict; an integer is int."""
    node = call.argument(name)
    node = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    value = node.value if isinstance(node, ast.Constant) else node
    return type(value).__name__.lower() in types  # ast.List is a list


def longer(call: Call, name: Argument, length: int) -> bool:
    """The argument is a collection with more elements than this, whose first ones are known."""
    first = elements(call.argument(name))
    return len(first) > length and not any(isinstance(each, ast.Starred) for each in first[:length])


def has_key(call: Call, name: Argument, key: str) -> bool:
    """The argument is, or may be, a dictionary that gives this key a value other than 0."""
    node = call.argument(name)
    values = [] if node is None else [node]
    for each in values:
        if not isinstance(each, ast.Dict) and len(values) < _MOST_VALUES:
            values += one_step_back(call.index, each) or ()
    items = (item for each in values if isinstance(each, ast.Dict) for item in zip(each.keys, each.values))
    return any(string_value(each) == key and ast.unparse(value) != "0" for each, value in items)


def declared(call: Call) -> bool:
    """The call passes no arguments except the rule's ``args``."""
    known, given = call.rule.args, call.call
    keywords = all(each.arg in known for each in given.keywords)
    most = len(call.rule.positions) - call.is_of_method
    return keywords and not hands_on(given) and len(given.args) <= most


def declares(call: Call, member: str) -> bool:
    """A class of the file that is called, or that an argument is or holds, sets this member in its body."""
    index, given = call.index, arguments_of(call.call)
    held = (each for value in given for each in (value, *made_from(index, value, inside=True)))
    classes = map(index.definition, (call.call.func, *held))
    bodies = (owner.body for owner in classes if isinstance(owner, ast.ClassDef))
    return any(member in map(bare_name, targets_of(each)) for body in bodies for each in body)


# -- values


def written(use: Use, name: Argument, *shapes: Shape) -> bool:
    """The argument is written like one of these shapes."""
    return _is_like(use, name, shapes, Comparison(use.index, use.letters))


def like(use: Use, name: Argument, *shapes: Shape) -> bool:
    """The argument, or every value assigned to its name, is written like one of these shapes."""
    return _is_like(use, name, shapes, Comparison(use.index, use.letters, all))


def may_be_like(use: Use, name: Argument, *shapes: Shape) -> bool:
    """The argument, or any value assigned to its name, is written like one of these shapes."""
    return _is_like(use, name, shapes, Comparison(use.index, use.letters, any))


def like_behind(use: Use, methods: str, name: Argument, *shapes: Shape) -> bool:
    """The same, ignoring calls of these methods, such as 'view reshape'."""
    compared = Comparison(use.index, use.letters, all, through=methods.split())
    return _is_like(use, name, shapes, compared)


def _is_like(use: Use, name: Argument, shapes: tuple[Shape, ...], compared: Comparison) -> bool:
    node = use.argument(name)
    return node is not None and compared.holds(shapes, node)


def kind(use: Use, name: Argument, *kinds: str) -> bool:
    """The argument is certainly a 'module' of torch.nn, of a 'class' of the file, or a 'tensor', as named."""
    node = use.argument(name)
    return node is not None and use.context.value(node).kind in kinds


def made_by(use: Use, *names: str) -> bool:
    """The object of a member or a method comes from a call of one of these qualified names."""
    node = holder_of(use.node) if isinstance(use.node, ast.Call) else getattr(use.node, "value", None)
    made = made_from(use.index, node) if node is not None else ()
    return any(isinstance(each, ast.Call) and use.index.qualified_name(each.func) in names for each in made)


def computed_by(call: Call, name: Argument, *beginnings: str) -> bool:
    """The argument, or a part of it, comes from a function whose full name begins with one of these.

    The shape of a tensor does not come from what computed its values.
    """
    node = call.argument(name)
    waiting, seen = [node] if node is not None else [], set[ast.AST]()
    while waiting:
        for each in walk(waiting.pop()):
            if each in seen:
                continue
            seen |= {each, *(walk(each) if getattr(each, "attr", "") in ("shape", "size") else ())}
            if isinstance(each, ast.Call) and call.index.qualified_name(each.func).startswith(beginnings):
                return True
            if isinstance(each, ast.Name):  # what a call takes decides what it gives
                waiting += made_from(call.index, each, inside=True)
    return False


def result_on_cpu(use: Use) -> bool:
    """The result or an input of this function of torch, or method of a tensor, is certainly on the CPU.

    The program may ask for that first.
    """
    if is_for_cpu(use.index, use.node):
        return True
    call = use.call if use.on == "call" else use.index.call_of(use.node) or behind(use.index, use.node).holder
    return isinstance(call, ast.Call) and stays_on_the_cpu(use.index, call)


def device(call: Call, name: Argument, *beginnings: str) -> bool:
    """The argument is a literal device or device string that begins with one of these."""
    node = call.argument(name)
    if isinstance(node, ast.Call) and call.index.qualified_name(node.func) == "torch.device" and node.args:
        node = node.args[0]
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return (string_value(node) or "").startswith(beginnings)


# -- what is around


def guarded(use: Use, word: str, *errors: str) -> bool:
    """The program checks for a name first, or catches one of these errors."""
    return is_guarded(use.index, use.node, [word], errors)


def spared(use: Use) -> bool:
    """The program checks for the API, its value or the release first, or catches that it is missing."""
    asks = use.on == "name" and is_asked_for(use.index, use.node, use.api)
    missing = [use.api.rpartition(".")[2]]
    # Of other packages than torch another name, or their release, may be asked for.
    if other := re.match(r"((?!torch)\w+)\.", use.api):
        absent, package = (lambda name: name.startswith(other[0])), other[1]
        return asks or is_guarded(use.index, use.node, missing, absent=absent, package=package)
    return asks or is_guarded(use.index, use.node, missing)


def taken(use: Use, *ways: str) -> bool:
    """What happens to the value, such as 'unused', 'text', 'method', or that with a name: 'method item'."""
    sink = taken_by(use.index, use.node)
    return not {sink.kind, f"{sink.kind} {sink.name}"}.isdisjoint(ways)


def calls_method(use: Use, name: Argument, method: str, *without: str) -> bool:
    """The same function calls a method of the argument with keywords only, none of which is one of these."""
    index, node, function = use.index, use.argument(name), use.index.function_of(use.node)
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    named = (call for call in index.calls if called_name(call) == method and not call.args)
    fitting = (call for call in named if not any(each.arg in without for each in call.keywords))
    held = (getattr(call.func, "value", None) for call in fitting if index.function_of(call) is function)
    return ast.dump(node) in (ast.dump(each) for each in held if each is not None)


def has_alternative(use: Use) -> bool:
    """``or`` follows the use or a read of its one name, or that is compared with None."""
    for each in use.index.reads_of(use.node):
        around = use.index.parent(each)
        if isinstance(around, ast.Compare) and isinstance(around.ops[0], (ast.Is, ast.IsNot)):
            return True
        if isinstance(around, ast.BoolOp) and isinstance(around.op, ast.Or) and around.values[-1] is not each:
            return True
    return False


def assigned(use: Use) -> bool:
    """The value is only assigned to a name or an attribute."""
    return isinstance(only_target(use.index.parent(use.node)), (ast.Name, ast.Attribute))


def followed_by(use: Use, member: str) -> bool:
    """A statement of the same block assigns this member of the value's target."""
    statement = use.index.parent(use.node)
    target = only_target(statement)
    if statement is None or target is None:
        return False
    wanted = f"{ast.unparse(target)}.{member}"
    block = (each for each in use.index.block(statement) if isinstance(each, ast.Assign))
    return any(ast.unparse(each) == wanted for assignment in block for each in assignment.targets)


def called_like(use: Use, name: Argument, pattern: Regex, other: Regex) -> bool:
    """The first matching name (target, argument, function) matches the first pattern, not another one."""
    statement = use.index.statement_of(use.node)
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    texts = [use.index.segment(each) for each in (*targets, use.argument(name)) if each is not None]
    texts.append(getattr(use.index.function_of(use.node), "name", ""))
    for text in texts:
        if re.search(pattern, text, re.IGNORECASE):
            return True
        if re.search(other, text, re.IGNORECASE):
            return False
    return False


def runs_under(use: Use, called: str) -> bool:
    """A ``with`` of a call with this name, not turned off, is around the use or calls of its function."""
    waiting, seen = [use.node], set[ast.AST]()
    for node in waiting:  # it grows
        around = [up for up in use.index.above(node) if isinstance(up, (*FUNCTIONS, ast.With, ast.AsyncWith))]
        rows = (getattr(up, "decorator_list", ()) or getattr(up, "items", ()) for up in around)
        every = (getattr(each, "context_expr", each) for row in rows for each in row)
        entered = (each for each in every if isinstance(each, ast.Call))
        nearest = next((each for each in entered if called_name(each) == called), None)
        if nearest is not None and getattr(argument_of(nearest, "enabled"), "value", True) is not False:
            return True
        owners = [up for up in around if isinstance(up, FUNCTIONS) and up not in seen]
        seen.update(owners)
        waiting += (call for each in owners if nearest is None for call in use.index.uses_of(each))
    return False


def file_has(use: Use, *words: str) -> bool:
    """The file's text contains one of these words."""
    return any(word in use.index.text for word in words)


def project_has(use: Use, kind: str) -> bool:
    """A file of the project offers something of a kind, as ``project/offers.py`` calls it."""
    return bool(use.context.project.offers.of(kind))


def project_lacks(use: Use, kind: str) -> bool:
    """No file of the project has an offer of this kind, and all files were read."""
    return use.context.project.files > 0 and not project_has(use, kind)


def is_key(use: Use) -> bool:
    """The string is a dictionary key, for a value other than 0 or None, or is looked up in a dictionary."""
    sink = taken_by(use.index, use.node)
    if isinstance(sink.holder, ast.Dict):
        pairs = zip(sink.holder.keys, sink.holder.values)
        return any(key is use.node and not is_off(value) for key, value in pairs)
    looked_up = called_name(sink.holder) in ("get", "pop", "setdefault") and sink.place == 0
    stored = use.index.parent(sink.holder)
    is_zero = isinstance(stored, ast.Assign) and is_off(stored.value)
    return (sink.kind == "look-up" and not is_zero) or looked_up


def initializes(use: Use, word: str) -> bool:
    """The class with this base has an ``__init__`` that contains this word."""
    owner = use.index.parent(use.node)
    starts = [each for each in getattr(owner, "body", ()) if getattr(each, "name", "") == "__init__"]
    return any(word in use.index.segment(each) for each in starts)


def computed_into(use: Use, *functions: str) -> bool:
    """The value, or a result of it, bounds a 'slice', or is given by place to one of these functions."""
    for child, holder in use.index.way_up(use.node):
        if isinstance(holder, ast.Slice):
            return "slice" in functions
        name = called_name(holder)
        if name not in ("int", "max", "min") and not isinstance(holder, (ast.BinOp, ast.Tuple, ast.List)):
            return isinstance(holder, ast.Call) and child in holder.args and name in functions
    return False


def builds_name(use: Use, pattern: Regex) -> bool:
    """The value, in whose source a regular expression is found, is part of the name of a definition."""
    is_found = re.search(pattern, use.index.segment(use.node)) is not None
    return is_found and bool(together(use.index, use.node).names)


# -- strings


def whole(use: Use) -> bool:
    """The string is exactly the phrase."""
    return string_value(use.node) == use.api


def goes_on(use: Use, pattern: Regex) -> bool:
    """The text after the phrase matches."""
    text = text_of(use.index, use.node) if isinstance(use.node, (ast.Constant, ast.JoinedStr)) else ""
    return re.match(pattern, text.partition(use.api)[2][:LONGEST]) is not None


def compared(use: Use) -> bool:
    """The string is certainly compared, by an operator or a function."""
    sink = behind(use.index, use.node)
    if sink.kind == "argument" and sink.place < 0:
        return sink.name == "match"
    return sink.kind == "compared" or (sink.kind == "argument" and called_name(sink.holder) in _TESTS)


def may_be_compared(use: Use) -> bool:
    """The string may be compared: it is one of several, or assigned to a name that is compared."""
    sink = behind(use.index, use.node)
    if sink.kind != "assigned":
        return sink.kind == "iterated"
    return sink.value is not use.node or any(
        each.kind == "compared" and isinstance(each.value, ast.Name) for each in goes_to(use.index, use.node)
    )


def compared_beside(use: Use, word: str) -> bool:
    """The string is searched for in a value, and another operand of the condition does so with this word."""
    comparison = use.index.parent(use.node)
    condition = use.index.parent(comparison)
    operands = condition.values if isinstance(condition, ast.BoolOp) else ()
    compared = (each for each in operands if isinstance(each, ast.Compare))
    seeking = (each for each in compared if isinstance(each.ops[0], (ast.In, ast.NotIn)))
    sought: dict[ast.AST | None, str] = {each: string_value(each.left) or "" for each in seeking}
    return bool(sought.pop(comparison, "")) and any(word in text for text in sought.values())


def given_to(use: Use, *functions: str) -> bool:
    """The string is passed to a function with one of these last names, also in a list or through a name."""
    sinks = goes_to(use.index, use.node)
    return any(sink.kind == "argument" and called_name(sink.holder) in functions for sink in sinks)


def given_as(use: Use, *names: str) -> bool:
    """The string is the value of an argument, setting or key with one of these names, also conditionally.

    So is the default of such an option or field, and what a name gives to such arguments only, where the file
    has no other string like it, with which it may be compared.
    """
    index, node = use.index, use.index.chosen(use.node)
    sink, kept = taken_by(index, node), {kept_as(index, node)}
    texts = [string_value(each) for each in index.strings]
    if kept.isdisjoint(names) and texts.count(string_value(use.node)) == 1:
        if sink.name == "default" and isinstance(sink.holder, ast.Call):  # add_argument("--optim"), field()
            options = [text for text in map(string_value, sink.holder.args) if text]
            kept |= {kept_as(index, sink.holder), *(text.lstrip("-").replace("-", "_") for text in options)}
        elif sink.kind == "assigned":
            takers = {each.name if each.kind == "argument" else "" for each in goes_to(index, node)}
            kept |= takers if takers.issubset(names) else set()
    return any(name.lstrip("_") in names for name in kept)


def asked_first(use: Use, library: str) -> bool:
    """The program checks for a library before it reaches this code."""
    return is_asked_first(use.index, use.node, library)
