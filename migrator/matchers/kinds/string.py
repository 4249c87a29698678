"""Kind ``string``: texts that name a device, a backend, a tensor type or an API.

A rule's option ``shape`` says what the text looks like, and ``verdict`` how
sure its place is (see ``migrator.names.device_context``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from itertools import chain
from typing import Any, Callable, Literal, Union

from migrator.api_support import npu_names
from migrator.findings.finding import Edit, Safety
from migrator.language import N_, _
from migrator.light import Frozen
from migrator.matchers.context import FileContext, Match, Said, found
from migrator.matchers.npu_import import import_form
from migrator.matchers.options import EXPRESSION, NEVER, Scalar
from migrator.matchers.packs import Options, Rule
from migrator.names.conditions import has_npu_branch
from migrator.names.device_context import CERTAIN, LIKELY, NO, SETTLED, UNCLEAR, DeviceContext, device_context
from migrator.names.device_strings import (
    context_in_class,
    context_of_backend,
    context_of_device,
    context_of_tensor_type,
    is_argument_of,
    is_part_of_tensor_type,
    names_backend,
    names_backends,
    names_device,
    names_tensor_type,
    written,
)
from migrator.names.device_vocabulary import DeviceVocabulary
from migrator.names.goes_to import behind, taken_by, values_of
from migrator.names.index import ModuleIndex
from migrator.names.qualified import namespace_of
from migrator.names.strings import replace_text
from migrator.names.tree import FUNCTIONS, Text, called_name, elements, holder_of, last_name, string_value
from migrator.names.what_is import CLASS, options_like

_API_NAME = r"(?=\w+(?:\.\w+)*\Z)((?:\w+\.)*)(torch\.cuda(?:\.\w+)*)\Z"
_TYPE_COMMENT = r"#[ \t]*type:(?![ \t]*ignore\b)([^#\n]*\btorch\.cuda\..*)"
_IN_ANNOTATION = r"\btorch\.cuda(?:\.\w+)+"
# What looks a name up: by a call, a keyword or a key. In others it may be no more than a text.
_RESOLVERS = frozenset(
    "import_module importorskip __import__ find_spec resolve_name locate get_class get_method get_object"
    " import_string import_object patch object dict setattr delattr mock_patch"
    " _target_ class_path target".split()
)
_LATER = ("attrgetter", "methodcaller")  # what these give is called with the object
_ATTRIBUTE_CALLS = frozenset({"getattr", "hasattr", "setattr", "delattr", "rgetattr", "object", *_LATER})


class Places(Frozen):
    """The vocabulary of a rule: where device strings and backends go, see docs/rule_format.md.

    ``hints`` and ``backend_hints`` are regular expressions for names that say device, or backend.
    ``foreign_words`` are names that say a device of a library, with the packages of which the project
    imports one.
    """

    apis: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    option_calls: tuple[str, ...] = ()
    hints: tuple[str, ...] = field(default=(), metadata=EXPRESSION)
    backend_hints: tuple[str, ...] = field(default=(), metadata=EXPRESSION)
    foreign: tuple[str, ...] = ()
    foreign_words: dict[str, tuple[str, ...]] = field(default_factory=dict)


class StringOptions(Options):
    """What a text looks like, how sure its place must be, and what is known of places."""

    shape: Literal["device", "backend", "tensor-type", "api-name", "attribute"] = "device"
    verdict: Literal["certain", "likely", "unclear", "no"] = "certain"
    places: Places = Places()


StringRule = Rule[StringOptions]
Rules = list[StringRule]
# A finding; True for a string that is left alone; None where it is not of the shape.
Outcome = Union[Match, bool, None]


def vocabularies(rules: Iterable[Rule[Any]]) -> tuple[DeviceVocabulary, DeviceVocabulary]:
    """What the rule packs know of places: for device strings, and for backends."""
    known = [rule.options.places for rule in rules]

    def listed(name: str) -> list[str]:
        return [word for places in known for word in getattr(places, name)]

    hints = listed("hints")
    device = DeviceVocabulary(
        apis={api: where for places in known for api, where in places.apis.items()},
        keywords=frozenset(listed("keywords")),
        never=frozenset(listed("never")),
        option_calls=frozenset(listed("option_calls")),
        hint=_any_of(hints),
        foreign=frozenset(listed("foreign")),
        foreign_words={word: owners for places in known for word, owners in places.foreign_words.items()},
    )
    return device, replace(device, hint=_any_of(hints + listed("backend_hints")), noun=N_("backend"))


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or NEVER, re.IGNORECASE)


def find(
    context: FileContext, rules: Rules, data: DeviceVocabulary, backend_data: DeviceVocabulary
) -> tuple[list[Match], int]:
    """The findings, and how many device-like texts were judged to be something else."""
    by_shape: dict[str, Rules] = {}
    for rule in rules:
        by_shape.setdefault(rule.options.shape, []).append(rule)
    shown = {rule.code for rule in rules if rule.options.verdict == NO}
    result: list[Match] = []
    left_alone = 0
    data, backend_data = data.in_file(context.index), backend_data.in_file(context.index)
    of_dict = (call for call in context.index.calls if called_name(call) == "dict")
    keys = (keyword for call in of_dict for keyword in call.keywords)
    names = dict.fromkeys(name for rule in rules for name in rule.match)
    for node in chain[Text](context.index.strings, keys):
        text = written(context.index, node)
        held = {name for name in names if name in text}
        for shape, several in by_shape.items() if held else ():
            chosen = [rule for rule in several if not held.isdisjoint(rule.match)]
            places = backend_data if shape == "backend" else data
            outcome = _SHAPES[shape](context, chosen, places, node) if chosen else None
            if outcome is not None:
                result += [outcome] if isinstance(outcome, Match) else []
                left_alone += not isinstance(outcome, Match) or outcome.finding.code in shown
                break
    result += (each for rule in by_shape.get("api-name", ()) for each in _type_comments(context, rule))
    return result, left_alone


def _with_verdict(rules: Rules, verdict: str) -> StringRule | None:
    return next((rule for rule in rules if rule.options.verdict == verdict), None)


def _placed(
    context: FileContext, rules: Rules, node: Text, where: DeviceContext, edits: list[Edit]
) -> Outcome:
    """A finding for a string that goes there; True where it is left alone, and nobody asked to see it."""
    rule = _with_verdict(rules, where.verdict)
    if rule is None:
        return True if where.verdict == NO else None
    value = written(context.index, node)
    changes = edits if where.verdict in (CERTAIN, LIKELY) else []
    message = rule.message or "{value}: {place}"
    message = message.replace("{value}", repr(value)).replace("{place}", where.reason)
    # What NPUs meet and nobody changes stops the program there.
    severity = "warning" if where.verdict == UNCLEAR and where.by == SETTLED else ""
    return found(context, rule, node, api=value, edits=changes, message=message, severity=severity)


def _device(context: FileContext, rules: Rules, vocabulary: DeviceVocabulary, node: Text) -> Outcome:
    index = context.index
    if not names_device(index, node):
        return None
    if _attribute_of(index, node) is not None:
        return True  # another shape judges it
    where = context_of_device(index, vocabulary, node)
    if where.verdict == UNCLEAR and _names_own_method(context, node):
        where = DeviceContext(LIKELY, _("the name of the renamed method"))
    old, new = ("cuda", "npu") if "cuda" in written(index, node) else ("CUDA", "NPU")
    count = 0 if "," in written(context.index, node) else 1
    edits = _for_both(index, node) if where.api == "map_location" else []
    return _placed(context, rules, node, where, edits or replace_text(index, node, old, new, count))


def _for_both(index: ModuleIndex, node: Text) -> list[Edit]:
    """The edit that puts an NPU's key beside one of ``map_location``: checkpoints come from both devices.

    None where it is a value, or no dictionary is written out.
    """
    for inside, up in index.way_up(node):
        value = values_of(index, up).get(inside) if isinstance(up, ast.Dict) else None
        if value is not None:
            key, end = index.segment(inside).replace("cuda", "npu", 1), index.span(value)[1]
            return [Edit(end, end, f", {key}: {index.segment(value)}")]
        if isinstance(up, ast.stmt):
            break
    return []


def _names_own_method(context: FileContext, node: Text) -> bool:
    """Whether ``def cuda(self): return self._apply("cuda")`` names the method that moves."""
    function = context.index.function_of(node)
    owner = context.index.class_of(node)
    if function is None or owner is None or function.name not in ("cuda", "npu"):
        return False
    facts = context.project.named(owner.name)
    return facts is not None and context.project.related(facts)


def _attribute_of(index: ModuleIndex, node: ast.AST) -> ast.expr | None:
    """The object of which a text names an attribute: ``getattr(x, "cuda")``, ``vars(x)["cuda"]``.

    Of ``attrgetter("cuda")``, which is told later, it is the call. None where the text is something else.
    """
    around = index.parent(node)
    held = around.value if isinstance(around, ast.Subscript) and around.slice is node else None
    if isinstance(around, ast.Call) and called_name(around) == "get" and around.args[:1] == [node]:
        held = holder_of(around)
    if held is not None:  # other objects hold settings, as often as not
        owner = namespace_of(held)
        return owner if owner is not None and _is_torch(index, owner) else None
    if isinstance(around, ast.Call) and called_name(around) in _ATTRIBUTE_CALLS:
        if called_name(around) in _LATER:
            call = index.call_of(around)
            return call.args[0] if call is not None and call.args else around
        if around.args[1:2] == [node]:
            known = isinstance(around.func, ast.Name) or _is_torch(index, around.args[0])
            return around.args[0] if known else None
    name = around.targets[0] if isinstance(around, ast.Assign) and around.value is node else None
    if not isinstance(name, ast.Name) or len(index.bindings(name)) != 1:
        return None
    objects = [_attribute_of(index, use) for use in index.uses_of(name)]
    return objects[0] if objects and None not in objects else None


def _is_torch(index: ModuleIndex, node: ast.expr) -> bool:
    """Whether ``monkeypatch.setattr`` and ``mock.patch.object`` are given something of torch's."""
    return index.qualified_name(node).partition(".")[0] == "torch"


