"""What a file says that matters to the whole program: mostly its text, a tree only for what reduces."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from migrator.names.flow import made_with, reduced, returned_values, sources
from migrator.names.guards import flags
from migrator.names.index import ModuleIndex, parsed
from migrator.names.tree import Function
from migrator.names.written_names import imported_names
from migrator.project.frameworks import other_framework
from migrator.project.module_names import absolute_name, module_name
from migrator.project.saved_objects import scan_saved

# Patterns of rare words are compiled where a text has these.
# torch.jit.script(…) and what stands in it; as a decorator it concerns the function below it alone.
# From a plain beginning a search is many times as fast as from a choice.
_SCRIPTED = (
    r"jit\.script(?<![@\w]jit\.script)(?<!@torch\.jit\.script)(?:_if_tracing)?\(\s*(?:(?:obj|fn)=)?([\w.]+)?"
)
_SCRIPT_IMPORT = r"from\s+torch\.jit\s+import\b[^\n]{0,200}\bscript\b"
_BARE_SCRIPTED = r"(?<![@\w.])script\(\s*([\w.]+)?"
# Why TorchScript may compile what a file calls, and how it is called.
SCRIPT, FORWARD = "script", "forward"
_BEFORE = re.compile(r"[\w.]")
_BEHIND = re.compile(r"(?:\.([^\W\d]\w*))?\(")
_GIVEN = re.compile(r"\bscript\(\s*([\w.]+)")
# The device that becomes the current one, where a name or an attribute says which.
_SET_DEVICE = re.compile(r"\bcuda\.set_device\(\s*(?:device\s*=\s*)?(?:([\w.]+)\s*\))?")
_REDUCING = frozenset(
    {"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor", "all_reduce_coalesced"}
)
_COLLECTIVE = re.compile(
    r"\b(?:all_reduce|all_reduce_coalesced|reduce_scatter|reduce_scatter_tensor|dist\w*\.reduce)\("
)
# Functions at the top of a file, with their lines, and a collective in them.
_FUNCTION = re.compile(r"^def[ \t]+(\w+)\([^\n]*\n(?:[ \t)][^\n]*\n|[ \t]*\n)*", re.MULTILINE)
_WAITS = re.compile(
    r"\b(?:dist|distributed|c10d)\.(?:barrier|all_reduce|broadcast|all_gather|reduce|\w{9,10}_object(?:_list)?)\("
)
# What chooses the current device: calls, and the context of ``with torch.cuda.device(rank):``.
_CHOOSING = ("set_device(", "set_device_idx(", "set_device_index(", "cuda.device(", "npu.device(")
_DOUBLE = re.compile(r"\btorch\.(?:double|float64)\b|\.double\(\)")
_SCALER = re.compile(r"\b(?:cuda|npu|apex)(?:\.amp\b|[ \t]+import[ \t]+[^#\n]{0,80}\bamp\b)")
_CUDA_DEFAULT = r"\bset_default_tensor_type\([^()]{0,200}\btorch\.cuda\."
# What a member or an item is read for a device or a backend, at the places that are known without a tree.
_READ = (
    r"\s*\w+(?:\.\w+|\[[\"']\w+[\"']\]){0,8}?"
    r"(?:\.get\([\"'](\w+)[\"']|\.(\w+)\b(?![\w.(\[])|\[[\"'](\w+)[\"']\](?![.(\[]))"
)
_DEVICE_READ = tuple(
    re.compile(begins + _READ)
    for begins in (
        *(r"torch\.device\(", r"\.to\(", r"map_location\s*=", r"device ?=(?!=)"),
        *(r"init_process_group\(", r"backend ?=(?!=)"),
    )
)
# Functions at the top of a file and what makes a class's objects, up to the first parenthesis of a default.
_DEFINED = re.compile(
    r"^(?:class[ \t]+(\w+)|[ \t]+def[ \t]+__init__\(([^()]*)|(?:async[ \t]+)?def[ \t]+(\w+)\(([^()]*))", re.M
)
_INSIDE_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_DEVICE_PARAMETERS = frozenset({"device", "dev", "device_type", "device_name", "backend"})
# What says nothing of a configuration, and names that say device or backend by themselves.
_COMMON_KEYS = frozenset("device backend dtype type name value mode target data weight x y".split())
# A class that is moved by a cuda() or to() that Lightning defines.
_LIGHTNING = r"(?m)^[ \t]*class[ \t]+(\w+)[ \t]*\([^()\n]{0,200}\bLightningModule\b"
# The packages that have a meaning of their own for a word of devices: foreign_words of rule NPU121.
_LIBRARIES = re.compile(
    r"^[ \t]*(?:from|import)[ \t]+(pytorch_lightning|lightning_fabric|lightning)\b", re.MULTILINE
)
# Questions for names of torch, and for its release, each with the word that a text then has.
_ASKS = {
    "attr(": r"attr\((?:(?<=\bhasattr\()|(?<=\bgetattr\())\s*(?:torch|F|nn)\b",
    "__version__": r"torch\.(?:version\.)?__version__",
    **{word: rf"{word}\w{{0,40}}\(\s*[\"']" for word in ("find_spec", "avail", "install", "Requirement")},
}
# Names under which other files may take torch, torch.cuda or apex.amp from this one.
_NAMED_MODULES = (
    r"(?m)^(?:try:[^\n]*\n[ \t]+)?import[ \t]+(torch(?:\.cuda)?)[ \t]+as[ \t]+(\w+)",
    r"(?m)^(?:try:[^\n]*\n[ \t]+)?from[ \t]+torch[ \t]+import[ \t]+(cuda)\b(?:[ \t]+as[ \t]+(\w+))?",
    r"(?m)^(?=\w+[ \t]*=[ \t]*(torch(?:\.cuda)?)[ \t]*(?:#|$))(\w+)",
    r"(?m)^[ \t]*from[ \t]+apex[ \t]+import[ \t]+(?:\w+,[ \t]*){0,8}(amp)\b(?:[ \t]+as[ \t]+(\w+))?",
)
_FULL_NAMES = {"cuda": "torch.cuda", "amp": "apex.amp"}
# Words of which a text holds one where the pattern fits: to look for these takes a tenth of the time.
_SHOWN_BY = (("torch as", "cuda as"), ("import cuda",), ("= torch", "=torch"), ("from apex",))


class ProgramFacts(NamedTuple):
    """What one file, or all of them, do to others.

    ``scripts_modules``: torch.jit.script is called with something else than a function of the same file, so
    methods of modules are compiled. ``cuda_default``: a CUDA type becomes the default type of tensors.
    ``lightning``: the classes that derive from LightningModule. ``set_devices``: what torch.cuda.set_device
    is given, as it is written; empty where that is more than a name. ``reducers``: the functions that reduce
    a parameter over the ranks, each with the parameter's place and name, as ``mean:0:x``; ``doubles``: those
    that give a tensor of float64. ``saved``: what its files hold that ``weights_only`` does not read.
    ``modules``: what stands for torch, torch.cuda or apex.amp in a file, as ``acme.th=torch``.
    ``device_keys``: the members and items, in lower case, that go into a device or are a backend.
    ``foreign``: the files of another framework than PyTorch, as ``train.py:tensorflow``.
    ``flags``: what names hold or give an answer, and of what, as ``acme.config.HAS_SDPA=version``;
    ``called``: the functions of other files that modules, or files with torch.jit.script, call:
    ``acme.gate=forward``; ``double_attributes``: where classes keep a tensor of float64: ``Meter.count``;
    ``takers``: the functions and classes that take a device, and its place, as ``acme.run.evaluate=2``;
    ``libraries``: the packages that it imports in which a word of devices has a meaning of its own;
    ``waiters``: the functions that call a collective, and choose no device: ``acme.comm.synchronize``;
    ``scales``: a GradScaler of torch.cuda or torch.npu, which is no torch.amp.GradScaler, is there, or
    apex.amp, which becomes one; ``waits``: a file calls torch.distributed.barrier; ``chooses``: a file
    chooses the current device.
    """

    scripts_modules: bool = False
    cuda_default: bool = False
    lightning: frozenset[str] = frozenset()
    set_devices: frozenset[str] = frozenset()
    reducers: frozenset[str] = frozenset()
    doubles: frozenset[str] = frozenset()
    saved: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    device_keys: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    double_attributes: frozenset[str] = frozenset()
    takers: frozenset[str] = frozenset()
    libraries: frozenset[str] = frozenset()
    waiters: frozenset[str] = frozenset()
    scales: bool = False
    waits: bool = False
    chooses: bool = False


NOTHING = ProgramFacts()


def scan_program(name: str, text: str) -> ProgramFacts:
    """What the text of a Python file, with its name in the project, says of the program."""
    lightning = frozenset(re.findall(_LIGHTNING, text)) if "LightningModule" in text else frozenset[str]()
    default = "set_default_tensor_type" in text and re.search(_CUDA_DEFAULT, text) is not None
    scripts = "script" in text and any(_is_no_function(name, text) for name in _scripted(text))
    set_devices = frozenset(_SET_DEVICE.findall(text)) if "set_device(" in text else frozenset[str]()
    (doubles, kept), reducers, saved = _doubles(text), _reducers(text), scan_saved(text)
    module = module_name(name)
    modules = frozenset(f"{module}.{each}" for each in _named_modules(text))
    framework = other_framework(text)
    foreign = frozenset({f"{name.rpartition('/')[2]}:{framework}"} if framework else ())
    flags = frozenset(f"{module}.{each}" for each in _flags(text))
    called = frozenset(_called(name, text))
    takers = frozenset(f"{module}.{each}" for each in _takers(text))
    libraries = frozenset(_LIBRARIES.findall(text)) if "lightning" in text else frozenset[str]()
    waiters = frozenset(f"{module}.{each}" for each in _waiters(text))
    return ProgramFacts(
        *(scripts, default, lightning, set_devices, reducers, doubles, saved, modules),
        *(_device_keys(text), foreign, flags, called, kept, takers, libraries, waiters),
        _has(text, ("GradScaler", "apex")) and _SCALER.search(text) is not None,
        "barrier(" in text and "distributed" in text and _names_distributed(text),
        _has(text, _CHOOSING),
    )


def merged(parts: Iterable[ProgramFacts]) -> ProgramFacts:
    """What all files together say."""
    known = [part for part in parts if part != NOTHING]
    return ProgramFacts(*(_together(said) for said in zip(*known)))


def _together(said: Sequence[Any]) -> Any:
    return any(said) if isinstance(said[0], bool) else frozenset[str]().union(*said)


def _named_modules(text: str) -> set[str]:
    """``th=torch`` for ``import torch as th``, ``cuda=torch.cuda`` for ``from torch import cuda``."""
    patterns = [pattern for pattern, words in zip(_NAMED_MODULES, _SHOWN_BY) if _has(text, words)]
    named = (found for pattern in patterns for found in re.findall(pattern, text))
    modules = {name or module: _FULL_NAMES.get(module, module) for module, name in named}
    return {f"{name}={module}" for name, module in modules.items() if name != "torch"}


def _flags(text: str) -> Iterator[str]:
    """``HAS_SDPA=scaled_dot_product_attention`` for each name at the top that holds or gives an answer."""
    asks = any(word in text and re.search(pattern, text) for word, pattern in _ASKS.items())
    index = parsed(text, ()) if asks else None
    for name, asked in flags(index) if index is not None else ():
        yield f"{name}={' '.join(sorted(asked))}"


def _takers(text: str) -> Iterator[str]:
    """``evaluate=2`` for each function, or class, whose third argument is a device by its name."""
    owner = ""
    for made in _DEFINED.finditer(text) if _has(text, ("device", "backend", "dev")) else ():
        if made[1]:
            owner = made[1]
            continue
        written = _INSIDE_BRACKETS.sub("", made[2] or made[4] or "")
        names = [re.split("[:=]", each, maxsplit=1)[0].strip() for each in written.split(",")]
        if made[3] is None:
            names = names[1:]  # without self
        place = next((place for place, each in enumerate(names) if each in _DEVICE_PARAMETERS), None)
        if place is not None and not any(each.startswith("*") for each in names[:place]):
            yield f"{made[3] or owner}={place}"


def _reducers(text: str) -> frozenset[str]:
    if "reduce" not in text or not _names_distributed(text) or not _COLLECTIVE.search(text):
        return frozenset()
    index = parsed(text, _REDUCING)
    if index is None:
        return frozenset()
    _, handed_in = reduced(index, is_reducing)
    plain = (each for each in handed_in if isinstance(index.parent(each.function), ast.Module))
    return frozenset(f"{each.function.name}:{each.place}:{each.name}" for each in plain)


def _waiters(text: str) -> Iterator[str]:
    if "distributed" not in text or not _names_distributed(text) or not _WAITS.search(text):
        return
    for function in _FUNCTION.finditer(text):
        if "set_device" not in function[0] and _WAITS.search(function[0]):
            yield function[1]


def _names_distributed(text: str) -> bool:
    """Whether a text may name torch.distributed: a library's own ``dist.all_reduce`` is none of torch's."""
    if _has(text, (".distributed", '"distributed', "'distributed")):
        return True
    return "distributed" in text and "from torch import" in text


def _device_keys(text: str) -> frozenset[str]:
    if "torch" not in text:
        return frozenset()
    found = (key.lower() for each in _DEVICE_READ for keys in each.findall(text) for key in keys if key)
    return frozenset(found) - _COMMON_KEYS


def _doubles(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The functions that give a tensor of float64, and the attributes of classes that hold one."""
    holds = _has(text, ("double", "float64")) and _DOUBLE.search(text)
    index = parsed(text, ("double", "float64")) if holds else None
    if index is None:
        return frozenset(), frozenset()
    given = frozenset(
        function.name
        for function in index.functions
        if isinstance(index.parent(function), ast.Module) and _gives_double(index, function)
    )
    kept = frozenset(
        f"{owner.name}.{name}"
        for owner in index.classes
        for name, values in index.stored_on_self(owner).items()
        if any(_is_double(index, value) for value in values)
    )
    return given, kept


