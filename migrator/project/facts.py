"""What one Python file tells the others: classes with CUDA-like members, extension modules, what it offers.

Most is read from the text: a tree is made only for what needs one, where the text has the words for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from typing import Callable, Optional

from migrator.light import Frozen, NamedTuple
from migrator.names.conditions import flags, has_npu_branch, knows_npus
from migrator.names.device_strings import written
from migrator.names.goes_to import behind
from migrator.names.index import ModuleIndex, parsed
from migrator.names.made_from import made_from, made_with, reduced, returned_values
from migrator.names.outline import outline
from migrator.names.qualified import OF_ANY
from migrator.names.together import IN, together
from migrator.names.tree import FUNCTIONS, bare_name, called_name, string_value, targets_of, walk
from migrator.names.written_names import imported_names
from migrator.project import offers
from migrator.project.extensions import MAY_BUILD, Extension, scan_extensions
from migrator.project.frameworks import other_framework
from migrator.project.module_names import absolute_name, import_pattern, module_name
from migrator.project.offers import Offer
from migrator.project.saved_objects import SAVING, saved_objects

_MEMBERS = ("cuda", "is_cuda")
# A class of a file may have a member with a CUDA name.
# From a plain beginning a search is many times as fast as from a choice of them, or from "^": so patterns for
# lines begin with the end of the one before, which is put before a text, too (``_File.lined``).
_MAY_DEFINE = re.compile(
    r"cuda\b(?:(?<=def[ \t]cuda)|(?<=def[ \t]is_cuda)"
    r"|(?:(?<=[.\s]cuda)|(?<=[.\s]is_cuda))\s*(?:=[^=]|:))"
)
# What in a class's body shows that its ``cuda`` moves tensors.
_MOVES_TENSORS = r"\.(?:cuda|npu|to|is_cuda|is_npu)\b|\btorch\b"
# Patterns of rare words are compiled where a text has these.
# torch.jit.script(…) and what stands in it; as a decorator it concerns the function below it alone.
_SCRIPTED = (
    r"jit\.script(?<![@\w]jit\.script)(?<!@torch\.jit\.script)(?:_if_tracing)?\(\s*(?:(?:obj|fn)=)?([\w.]+)?"
)
_SCRIPT_IMPORT = r"from\s+torch\.jit\s+import\b[^\n]{0,200}\bscript\b"
_BARE_SCRIPTED = r"(?<![@\w.])script\(\s*([\w.]+)?"
# Everything but dotted names and what opens a call's arguments, as blanks.
_BUT_CALLS = bytes(
    each if each > 127 or chr(each).isalnum() or chr(each) in "_.(" else 32 for each in range(256)
)
_GIVEN = re.compile(r"script\((?<!\wscript\()\s*([\w.]+)")
# The device that becomes the current one, where a name or an attribute says which.
_SET_DEVICE = r"\bcuda\.set_device\(\s*(?:device\s*=\s*)?(?:([\w.]+)\s*\))?"
_REDUCING = frozenset(
    {"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor", "all_reduce_coalesced"}
)
_COLLECTIVE = (*(f"{word}(" for word in _REDUCING - {"reduce"}), *("dist.reduce(", "distributed.reduce("))
# Functions at the top of a file, with their lines, and a collective in them.
_FUNCTION = re.compile(r"\ndef[ \t]+(\w+)\([^\n]*(?:\n[ \t)][^\n]*|\n(?=\n))*")
_WAITS = re.compile(
    r"\.(?:(?<=\bdist\.)|(?<=\bdistributed\.)|(?<=\bc10d\.))"
    r"(?:barrier|all_reduce|broadcast|all_gather|reduce|\w{9,10}_object(?:_list)?)\("
)
# What chooses the current device: calls, and the context of ``with torch.cuda.device(rank):``.
_CHOOSING = ("set_device(", "set_device_idx(", "set_device_index(", "cuda.device(", "npu.device(")
_DOUBLE = ("torch.double", "torch.float64", ".double()")
# With "torch" where only a torch without torch.amp.GradScaler takes it.
_SCALER = (
    r"\b(?:(torch)\.amp\b.*GradScaler.*\n[ \t]*(?:except|else)\b.*(?:\n[ \t]+.*\bcuda\.amp\b.*)+"
    r"|(?:cuda|npu|apex)(?:\.amp\b(?!\.autocast|[ \t]+import[ \t]+autocast[ \t]*\n)"
    r"|[ \t]+import[ \t]+[^#\n]{0,80}\bamp\b))"
)
# In the call, or in a dictionary for it some lines above.
_BINDS = (
    r"process_group\([^()]{0,200}(?:\([^()]{0,200}\)[^()]{0,200}){0,4}\bdevice_id[ ]*=()"
    r"|[\"']device_id[\"'](?:\][ ]*=|[ ]*:)[^\n]*(?:\n[^\n]*){0,6}process_group"
)
_GPU_KEY = r"[\"'](?:GPU|num_gpus)[\"'] *[:\]]()|[(,] *GPU=|\bdict\([^()\n]*\bnum_gpus="
_CUDA_DEFAULT = r"\bset_default_tensor_type\([^()]{0,200}\btorch\.cuda\.()"
# What a member or an item is read for a device or a backend, at the places that are known without a tree.
_READ = re.compile(
    r"\s*\w+(?:\(\))?(?:\.\w+|\[[\"']\w+[\"']\]){0,8}?"
    r"(?:\.get\([\"'](\w+)[\"']|\.(\w+)\b(?![\w.(\[])|\[[\"'](\w+)[\"']\](?![.(\[]))"
)
_DEVICE_READ = {
    "torch.device(": r"torch\.device\(",
    ".to(": r"\.to\(",
    "map_location": r"map_location\s*=",
    "device": r"device ?=(?!=)",
    "init_process_group(": r"init_process_group\(",
    "backend": r"backend ?=(?!=)",
}
# Functions and methods, up to the first parenthesis of a default.
_DEFINED = re.compile(r"def[ \t]+(\w+)\(([^()]*)")
_INSIDE_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_DEVICE_PARAMETERS = frozenset({"device", "dev", "device_type", "device_name", "backend"})
# What says nothing of a configuration, and names that say device or backend by themselves.
_COMMON_KEYS = frozenset("device backend dtype type name value param mode target data weight x y".split())
# What shows the strings and values of a class that reaches other files, and its words.
_SHOWING_DEVICES = (
    *("cuda", "nccl", ".type", "get_backend", ".CUDA", ".GPU"),
    *(f"{name}{behind}" for name in ("device", "backend") for behind in (" in ", " not in ", "]")),
)
# Where one may meet those of other files: a key, a comparison, a call, a value with a name, a look-up.
_MEETING = re.compile(
    r"(?:[{,]|^)\s*[\"'](?:cuda|nccl)(?::\d+)?[\"'] *:|[\"'](?:cuda|nccl)[\"'](?:\]| +(?:in\b|[!=]=))"
    r"|(?<!type )(?<!backend )(?<!_backend\(\) )(?:[!=]=|\bin) *[(\[{]?[\"'](?:cuda|nccl)\b"
    r"|\b(?!device|to|init|autocast|Generator|GradScaler)\w+\([\"'](?:cuda|nccl)[\"']"
    r"|^[ \t]*\w+(?:: ?\w+)? *= *(?:[\"'].[\"']\.join)?[\[({]*[\"'](?:cuda|nccl)\b"
    r"|^[ \t]*(?:async +)?def .*= ?[\"'](?:cuda|nccl)[\"']|(?:[!=]= *|\[|\()[\w.]+\.(?:CUDA|GPU)\b"
    r"|(?<!for )(?<!torch\.)\b\w*(?:device|backend)(?: (?:not )?in (?!self\b)\w|\])"
    r"|\bdev\w*\.type +(?:[!=]=|(?:not )?in) +\w|[!=]= *(?:\w+\.)*\w*dev\w*\.type\b"
    r"|(?:choices|args)=.*[\"'](?:cuda|nccl)"
    r"|[\"']--(?![\w-]*(?:backend|device))[\w-]+[\"'],.*\bdefault=[\"'](?:cuda|nccl)\b"
    r"|[\[(](?:\w+\.)*\w*dev\w*(?:\([^()\n]*\))?\.type\b|[\[(][\w.]*get_backend\(|\bdict\([^()\n]*\b(?:cuda|nccl)=",
    re.MULTILINE,
)
_DEVICE_TEXT = re.compile(r"(?:cuda(?::\d*)?|nccl)\Z")
_OF_TORCH = re.compile(
    r"(?:^|[._(])dev(?:ice)?\w*(?:\([^()]*\))?(?:\.type)?\)?$|\bget_backend\("
    r"|^(?:to|map_location|\w*backend|init_process_group|autocast|Generator|GradScaler)$",
    re.IGNORECASE,
)
# A class that is moved by a cuda() or to() that Lightning defines.
_LIGHTNING = r"\n[ \t]*class[ \t]+(\w+)[ \t]*\([^()\n]{0,200}\bLightningModule\b"
# The packages with a meaning of their own for a word of devices (foreign_words of rule NPU121), those for
# which a rule may add a module to the result, one that computes without torch, and some that compute with it.
LIBRARIES = (
    *("pytorch_lightning", "lightning_fabric", "lightning", "apex", "horovod"),
    *("pynvml", "py3nvml", "nvidia_smi", "fairscale.nn.model_parallel", "flash_attn", "xformers"),
    *("torch_scatter", "causal_conv1d", "mamba_ssm"),
    *("cupy", "torchvision", "transformers", "diffusers", "accelerate", "ultralytics", "timm"),
)
_LIBRARIES = import_pattern(LIBRARIES)
# Questions for names of torch, and for its release, each with the word that a text then has.
_ASKS = {
    "attr(": r"attr\((?:(?<=\bhasattr\()|(?<=\bgetattr\())\s*(?:torch|F|nn)\b",
    "__version__": r"torch\.(?:version\.)?__version__",
    **{word: rf"{word}\w{{0,40}}\(\s*[\"']" for word in ("find_spec", "avail", "install", "Requirement")},
}
# Names under which other files may take torch, torch.cuda or apex.amp from this one.
_NAMED_MODULES = (
    r"\n(?:try:[^\n]*\n[ \t]+)?import[ \t]+(torch(?:\.cuda)?)[ \t]+as[ \t]+(\w+)",
    r"\n(?:try:[^\n]*\n[ \t]+)?from[ \t]+torch[ \t]+import[ \t]+(cuda)\b(?:[ \t]+as[ \t]+(\w+))?",
    r"(?m)\n(?=\w+[ \t]*=[ \t]*(torch(?:\.cuda)?)[ \t]*(?:#|$))(\w+)",
    r"\n[ \t]*from[ \t]+apex[ \t]+import[ \t]+(?:\w+,[ \t]*){0,8}(amp)\b(?:[ \t]+as[ \t]+(\w+))?",
)
_FULL_NAMES = {"cuda": "torch.cuda", "amp": "apex.amp"}
# Words of which a text holds one where the pattern fits: to look for these takes a tenth of the time.
_SHOWN_BY = (("torch as", "cuda as"), ("import cuda",), ("= torch", "=torch"), ("from apex",))


class ClassFacts(NamedTuple):
    """A class of the project that defines, or stores, a member with a CUDA name."""

    file: str
    name: str
    bases: tuple[str, ...]
    methods: frozenset[str]
    stored: frozenset[str]
    moves_tensors: bool


class FileFacts(NamedTuple):
    """What one Python file tells the others."""

    classes: tuple[ClassFacts, ...] = ()
    extensions: tuple[Extension, ...] = ()
    offers: frozenset[Offer] = frozenset()


def scan_file(name: str, text: str) -> FileFacts:
    """What a Python file has to tell the others.

    Never raises: a file that cannot be parsed has nothing to tell.
    """
    file = _File(name, text)
    shown = [(kind, pattern) for kind, (words, pattern) in _WRITTEN.items() if _has(text, words)]
    found = {Offer(kind, name) for kind, pattern in shown for name in re.findall(pattern, file.lined)}
    offered = frozenset(found).union(*(scan(file) for words, scan in _SCANS if _has(text, words)))
    defines, builds = "cuda" in text and _MAY_DEFINE.search(text) is not None, _has(text, MAY_BUILD)
    if not defines and not builds:
        return FileFacts(offers=offered)
    try:
        classes = outline(text).classes
        extensions = scan_extensions(name, file.index) if builds and file.index is not None else ()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return FileFacts()
    every = [_class_facts(name, text, node) for node in classes if defines]
    return FileFacts(tuple(each for each in every if each.methods or each.stored), extensions, offered)


def _class_facts(file: str, text: str, node: ast.ClassDef) -> ClassFacts:
    methods: set[str] = set()
    stored: set[str] = set()
    moves = False
    for item in node.body:
        if isinstance(item, FUNCTIONS) and item.name in _MEMBERS:
            moves_here = bool(re.search(_MOVES_TENSORS, ast.get_source_segment(text, item) or ""))
            is_property = any(bare_name(d).endswith("property") for d in item.decorator_list)
            # A property is read like a value; whether it is about tensors, its body says.
            (stored if is_property and not moves_here else methods).add(item.name)
            moves = moves or moves_here
        stored.update(t.id for t in targets_of(item) if isinstance(t, ast.Name) and t.id in _MEMBERS)
    for inner in walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and inner.attr in _MEMBERS:
            stored.add(inner.attr)
    bases = tuple(map(ast.unparse, node.bases))
    return ClassFacts(file, node.name, bases, frozenset(methods), frozenset(stored), moves)


class _File(Frozen):
    """A Python file, by its name in the project."""

    name: str
    text: str

    @cached_property
    def lined(self) -> str:
        """The text behind a line's end, with one kind of those."""
        return "\n" + self.text.replace("\r\n", "\n").replace("\r", "\n")

    @cached_property
    def index(self) -> Optional[ModuleIndex]:
        """The file's index, for all that needs one; None where it cannot be parsed."""
        return parsed(self.text, {"double", "float64", "type", *_REDUCING, *_SHOWING_DEVICES})

    def full(self, name: str) -> str:
        """The full name of a definition at the top of the file."""
        return f"{module_name(self.name)}.{name}"