def _backend(context: FileContext, rules: Rules, vocabulary: DeviceVocabulary, node: Text) -> Outcome:
    index = context.index
    text = written(index, node)
    if not names_backend(text):
        return None
    if names_backends(text):
        edits = replace_text(index, node, "cuda", "npu") + replace_text(index, node, "nccl", "hccl")
    else:
        edits = replace_text(index, node, text, ("h" if text[0] == "n" else "H") + text[1:], 1)
    return _placed(context, rules, node, context_of_backend(index, vocabulary, node), edits)


def _tensor_type(context: FileContext, rules: Rules, vocabulary: DeviceVocabulary, node: Text) -> Outcome:
    index = context.index
    text = written(index, node)
    is_part = is_part_of_tensor_type(text)
    if not isinstance(node, ast.Constant) or not (is_part or names_tensor_type(text)):
        return None
    if is_argument_of(index, node, "set_default_tensor_type"):
        return True  # it has a rule of its own
    known = npu_names.look_up("torch.cuda" if is_part else text, context.version)
    if known is None or not known.npu:
        rule = _with_verdict(rules, UNCLEAR) or rules[0]
        return _without_form(context, rule, node, _("{text!r} has no NPU equivalent", text=text), "absent")
    where = context_of_tensor_type(index, vocabulary, node)
    return _placed(context, rules, node, where, replace_text(index, node, "cuda", "npu", 1))


