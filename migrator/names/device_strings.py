"""Strings that name a device, a backend or a type of CUDA tensors: by how they look, and by where they go."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from itertools import chain

from migrator.language import N_, _
from migrator.names.conditions import has_npu_branch, knows_npus
from migrator.names.device_context import (
    BESIDE,
    CERTAIN,
    FOREIGN,
    LIKELY,
    NO,
    REPEATED,
    SETTLED,
    UNCLEAR,
    DeviceContext,
    device_context,
    is_searched_pattern,
)
from migrator.names.device_vocabulary import DeviceVocabulary, without_cuda, works_with_foreign
from migrator.names.goes_to import behind, taken_by
from migrator.names.index import ModuleIndex
from migrator.names.made_from import given, made_from, parameter_of
from migrator.names.together import IN, Together, together
from migrator.names.tree import String, Text, bare_name, called_name, elements, is_enum, is_read, string_value

_DEVICE = re.compile(
    r"cuda(?::(?:\d+|%[dsi]|\{[^{}]*\})?|\{\})?\Z|device(?:\(type)?='cuda\b[:\d]*'?(?:, index=\d+)?\)?\Z"
)
_DEVICES = r"(?=.*\bcuda\b)(?:cpu|mps|cuda(?::\d+)?)(?:, ?(?:cpu|mps|cuda(?::\d+)?))+\Z"
# A regular expression for the name of a device.
_DEVICE_PATTERN = r"\^?cuda:?(?:\(?:?(?:\[0-9\]|\\d)[+*]?\)?)?[?$]*\Z"
# A word of one, by itself: no part of a name, a path or an ending.
_CUDA_WORD = r"(?<![\w./-])cuda(?![\w./-])"
_OTHER_TYPE = r"(?<![\w./-])(?:cpu|mps|xpu|dml|hpu|xla|meta|privateuseone)(?![\w./-])"
_OF_FILES = r"\)[_-]|[_-]\(|\\\.|/"  # what stands in patterns of file names
_INDEXED = r"cuda:(\d+|%[dsi]|\{.*\})\Z"
_SEEKS = (ast.In, ast.NotIn)
_BACKEND = re.compile(r"nccl\Z", re.IGNORECASE)
_PAIRS = r"\w+:\w+(?:,\w+:\w+)*\Z"
_SHOWN = 4  # places of other strings that a reason lists
_OF_MEMBERS = ("type", "name", "value")
_TORCH = re.compile("torch(?!_npu)")  # a migration's own import says nothing of the code
_TENSOR_TYPE = re.compile(r"torch\.cuda(?:\.\w*Tensor|\.\w*Storage)\Z")
_PART_OF_TYPE = re.compile(r"(?:torch)?\.cuda\.?\Z|\.?cuda\.(?:\w+Tensor)?\Z")  # what is looked for in one


def written(index: ModuleIndex, node: Text) -> str:
    """A string's text; that of an f-string with ``{}`` for the fields."""
    if isinstance(node, ast.keyword):
        return node.arg or ""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(part.raw if part.expression is None else "{}" for part in index.parts(node))


def is_docstring(index: ModuleIndex, node: Text) -> bool:
    """Whether a string is a statement of its own: nobody reads it."""
    return isinstance(index.parent(node), ast.Expr)


def names_device(index: ModuleIndex, node: Text) -> bool:
    """Whether a string looks like a CUDA device, its beginning, or a pattern for it."""
    text = written(index, node)
    called = ("lower", "casefold") if text.isupper() and _DEVICE.match(text.lower()) else ()
    called = ("split", "rsplit") if "," in text and re.match(_DEVICES, text) else called
    if called:  # "CUDA".lower(), "cuda,cpu".split(",")
        uses = (taken_by(index, each) for each in together(index, node).uses)
        return any(each.kind == "method" and each.name in called for each in uses)
    if _DEVICE.match(text):
        return not isinstance(index.parent(node), ast.JoinedStr)
    is_pattern = "cuda" in text and (re.match(_DEVICE_PATTERN, text) or _lists_devices(text))
    if isinstance(node, ast.keyword) or not is_pattern:
        return False
    call = index.parent(node)
    is_compiled = isinstance(call, ast.Call) and called_name(call) == "compile" and call.args[:1] == [node]
    reads = index.reads_of(call if isinstance(call, ast.Call) and is_compiled else node)
    return any(is_searched_pattern(index, each) for each in reads)


