"""Kind ``string``: texts that name a device, a backend, a tensor type or an API.

A rule's option ``shape`` says what the text looks like, and ``verdict`` how
sure its place is (see ``migrator.names.device_context``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Literal

from migrator.api_support import npu_names
from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.moved_imports import import_form
from migrator.matchers.options import Options, Scalar
from migrator.matchers.packs import Rule
from migrator.names.device_context import CERTAIN, LIKELY, NO, UNCLEAR, Place, is_pattern, judge
from migrator.names.hints import PlaceData, called_name
from migrator.names.index import ModuleIndex
from migrator.names.strings import pieces, replace_text
from migrator.names.values import options_like

_DEVICE = re.compile(r"cuda(?::(?:\d+|%[dsi]|\{[^{}]*\})?)?\Z")
# A regular expression for the name of a device.
_DEVICE_PATTERN = re.compile(r"\^?cuda:?(?:\(?:?(?:\[0-9\]|\\d)[+*]?\)?)?[?$]*\Z")
_BACKEND = re.compile(r"nccl\Z", re.IGNORECASE)
_COMPOUND = re.compile(r"\w+:\w+(?:,\w+:\w+)*\Z")
_TENSOR_TYPE = re.compile(r"torch\.cuda(?:\.\w*Tensor|\.\w*Storage)\Z")
_API_NAME = re.compile(r"((?:\w+\.)*)(torch\.cuda(?:\.\w+)*)\Z")
_IMPORTERS = frozenset({"import_module", "importorskip", "__import__", "find_spec", "resolve_name"})
_PATCHERS = frozenset({"patch", "object", "dict", "setattr", "delattr", "mock_patch", "resolve_name"})
_ATTRIBUTE_CALLS = frozenset({"getattr", "hasattr", "setattr", "delattr", "rgetattr", "attrgetter"})


@dataclass(frozen=True)
class Places:
    """The vocabulary of a rule: where device strings and backends go, see docs/rule_format.md.

    ``hints`` and ``backend_hints`` are regular expressions for names that say device, or backend.
    """

    apis: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    keywords: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    option_calls: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    backend_hints: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()


@dataclass(frozen=True)
class StringOptions(Options):
    """What a text looks like, how sure its place must be, and what is known of places.

    ``keyword`` is the one whose value a ``text`` must be.
    """

    shape: Literal["device", "backend", "tensor-type", "api-name", "attribute", "text"] = "text"
    verdict: Literal["certain", "likely", "unclear"] = "certain"
    keyword: str = ""
    places: Places = Places()


StringRule = Rule[StringOptions]
Rules = list[StringRule]


def place_data(rules: Iterable[StringRule]) -> tuple[PlaceData, PlaceData]:
    """What the rule packs know of places: for device strings, and for backends."""
    known = [rule.options.places for rule in rules]

    def words(wanted: Callable[[Places], tuple[str, ...]]) -> frozenset[str]:
        return frozenset(word for places in known for word in wanted(places))

    hints = [hint for places in known for hint in places.hints]
    device = PlaceData(
        apis={api: where for places in known for api, where in places.apis.items()},
        keywords=words(lambda places: places.keywords),
        never=words(lambda places: places.never),
        option_calls=words(lambda places: places.option_calls),
        hint=_any_of(hints),
        foreign=words(lambda places: places.foreign),
    )
    more = [hint for places in known for hint in places.backend_hints]
    return device, replace(device, hint=_any_of(hints + more))


def _any_of(patterns: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns) or r"(?!)", re.IGNORECASE)


def find(
    context: FileContext, rules: Rules, data: PlaceData, backend_data: PlaceData
) -> tuple[list[Match], int]:
    """The findings, and how many device-like texts were judged to be something else."""
    by_shape: dict[str, Rules] = {}
    for rule in rules:
        by_shape.setdefault(rule.options.shape, []).append(rule)
    result: list[Match] = []
    left_alone = 0
    for node in context.index.strings:
        for shape, chosen in by_shape.items():
            places = backend_data if shape == "backend" else data
            outcome = _SHAPES[shape](context, chosen, places, node)
            if outcome is None:
                continue
            if isinstance(outcome, Match):
                result.append(outcome)
            else:
                left_alone += 1
            break
    return result, left_alone


def _value(index: ModuleIndex, node: Any) -> str:
    """A literal's value; for an f-string its text with ``{}`` for the fields."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    parts = index.parts(node)
    return "".join(part.raw if part.expression is None else "{}" for part in parts)


def _with_verdict(rules: Rules, verdict: str) -> StringRule | None:
    return next((rule for rule in rules if rule.options.verdict == verdict), None)