def _without_form(context: FileContext, rule: StringRule, node: Text, message: str, status: str) -> Match:
    """The message for a CUDA name in a string without an NPU equivalent."""
    api = written(context.index, node)
    known = npu_names.look_up(api[api.rindex("torch.cuda") :], context.version)
    advice = known.advice if known else ""
    about: Said = {"api": api, "severity": "error", "message": message, "advice": advice}
    return found(context, rule, node, status=status, **about)


def _api_name(context: FileContext, rules: Rules, vocabulary: DeviceVocabulary, node: Text) -> Outcome:
    """``"torch.cuda.is_available"`` where a name is patched or looked up, a module imported, or annotated."""
    index, value, match = context.index, written(context.index, node), None
    if not isinstance(node, ast.Constant):
        return None
    annotates = _is_annotation(index, node)
    names = re.findall(_IN_ANNOTATION, value) if annotates else []
    if not annotates and (match := re.match(_API_NAME, value)):
        names = [match[2]]
    by = taken_by(index, node)
    holders = (by.holder, getattr(by.holder, "func", by.holder))
    held = (each for holder in holders for each in ast.iter_child_nodes(holder))
    in_modules = any(index.qualified_name(each) == "sys.modules" for each in held)
    resolves = not _RESOLVERS.isdisjoint((by.name, called_name(by.holder)))
    is_looked_up = annotates or in_modules or (resolves and by.kind in ("argument", "value"))
    if not names:
        return None
    if not is_looked_up:  # it may be more than a text if it is compared with nothing, and no message
        is_full = value.count(".") > 1 and value.startswith("torch.") and not names_tensor_type(value)
        if not is_full or by.kind == "compared" or device_context(index, vocabulary, node).verdict == NO:
            return None
    known = {name: npu_names.look_up(name, context.version) for name in names}
    new, says = value, partial(found, context, rules[0], node, api=value)
    for name, form in known.items():
        if form is None or not form.npu:
            message = _("{value} has no NPU equivalent, and this string holds its name", value=name)
            return _without_form(context, rules[0], node, message, "absent" if form else "unknown")
        new = new.replace(name, form.npu)
        if match and not match[1]:  # behind a module's own name the attribute is patched
            new = import_form(form.npu)
    if not is_looked_up:
        message = _("a string holds the name {value}, and the program may look it up", value=value)
        advice = _("If it is looked up, write {new}.", new=new)
        return says(message=message, advice=advice, severity="warning")
    message = _("on NPUs the name {value} in a string is {new}", value=value, new=new)
    edits = replace_text(index, node, value, new)
    return says(edits=edits, message=message, needs_npu=None if annotates or in_modules else False)