def _lists_devices(text: str) -> bool:
    """Whether a regular expression has ``cuda`` once, as one of several device types: ``(?:cpu|cuda):``."""
    plain = text.replace("\\b", "")
    if text.count("cuda") != 1 or "|" not in text or "npu" in text or re.search(_OF_FILES, text):
        return False
    return re.search(_CUDA_WORD, plain) is not None and re.search(_OTHER_TYPE, plain) is not None


def names_backend(text: str) -> bool:
    """Whether a text is NCCL, or gives each device type its backend."""
    return bool(_BACKEND.match(text)) or names_backends(text)


def names_backends(text: str) -> bool:
    """Whether a text gives each device type its backend: ``cpu:gloo,cuda:nccl``."""
    if not re.match(_PAIRS, text) or not re.search(r":(nccl|gloo|mpi|ucc|xccl)\b", text):
        return False
    return re.search(r"\bcuda\b|\bnccl\b", text, re.IGNORECASE) is not None


def names_tensor_type(text: str) -> bool:
    """Whether a text is the name of a type of CUDA tensors."""
    return bool(_TENSOR_TYPE.match(text))


def is_part_of_tensor_type(text: str) -> bool:
    """Whether a text is what only types of CUDA tensors have in their names."""
    return bool(_PART_OF_TYPE.match(text))


def context_in_class(
    index: ModuleIndex, vocabulary: DeviceVocabulary, node: Text, looks_so: Callable[[Text], bool]
) -> DeviceContext:
    """Where a string goes, and all that are compared, looked up or matched with it: they change together."""
    own = _context_of(index, vocabulary, node)
    if own.by == SETTLED or (own.verdict == CERTAIN and _is_given_to_torch(index, node)):
        return own
    found = together(index, node)
    key = ("class", found, vocabulary)
    judged, first = index.once(key, lambda: _judged(index, vocabulary, found, looks_so))
    if judged.verdict in (CERTAIN, LIKELY):
        asks = behind(index, node).kind == "compared"  # what is chosen may be an NPU from now on
        met = asks and index.once(("meets npus", found), lambda: _meets_npus(index, found))
        if met and not has_npu_branch(index, node):
            reason = _("{reason}, as others that stay: their code has a branch for NPUs", reason=own.reason)
            return DeviceContext(UNCLEAR, reason)
        return own if judged.verdict == own.verdict else judged
    return judged if node is first else own._replace(verdict=NO, by=SETTLED)


def _meets_npus(index: ModuleIndex, found: Together) -> bool:
    """Whether a string of a class, here or in another file, is in code with a branch for NPUs, and stays."""
    here = knows_npus(index.text) and any(has_npu_branch(index, each) for each in found.strings)
    return here or any(each[0] == "npu" for each in _elsewhere(index, found))


def _is_given_to_torch(index: ModuleIndex, node: Text) -> bool:
    """Whether a string stands in a call of torch, which compares it with nothing of the program's."""
    holder = index.parent(node)
    call = index.parent(holder) if isinstance(holder, ast.keyword) else holder
    if not isinstance(call, ast.Call):
        return False
    if index.qualified_name(call.func).startswith("torch."):
        return True
    names = index.once(("names of functions",), lambda: {each.name for each in index.functions})
    return called_name(call) == "to" and "to" not in names


def _judged(
    index: ModuleIndex, vocabulary: DeviceVocabulary, found: Together, looks_so: Callable[[Text], bool]
) -> tuple[DeviceContext, Text | None]:
    """The context of all strings of a class; where none of them changes, one finding at the first."""
    contexts = {each: _context_of(index, vocabulary, each) for each in found.strings if looks_so(each)}
    members = sorted((each for each in contexts if contexts[each].by != SETTLED), key=index.start)
    deciding = _deciding(index, vocabulary, found, {each: contexts[each] for each in members})
    met = _elsewhere(index, found)
    if any(each[1:] for each in met) and not any(each[0] for each in met):
        deciding = None  # the other files, which go by less, would leave their strings
    files = ", ".join(dict.fromkeys(name for name, path in found.files if path[-1:] == (IN,)))
    names = ", ".join(found.names)
    if deciding is not None and not (files or names):
        reason = _("one of several that change together: {reason}", reason=deciding.reason)
        return deciding._replace(reason=reason), None
    first = next((each for each in members if deciding or contexts[each].verdict != NO), None)
    if first is None:
        return DeviceContext(NO, ""), None
    reason = contexts[first].reason
    lines = sorted({each.lineno for each in members} - {first.lineno})
    places = [_("line {number}", number=line) for line in lines]
    places += sorted({place for each in met for place in each[1:]})
    if places:
        reason = _("{reason}; it changes only together with {places}", reason=reason, places=_listed(places))
    if deciding is None:
        return DeviceContext(UNCLEAR, reason), first
    about = {"reason": reason, "files": files, "names": names, "device": deciding.reason}
    kept = N_("{reason}; also a key of {files}, which is left unchanged: {device}")
    if names:
        kept = N_("{reason}; also part of the name {names}, whose definition keeps it: {device}")
    reason = _(kept, **about)
    return DeviceContext(UNCLEAR, reason, by=SETTLED), first