def _has(text: str, words: Iterable[str]) -> bool:
    return any(map(text.__contains__, words))


def _modules(file: _File) -> Iterator[Offer]:
    """``th`` for ``import torch as th``, ``cuda`` for ``from torch import cuda``, and what they stand for."""
    patterns = [pattern for pattern, words in zip(_NAMED_MODULES, _SHOWN_BY) if _has(file.text, words)]
    named = (found for pattern in patterns for found in re.findall(pattern, file.lined))
    modules = {name or module: _FULL_NAMES.get(module, module) for module, name in named}
    for name, module in modules.items():
        if name != "torch":
            yield Offer(offers.MODULE, file.full(name), detail=(module,))


def _framework(file: _File) -> Iterator[Offer]:
    framework = other_framework(file.text)
    if framework:
        yield Offer(offers.FOREIGN, file.name.rpartition("/")[2], detail=(framework,))


def _flags(file: _File) -> Iterator[Offer]:
    """The names at the top that hold or give an answer, and of what."""
    asks = any(word in file.text and re.search(pattern, file.text) for word, pattern in _ASKS.items())
    for name, asked in flags(file.index) if asks and file.index is not None else ():
        yield Offer(offers.FLAG, file.full(name), detail=tuple(sorted(asked)))


def _takers(file: _File) -> Iterator[Offer]:
    """The functions, methods and classes of which an argument is a device by its name, and its place."""
    text = file.lined
    for found in _DEFINED.finditer(text):
        function, given, at = found[1], found[2], found.start()
        before = text[text.rindex("\n", 0, at) + 1 : at]
        if before.strip() not in ("", "async") or not ("dev" in given or "backend" in given):
            continue
        indent = before[:1].isspace()
        given = _INSIDE_BRACKETS.sub("", given)
        names = [re.split("[:=]", each, maxsplit=1)[0].strip() for each in given.split(",")]
        if indent and names.pop(0) not in ("self", "cls"):
            continue
        place = next((place for place, each in enumerate(names) if each in _DEVICE_PARAMETERS), None)
        if place is not None and not any(each.startswith("*") for each in names[:place]):
            is_method = indent and function != "__init__"
            owner = "".join(re.findall(r"\A\nclass[ \t]+(\w+)", text[text.rfind("\nclass", 0, at) : at]))
            name = OF_ANY + function if is_method else file.full(owner if indent else function)
            yield Offer(offers.TAKER, name, place)