def _type_comments(context: FileContext, rule: StringRule) -> Iterator[Match]:
    """Names in comments that are annotations: ``# type: (torch.cuda.FloatTensor) -> int``."""
    index, lines = context.index, [*re.finditer(_TYPE_COMMENT, context.index.text)]
    with suppress(SyntaxError):  # such a comment may stand where it is none
        every = ast.walk(ast.parse(index.text, type_comments=True)) if lines else ()
        known = {getattr(node, "type_comment", None) for node in every}
        for line in lines:
            for name in re.finditer(_IN_ANNOTATION, line[1]) if line[1].strip() in known else ():
                form = npu_names.look_up(name[0], context.version)
                start = len(index.text[: line.start(1) + name.start()].encode("utf-8"))
                edits = [Edit(start, start + len(name[0]), form.npu)] if form and form.npu else []
                message = _("the name {value} stands in a type comment", value=name[0])
                about: Said = {"api": name[0], "edits": edits, "severity": "info", "message": message}
                place, at = (start, start + len(name[0])), index.line_of(start)
                before = (
                    each for each in reversed(index.statements) if getattr(each, "lineno", at + 1) <= at
                )
                yield found(context, rule, next(before), span=place, needs_npu=False, **about)


def _is_annotation(index: ModuleIndex, node: ast.AST) -> bool:
    """Whether a string is an annotation, or a part of one: ``Optional["torch.cuda.Event"]``."""
    around = index.parent(node)
    if isinstance(around, (*FUNCTIONS, ast.AnnAssign)):
        return node in (getattr(around, "returns", None), getattr(around, "annotation", None))
    if isinstance(around, ast.Subscript) and last_name(around.value) == "Literal":
        return False
    if called_name(around) == "cast" and isinstance(around, ast.Call):
        return around.args[:1] == [node]
    if isinstance(around, (ast.Subscript, ast.Tuple, ast.BinOp)):
        return _is_annotation(index, around)
    return isinstance(around, ast.arg)