def _placed(
    context: FileContext,
    rules: Rules,
    node: Any,
    place: Place,
    edits: Callable[[], list[Edit]],
    value: str,
) -> Match | bool | None:
    """A finding for what stands at a place; True where it is left alone."""
    if place.verdict == NO:
        return True
    rule = _with_verdict(rules, place.verdict)
    if rule is None:
        return None
    changes = edits() if place.verdict in (CERTAIN, LIKELY) else []
    message = rule.message or "{value}: {place}"
    message = message.replace("{value}", repr(value)).replace("{place}", place.reason)
    return found(
        context,
        rule,
        node,
        api=value,
        edits=changes,
        message=message,
    )


def _device(context: FileContext, rules: Rules, data: PlaceData, node: Any) -> Match | bool | None:
    value = _value(context.index, node)
    index = context.index
    if not _DEVICE.match(value) and not (_DEVICE_PATTERN.match(value) and is_pattern(index, node)):
        return None
    joined = isinstance(node, ast.JoinedStr)
    if joined and not (pieces(index, node) and pieces(index, node)[0].raw.startswith("cuda")):
        return None
    if isinstance(node, ast.Constant) and _is_format_piece(index, node):
        return None
    if _is_attribute_name(index, node):
        return True
    place = judge(index, data, node)
    strong = value != "cuda"
    if place.verdict == UNCLEAR and _names_own_method(context, node):
        place = Place(LIKELY, "the name of the method that is renamed")
    if place.verdict == UNCLEAR and strong and _index_follows(index, node, value):
        place = Place(LIKELY, "the beginning of a device's name")
    return _placed(context, rules, node, place, lambda: replace_text(index, node, "cuda", "npu", 1), value)


def _names_own_method(context: FileContext, node: Any) -> bool:
    """Whether ``def cuda(self): return self._apply("cuda")`` names the method that moves."""
    function = context.index.function_of(node)
    owner = context.index.class_of(node)
    if function is None or owner is None or function.name not in ("cuda", "npu"):
        return False
    facts = context.project.named(owner.name)
    return facts is not None and context.project.related(facts)


def _is_format_piece(index: ModuleIndex, node: Any) -> bool:
    return isinstance(index.parent(node), ast.JoinedStr)


def _index_follows(index: ModuleIndex, node: Any, value: str) -> bool:
    """Whether a text such as ``cuda:`` is completed to a device with an index."""
    return bool(re.match(r"cuda:(\d+|%[dsi]|\{.*\})\Z", value)) or (
        value == "cuda:" and isinstance(index.parent(node), ast.BinOp)
    )


def _is_attribute_name(index: ModuleIndex, node: Any) -> bool:
    """Whether a text is the name in getattr(x, "cuda"), which another shape judges."""
    call = index.parent(node)
    if isinstance(call, ast.Call) and node in call.args[:2] and isinstance(call.func, ast.Name):
        return call.func.id in _ATTRIBUTE_CALLS and call.args.index(node) == 1
    return False


def _backend(context: FileContext, rules: Rules, data: PlaceData, node: Any) -> Match | bool | None:
    value = _value(context.index, node)
    index = context.index
    if _COMPOUND.match(value) and re.search(r"\bcuda\b|\bnccl\b", value, re.IGNORECASE):
        if not re.search(r":(nccl|gloo|mpi|ucc|xccl)\b", value):
            return None
        edits = replace_text(index, node, "cuda", "npu") + replace_text(index, node, "nccl", "hccl")
        return _placed(
            context, rules, node, Place(CERTAIN, "a backend for each device type"), lambda: edits, value
        )
    if not _BACKEND.match(value):
        return None
    place = judge(index, data, node)
    # In small letters it is hardly ever anything but the backend. In capitals it
    # is also the beginning of the names of NCCL's environment variables.
    if place.verdict == UNCLEAR and value.islower() and not _searched_for(index, node):
        place = Place(LIKELY, place.reason)
    new = value.replace("n", "h", 1) if value[0] == "n" else "H" + value[1:]
    return _placed(context, rules, node, place, lambda: replace_text(index, node, value, new, 1), value)


def _searched_for(index: ModuleIndex, node: Any) -> bool:
    """Whether a text is looked for inside another one: ``"nccl" in line``."""
    parent = index.parent(node)
    return (
        isinstance(parent, ast.Compare)
        and node is parent.left
        and isinstance(parent.ops[0], (ast.In, ast.NotIn))
    )


def _tensor_type(context: FileContext, rules: Rules, data: PlaceData, node: Any) -> Match | bool | None:
    value = _value(context.index, node)
    if not isinstance(node, ast.Constant) or not _TENSOR_TYPE.match(value):
        return None
    if _is_call_argument(context.index, node, {"set_default_tensor_type"}):
        return True  # it has a rule of its own
    known = npu_names.look_up(value, context.version)
    if known is None or not known.npu:
        rule = _with_verdict(rules, UNCLEAR) or rules[0]
        return found(
            context,
            rule,
            node,
            api=value,
            status="absent",
            severity="error",
            message=f"{value!r} has no NPU form",
            advice=known.advice if known else "",
        )
    place = judge(context.index, data, node)
    if _is_call_argument(context.index, node, {"type"}) or _compared_with_type(context.index, node):
        place = Place(CERTAIN, "the name of a tensor type")
    elif place.verdict in (UNCLEAR, NO) and not isinstance(context.index.parent(node), ast.Expr):
        place = Place(LIKELY, f"the name of a tensor type, in {place.reason}")
    return _placed(
        context, rules, node, place, lambda: replace_text(context.index, node, "cuda", "npu", 1), value
    )