def _context_of(index: ModuleIndex, vocabulary: DeviceVocabulary, node: Text) -> DeviceContext:
    if isinstance(node, ast.keyword):
        return DeviceContext(NO, _("a dictionary's key"))
    context, text = device_context(index, vocabulary, node), written(index, node)
    has_index = re.match(_INDEXED, text) or (text == "cuda:" and isinstance(index.parent(node), ast.BinOp))
    if context.verdict == UNCLEAR and has_index and context.by != FOREIGN:
        return DeviceContext(LIKELY, _("start of a device name"))
    return context


def _deciding(
    index: ModuleIndex, vocabulary: DeviceVocabulary, found: Together, members: dict[Text, DeviceContext]
) -> DeviceContext | None:
    """What says that the strings of a class are devices: a place of one, or a value that one meets."""
    contexts = members.values()
    sure = (each for each in contexts if each.verdict == CERTAIN)
    others = [each for each in (*found.values, *found.uses) if each not in found.strings]
    handed_on = (LIKELY for name in found.parameters if vocabulary.says(name))
    said = min(chain(handed_on, (_said(index, vocabulary, each) for each in others)), default=UNCLEAR)
    if said == LIKELY and any(works_with_foreign(index, vocabulary, each) for each in members):
        said = UNCLEAR
    compared = [DeviceContext(said, _("compared with a device or a backend"))] if said != UNCLEAR else []
    uses = [use for use in found.uses if use not in found.strings]
    taken = (_taken(index, vocabulary, use) for use in uses)
    used = (each._replace(verdict=LIKELY) for each in taken if each.verdict == CERTAIN)
    theirs = (use for use in uses if works_with_foreign(index, vocabulary, use))
    if any(_taken(index, vocabulary, use).by == FOREIGN for use in theirs):
        return next(used, None)  # a device of another library, where nothing gives it to torch
    likely = (each for each in contexts if each.verdict == LIKELY and each.by != BESIDE)
    meeting = (each for each in _elsewhere(index, found) if each[0] == "device")
    files = (_listed(each[1:]) or _("another file") for each in meeting)
    elsewhere = (DeviceContext(LIKELY, _("with a device in {places}", places=each)) for each in files)
    return next(chain(sure, compared, used, likely, elsewhere), None)


def _said(index: ModuleIndex, vocabulary: DeviceVocabulary, node: ast.expr) -> str:
    """How sure an expression is a device by what it is called: a name alone says less than a call."""
    is_backend = called_name(node) == "get_backend"  # which may be cpu:gloo,cuda:nccl
    enum = _enum_of(index, node)
    if enum is not None:
        return LIKELY if vocabulary.says(without_cuda(enum.name)) else UNCLEAR
    is_repeated = bare_name(node).strip("_").lower() in REPEATED
    if is_repeated or not (is_backend or vocabulary.says_device(node) or _is_type(index, vocabulary, node)):
        return UNCLEAR
    return CERTAIN if is_backend or "type" in (called_name(node), bare_name(node)) else LIKELY


def _enum_of(index: ModuleIndex, node: ast.expr) -> ast.ClassDef | None:
    """The class of constants that a member is of, where it is set or read: ``Topic.GPU.value``."""
    member = node.value if isinstance(node, ast.Attribute) and node.attr in _OF_MEMBERS else node
    if isinstance(member, ast.Attribute):
        owner = index.definition(member.value)
    else:
        owner = None if is_read(member) or index.function_of(member) else index.class_of(member)
    return owner if isinstance(owner, ast.ClassDef) and is_enum(owner) else None