def _attribute(context: FileContext, rules: Rules, vocabulary: DeviceVocabulary, node: Text) -> Outcome:
    """``getattr(torch, "cuda")``, ``hasattr(batch, "is_cuda")``, ``attrgetter("cuda.is_available")``."""
    value = written(context.index, node)
    if not isinstance(node, ast.Constant) or not any(value.partition(".")[0] in rule.match for rule in rules):
        return None
    new = value.replace("cuda", "npu", 1)
    index, project = context.index, context.project
    holder = _attribute_of(index, node)
    if holder is None:
        return _split_name(context, rules, node, value)
    qualified = index.qualified_name(holder)
    is_certain = qualified == "torch" and value.partition(".")[0] == "cuda"
    if is_certain and "." in value:
        known = npu_names.look_up(f"torch.{value}", context.version)
        new = known.npu.partition(".")[2] if known and known.npu.startswith("torch.") else ""
    is_others = qualified and not qualified.startswith("torch.")
    is_others = is_others or qualified in ("torch.version", "torch.backends", "torch._C")
    own = project.stores(value) or project.defines_elsewhere(value)
    if not is_certain and (is_others or own or options_like(holder) or _is_plain(context, holder)):
        return True
    rule = _with_verdict(rules, CERTAIN if is_certain else LIKELY)
    if rule is None:
        return None
    edits, message = list[Edit](), _("torch.{value} has no NPU equivalent", value=value)
    if new:
        edits = replace_text(index, node, value, new, 1)
        message = _("on NPUs the attribute name in this string is {new!r}", new=new)
    return found(context, rule, node, api=value, edits=edits, message=message)


def _is_plain(context: FileContext, holder: ast.expr) -> bool:
    """Whether something is an object of a class of the file that has no bases, and moves no tensors."""
    value = context.value(holder)
    owners = [each for each in context.index.classes if value.kind == CLASS and each.name == value.name]
    facts = context.project.named(value.name) if owners else None
    return bool(owners) and not (owners[-1].bases or (facts and context.project.related(facts)))


def _split_name(context: FileContext, rules: Rules, node: ast.Constant, value: str) -> Outcome:
    """``reduce(getattr, "cuda.is_available".split("."), torch)``: whose attribute it is, is not followed."""
    is_split = "." in value and getattr(context.index.parent(node), "attr", "") == "split"
    known = npu_names.look_up(f"torch.{value}", context.version) if is_split else None
    rule = _with_verdict(rules, LIKELY)
    if known is None or not known.npu or rule is None:
        return None
    message = _("torch.{value} in a split string is left unchanged", value=value)
    advice = _("Write {npu}.", npu=known.npu[len("torch.") :])
    return found(context, rule, node, api=value, message=message, advice=advice)


_SHAPES: dict[str, Callable[[FileContext, Rules, DeviceVocabulary, Text], Outcome]] = {
    "attribute": _attribute,
    "tensor-type": _tensor_type,
    "api-name": _api_name,
    "device": _device,
    "backend": _backend,
}


class MovedOptions(Options):
    """``values``: what is written instead of each string that goes to one of the ``places``."""

    values: dict[str, str] = field(default_factory=dict)
    places: Places = Places()


def find_moved(context: FileContext, rule: Rule[MovedOptions]) -> Iterator[Match]:
    """The strings that a rule has another one for; none in code that has a case of its own for NPUs."""
    index, values = context.index, rule.options.values
    cases = (str, str.lower, str.upper)
    by_case = {case: {case(old): case(new) for old, new in values.items()} for case in cases}
    every = {text for texts in by_case.values() for text in texts}
    vocabulary, _backends = vocabularies([rule])
    for node in index.strings:
        # As what it is compared with is written, by a call of ``lower()`` or ``upper()``.
        sink, text = behind(index, node), string_value(node) or ""
        called = {*map(called_name, ast.iter_child_nodes(sink.holder))} if sink.kind == "compared" else set()
        case = next((case for case in (str.lower, str.upper) if case.__name__ in called), str)
        new = by_case[case].get(text)
        if new is None or new in map(string_value, elements(index.parent(node))):  # it is a choice already
            continue
        where = context_in_class(index, vocabulary, node, lambda each: string_value(each) in every)
        if where.verdict in (CERTAIN, LIKELY) and not has_npu_branch(index, node):
            edits = replace_text(index, node, text, new, 1)
            safety: Safety = "safe" if where.api and where.verdict == CERTAIN else "unsafe"
            yield found(context, rule, node, api=text, edits=edits, safety=safety)