def _has(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


def _gives_double(index: ModuleIndex, function: Function) -> bool:
    values = returned_values(index, function)
    if any(isinstance(value, (ast.Tuple, ast.Dict, ast.List)) for value in values):
        return False  # which part it is, is not followed
    return any(_is_double(index, value) for value in values)


def _is_double(index: ModuleIndex, value: ast.expr) -> bool:
    doubles = ("torch.float64", "torch.double")
    return any(made_with(index, source, doubles) for source in sources(index, value))


def is_reducing(name: str) -> bool:
    """Whether a qualified name is that of a collective that reduces."""
    return name.startswith("torch.distributed.") and name.rpartition(".")[2] in _REDUCING


def _scripted(text: str) -> list[str]:
    """What is given to torch.jit.script by a call, as far as it is a name."""
    found: list[str] = re.findall(_SCRIPTED, text) if "jit.script" in text else []
    imported = "torch.jit" in text and re.search(_SCRIPT_IMPORT, text)
    return [*found, *(re.findall(_BARE_SCRIPTED, text) if imported else ())]


def _is_no_function(name: str, text: str) -> bool:
    return not re.search(rf"\bdef {re.escape(name)}\(", text) if name else True


def _called(file: str, text: str) -> Iterator[str]:
    """``acme.gate=forward`` for what a file with a ``forward()`` calls, ``=script`` beside jit.script.

    What is called in such a file is taken for compiled: to see what ``forward`` reaches would need a tree.
    """
    why = SCRIPT if "jit.script" in text else FORWARD if "def forward(" in text else ""
    if not why:
        return
    names = ((bound, full) for bound, full in imported_names(text) if not full.startswith("torch"))
    scripted = set(_GIVEN.findall(text))
    for bound, full in names:
        if why == FORWARD and f"{bound}." not in text and f"{bound}(" not in text:
            continue
        called = _called_members(text, bound)
        if bound in scripted:
            called.add("")
        lower = {member for member in called if (member or bound)[:1].islower()}
        name = absolute_name(full, file) if lower else ""
        yield from (f"{name}.{member}={why}" if member else f"{name}={why}" for member in lower)


def _called_members(text: str, name: str) -> set[str]:
    """The members of a name that a text calls; an empty one where it calls the name itself."""
    found = set()
    place = text.find(name)
    while place >= 0:
        behind = _BEHIND.match(text, place + len(name))
        if behind and not _BEFORE.match(text, place - 1 if place else len(text)):
            found.add(behind[1] or "")
        place = text.find(name, place + len(name))
    return found