def _reducers(file: _File) -> Iterator[Offer]:
    if not _has(file.text, _COLLECTIVE) or not _names_distributed(file.text):
        return
    outside = [part for part in re.split(r"\n(?=\S)", file.lined) if part[:6] != "class "]
    if not _has("\n".join(outside), _COLLECTIVE) or file.index is None:
        return
    for each in reduced(file.index, is_reducing)[1]:
        if isinstance(file.index.parent(each.function), ast.Module):
            yield Offer(offers.REDUCER, each.function.name, each.place, (each.name,))


def _waits(file: _File) -> Iterator[Offer]:
    """A barrier of torch.distributed, and functions at the top that call a collective, choosing no device."""
    if not _names_distributed(file.text):
        return
    if re.search(r"barrier\((?<=\bbarrier\()", file.text):  # none of gloo's monitored_barrier
        yield Offer(offers.WAITS)
    for function in _FUNCTION.finditer(file.lined) if _WAITS.search(file.text) else ():
        if "set_device" not in function[0] and _WAITS.search(function[0]):
            yield Offer(offers.WAITER, file.full(function[1]))


def _names_distributed(text: str) -> bool:
    """Whether a text may name torch.distributed: a library's own ``dist.all_reduce`` is none of torch's."""
    if _has(text, (".distributed", '"distributed', "'distributed")):
        return True
    return "distributed" in text and "from torch import" in text