def _taken(index: ModuleIndex, vocabulary: DeviceVocabulary, use: ast.expr) -> DeviceContext:
    """Where a value goes that a string may be; each of thousands of strings asks."""
    return index.once(("taken", use, vocabulary), lambda: device_context(index, vocabulary, use, 2))


def _listed(places: Sequence[str]) -> str:
    """The first few places, and how many there are besides."""
    more = [_("{count} more", count=len(places) - _SHOWN)] if len(places) > _SHOWN else []
    return ", ".join([*places[:_SHOWN], *more])


def _elsewhere(index: ModuleIndex, found: Together) -> list[tuple[str, ...]]:
    """The classes of other files that change with one of this file."""
    if index.neighbours is None:
        return []
    return [met for port in found.ports if (met := index.neighbours.met(*port))]


def _is_type(index: ModuleIndex, vocabulary: DeviceVocabulary, node: ast.expr) -> bool:
    """Whether an expression is the type of a device under another name: ``d.type``, ``d.value``."""
    if not isinstance(node, ast.Attribute) or node.attr not in _OF_MEMBERS:
        return False
    made = [*made_from(index, node.value, inside=True)]
    parameters = filter(None, (parameter_of(index, each) for each in made))
    handed = (each for parameter in parameters for each in given(index, parameter))
    plain = (each for each in chain(made, handed) if bare_name(each).strip("_").lower() not in REPEATED)
    return any(map(vocabulary.says_device, plain))


def context_of_device(index: ModuleIndex, vocabulary: DeviceVocabulary, node: Text) -> DeviceContext:
    """Where a string goes that looks like a device."""
    return context_in_class(index, vocabulary, node, lambda each: names_device(index, each))


def context_of_backend(index: ModuleIndex, vocabulary: DeviceVocabulary, node: Text) -> DeviceContext:
    """Where a string goes that looks like a backend."""
    text = written(index, node)
    if names_backends(text):
        return DeviceContext(CERTAIN, _("a backend for each device type"))
    context = context_in_class(index, vocabulary, node, lambda each: names_backend(written(index, each)))
    # In small letters it is hardly ever anything but the backend. In capitals it
    # is also the beginning of the names of NCCL's environment variables.
    named = taken_by(index, node).kind == "value"  # under a key that says what it is
    beside = {string_value(each) for each in elements(index.parent(node))}
    parent = index.parent(node)  # "nccl" in line
    sides = [parent.left] if isinstance(parent, ast.Compare) and isinstance(parent.ops[0], _SEEKS) else []
    likely = text.islower() and not named and "cuda" not in beside and node not in sides
    if context.verdict == UNCLEAR and likely:
        found = together(index, node)
        others = (names_backend(written(index, each)) for each in found.strings if each is not node)
        if any(others) or any(each[1:] for each in _elsewhere(index, found)):
            return context  # one of several changes with the others, or not at all
        # A file that never speaks of torch, as one that installs NCCL, may mean the library.
        return DeviceContext(LIKELY if _TORCH.search(index.text) else UNCLEAR, context.reason)
    return context


def context_of_tensor_type(index: ModuleIndex, vocabulary: DeviceVocabulary, node: String) -> DeviceContext:
    """Where a string goes that is the name of a type of CUDA tensors, or a part of it."""
    is_part = is_part_of_tensor_type(written(index, node))
    looks_so = is_part_of_tensor_type if is_part else names_tensor_type
    context = context_in_class(index, vocabulary, node, lambda each: looks_so(written(index, each)))
    if is_argument_of(index, node, "type"):
        return DeviceContext(CERTAIN, _("the name of a tensor type"))
    if context.verdict in (CERTAIN, LIKELY) or is_docstring(index, node):
        return context
    place = _("the name of a tensor type, in {reason}", reason=context.reason)
    by = (taken_by(index, use) for use in together(index, node).uses) if is_part else ()
    begins = any(each.kind in ("text", "operand") and "Tensor" in index.segment(each.holder) for each in by)
    return DeviceContext(NO if is_part and not begins else LIKELY, place)


def is_argument_of(index: ModuleIndex, node: Text, name: str) -> bool:
    """Whether a string is a positional argument of what has that last name."""
    call = index.parent(node)
    return isinstance(call, ast.Call) and node in call.args and called_name(call) == name