def _is_call_argument(index: ModuleIndex, node: Any, names: set[str]) -> bool:
    call = index.parent(node)
    if not isinstance(call, ast.Call) or node not in call.args:
        return False
    return called_name(call) in names


def _compared_with_type(index: ModuleIndex, node: Any) -> bool:
    """Whether a text is compared with ``x.type()``, by itself or in a list."""
    parent = index.parent(node)
    while isinstance(parent, (ast.Tuple, ast.List, ast.Set)):
        parent = index.parent(parent)
    if not isinstance(parent, ast.Compare):
        return False
    operands = [parent.left, *parent.comparators]
    return any(isinstance(operand, ast.Call) and called_name(operand) == "type" for operand in operands)


def _api_name(context: FileContext, rules: Rules, data: PlaceData, node: Any) -> Match | bool | None:
    """``"torch.cuda.is_available"`` where a name is patched or a module is imported."""
    value = _value(context.index, node)
    match = _API_NAME.match(value)
    if not isinstance(node, ast.Constant) or match is None:
        return None
    call: Any = context.index.parent(node)
    if isinstance(call, ast.keyword) and call.arg in ("target", "name"):
        call = context.index.parent(call)
    elif not isinstance(call, ast.Call) or node not in call.args:
        return None
    called = called_name(call)
    if called not in _IMPORTERS and called not in _PATCHERS:
        return None
    rule = rules[0]
    prefix, api = match.groups()
    known = npu_names.look_up(api, context.version)
    if known is None or not known.npu:
        return found(
            context,
            rule,
            node,
            api=value,
            status="absent" if known else "unknown",
            severity="error",
            message=f"{value} has no NPU form, and its name stands in a text here",
            advice=known.advice if known else "",
        )
    # Behind a module's own name the attribute is patched, otherwise the module is imported.
    new = prefix + known.npu if prefix else import_form(known.npu)
    return found(
        context,
        rule,
        node,
        api=value,
        edits=replace_text(context.index, node, value, new),
        message=f"the name {value} in a text is {new} on an NPU",
        needs_npu=False,
    )


def _attribute(context: FileContext, rules: Rules, data: PlaceData, node: Any) -> Match | bool | None:
    """``getattr(torch, "cuda")``, ``hasattr(batch, "is_cuda")``."""
    value = _value(context.index, node)
    if not isinstance(node, ast.Constant) or not any(value in rule.match for rule in rules):
        return None
    new = value.replace("cuda", "npu")
    index = context.index
    call = index.parent(node)
    if not isinstance(call, ast.Call) or not call.args[1:2] or call.args[1] is not node:
        return None
    if not isinstance(call.func, ast.Name) or call.func.id not in _ATTRIBUTE_CALLS:
        return None
    holder = call.args[0]
    qualified = index.qualified_name(holder)
    if qualified == "torch" and value == "cuda":
        rule = _with_verdict(rules, CERTAIN)
    elif qualified in ("torch.version", "torch.backends", "torch._C"):
        return True
    elif qualified and not qualified.startswith("torch."):
        return True
    elif options_like(holder) or context.project.stores(value) or context.project.defines_elsewhere(value):
        return True
    else:
        rule = _with_verdict(rules, LIKELY)
    if rule is None:
        return None
    return found(
        context,
        rule,
        node,
        api=value,
        edits=replace_text(index, node, value, new, 1),
        message=f"the name of an attribute in a text: {new!r} on an NPU",
    )


def _text(context: FileContext, rules: Rules, data: PlaceData, node: Any) -> Match | bool | None:
    """A text that is exactly what a rule's ``match`` says."""
    value = _value(context.index, node)
    for rule in rules:
        keyword = rule.options.keyword
        if keyword and getattr(context.index.parent(node), "arg", "") != keyword:
            continue
        if value in rule.match and isinstance(node, ast.Constant) and not _is_docstring(context.index, node):
            edits = replace_text(context.index, node, value, rule.replace) if rule.replace else []
            return found(
                context,
                rule,
                node,
                api=value,
                edits=edits,
                needs_npu=False,
            )
    return None


def _is_docstring(index: ModuleIndex, node: Any) -> bool:
    return isinstance(index.parent(node), ast.Expr)


_SHAPES: dict[str, Callable[[FileContext, Rules, PlaceData, Any], Any]] = {
    "attribute": _attribute,
    "tensor-type": _tensor_type,
    "api-name": _api_name,
    "device": _device,
    "backend": _backend,
    "text": _text,
}