def _device_keys(file: _File) -> Iterator[Offer]:
    text, begins = file.text, (begin for word, begin in _DEVICE_READ.items() if word in file.text)
    read = (_READ.match(text, each.end()) for begin in begins for each in re.finditer(begin, text))
    found = {key.lower() for each in read if each for key in each.groups() if key}
    return (Offer(offers.DEVICE_KEY, key) for key in found - _COMMON_KEYS)


def _meeting(file: _File) -> Iterator[Offer]:
    """The classes of strings that reach other files, and whether they meet devices or backends there."""
    # It takes a hundred times as long in all lines.
    text, shown = f"{file.lined}\n", map(re.escape, _SHOWING_DEVICES)
    begins = {text.rfind("\n", 0, each.start()) + 1 for word in shown for each in re.finditer(word, text)}
    lines = (text[begin : text.index("\n", begin)] for begin in begins)
    index = file.index if any(map(_MEETING.search, lines)) else None
    if index is None:
        return
    tables = (each for each in index.calls if called_name(each) == "dict")
    keys = [key for each in tables for key in each.keywords if key.arg in ("cuda", "nccl")]
    starts = [*keys, *(each for each in index.strings if _DEVICE_TEXT.match(string_value(each) or ""))]
    types = (node for node in index.refs if isinstance(node, ast.Attribute) and node.attr == "type")
    members = [*index.members("CUDA"), *index.members("GPU")]
    asked = (each for each in index.calls if called_name(each) == "get_backend")
    classes = {
        id(found): (start, found)
        for start in (*starts, *members, *types, *asked)
        for found in [together(index, start)]
    }
    known = knows_npus(file.text)
    for start, found in classes.values():
        strings = [each for each in found.strings if _DEVICE_TEXT.match(written(index, each))]
        places = [f"{file.name}:{line}" for line in sorted({each.lineno for each in strings})]
        values = (index.segment(each) for each in found.values)
        takers = (behind(index, each, ("text", "operand")) for each in found.uses)
        names = (each.name or called_name(each.holder) for each in takers if each.kind == "argument")
        indexed = (":" in written(index, each) for each in strings)
        meets = any(map(_OF_TORCH.search, chain(values, names))) or any(indexed)
        for name, path in found.files if meets else ():
            if path[-1:] == (IN,):
                yield Offer(offers.KEYS, name, detail=(f"{file.name}:{start.lineno}",))
            elif path:
                yield Offer(offers.VALUES, name, detail=(path[-1].rpartition(" ")[2].strip("'"),))
        if strings or meets or start in members:  # which join classes of other files
            first = min((*strings, start), key=index.start)
            key = f"{file.name}:{first.lineno}:{first.col_offset}"
            settled = known and any(has_npu_branch(index, each) for each in strings)
            found_there = "npu" if settled else "device" if meets else ""
            for own, name in found.ports:
                kind, full = offers.MEETS if own else offers.MEETS_OTHERS, file.full(name)
                full = full if own else absolute_name(name, file.name)
                yield Offer(kind, full, detail=(key, found_there, *places))


def _doubles(file: _File) -> Iterator[Offer]:
    """The functions that give a tensor of float64, and the attributes of classes that hold one."""
    index = file.index
    if index is None:
        return
    for function in index.functions:
        values = returned_values(index, function) if isinstance(index.parent(function), ast.Module) else []
        if any(isinstance(value, (ast.Tuple, ast.Dict, ast.List)) for value in values):
            continue  # which part it is, is not followed
        if any(_is_double(index, value) for value in values):
            yield Offer(offers.DOUBLE, function.name)
    for owner in index.classes:
        for name, values in index.stored_on_self(owner).items():
            if any(_is_double(index, value) for value in values):
                yield Offer(offers.DOUBLE_ATTRIBUTE, name, detail=(owner.name,))


def _is_double(index: ModuleIndex, value: ast.expr) -> bool:
    doubles = ("torch.float64", "torch.double")
    return any(made_with(index, source, doubles) for source in made_from(index, value, inside=True))


def is_reducing(name: str) -> bool:
    """Whether a qualified name is that of a collective that reduces."""
    return name.startswith("torch.distributed.") and name.rpartition(".")[2] in _REDUCING


def _scripts(file: _File) -> Iterator[Offer]:
    """A call that gives torch.jit.script something else than a function of the same file."""
    text = file.text
    names: list[str] = re.findall(_SCRIPTED, text) if "jit.script" in text else []
    imported = "torch.jit" in text and re.search(_SCRIPT_IMPORT, text)
    names += re.findall(_BARE_SCRIPTED, text) if imported else ()
    if not all(name and re.search(rf"\bdef {re.escape(name)}\(", text) for name in names):
        yield Offer(offers.SCRIPTS_MODULES)


def _called(file: _File) -> Iterator[Offer]:
    """What a file with a ``forward()`` calls of other files, or one with torch.jit.script, and which it is.

    What is called in such a file is taken for compiled: to see what ``forward`` reaches would need a tree.
    """
    text = file.text
    why = offers.SCRIPT if "jit.script" in text else offers.FORWARD
    scripted = set(_GIVEN.findall(text))
    called = _called_members(text)
    for bound, full in imported_names(text):
        members = called.get(bound, set())
        if bound in scripted and (why == offers.SCRIPT or members or f"{bound}." in text):
            members = {"", *members}
        lower = {member for member in members if (member or bound)[:1].islower()}
        name = absolute_name(full, file.name) if lower and not full.startswith("torch") else ""
        for member in lower if name else ():
            yield Offer(offers.CALLED, f"{name}.{member}" if member else name, detail=(why,))


def _called_members(text: str) -> dict[str, set[str]]:
    """The members that a text calls of each name; an empty one where it calls the name itself."""
    found: dict[str, set[str]] = {}
    data = text.encode("utf-8", "surrogatepass").translate(_BUT_CALLS).replace(b"(", b"( ")
    for each in [each for each in set(data.split()) if each.endswith(b"(")]:
        name, _, member = each[:-1].decode("utf-8", "surrogatepass").partition(".")
        if "." not in member:
            found.setdefault(name, set()).add(member)
    return found


# By its kind what a text alone says: words of which the text has one, and an expression that gives the name.
_WRITTEN: dict[str, tuple[Iterable[str], str]] = {
    offers.LIGHTNING: (("LightningModule",), _LIGHTNING),
    offers.CUDA_DEFAULT: (("set_default_tensor_type",), _CUDA_DEFAULT),
    offers.SET_DEVICE: (("set_device(",), _SET_DEVICE),
    offers.LIBRARY: (LIBRARIES, _LIBRARIES),
    offers.SCALES: (("GradScaler", "apex"), _SCALER),
    offers.CHOOSES: (_CHOOSING, r"\A()"),
    offers.BINDS: (("device_id",), _BINDS),
    offers.LOCAL_RANK: (("local_rank",), r"(?<![-\w])local_rank()"),
    offers.GPU_KEYS: (("GPU", "num_gpus"), _GPU_KEY),
}
# What needs more than that, with words of which a text then has one.
_SCANS: tuple[tuple[Iterable[str], Callable[[_File], Iterable[Offer]]], ...] = (
    (("import", "torch"), _modules),
    (("import",), _framework),
    (tuple(_ASKS), _flags),
    (("device", "backend", "dev"), _takers),
    (("reduce",), _reducers),
    (("distributed",), _waits),
    (("torch",), _device_keys),
    (_SHOWING_DEVICES, _meeting),
    (_DOUBLE, _doubles),
    (SAVING, lambda file: saved_objects(file.text)),
    (("script",), _scripts),
    (("jit.script", "def forward("), _called),
)
