"""What a file says that matters to the whole program: mostly its text, a tree only for what reduces."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from migrator.names.index import ModuleIndex
from migrator.names.reducers import reduced

# torch.jit.script(…) and what stands in it; as a decorator it concerns the function below it alone.
_SCRIPTED = re.compile(
    r"(?<![@\w])(?:torch\.)?jit\.(?:script|script_if_tracing)\(\s*(?:obj\s*=\s*|fn\s*=\s*)?([\w.]+)?"
)
_SCRIPT_IMPORT = re.compile(r"from\s+torch\.jit\s+import\b[^\n]*\bscript\b")
_BARE_SCRIPTED = re.compile(r"(?<![@\w.])script\(\s*([\w.]+)?")
# The device that becomes the current one, where a name or an attribute says which.
_SET_DEVICE = re.compile(r"\bcuda\.set_device\(\s*(?:device\s*=\s*)?(?:([\w.]+)\s*\))?")
_REDUCING = frozenset(
    {"all_reduce", "reduce", "reduce_scatter", "reduce_scatter_tensor", "all_reduce_coalesced"}
)
_COLLECTIVE = re.compile(
    r"\b(?:all_reduce|all_reduce_coalesced|reduce_scatter|reduce_scatter_tensor|dist\w*\.reduce)\("
)
_CUDA_DEFAULT = re.compile(r"\bset_default_tensor_type\(\s*[^()]*\btorch\.cuda\.")
# A class that is moved by a cuda() or to() that Lightning defines.
_LIGHTNING = re.compile(r"^[ \t]*class\s+(\w+)\s*\([^)]*\bLightningModule\b", re.MULTILINE)


@dataclass(frozen=True)
class ProgramFacts:
    """What one file, or all of them, do to others.

    ``scripts_modules``: torch.jit.script is called with something else than a function of the same file, so
    methods of modules are compiled. ``cuda_default``: a CUDA type becomes the default type of tensors.
    ``lightning``: the classes that derive from LightningModule. ``set_devices``: what torch.cuda.set_device
    is given, as it is written; empty where that is more than a name. ``reducers``: the functions that reduce
    a parameter over the ranks, each with the parameter's place and name, as ``mean:0:x``.
    """

    scripts_modules: bool = False
    cuda_default: bool = False
    lightning: frozenset[str] = frozenset()
    set_devices: frozenset[str] = frozenset()
    reducers: frozenset[str] = frozenset()


NOTHING = ProgramFacts()


def scan_program(text: str) -> ProgramFacts:
    """What the text of a Python file says of the program."""
    lightning = frozenset(_LIGHTNING.findall(text)) if "LightningModule" in text else frozenset[str]()
    default = "set_default_tensor_type" in text and bool(_CUDA_DEFAULT.search(text))
    scripts = "script" in text and any(_is_no_function(name, text) for name in _scripted(text))
    set_devices = frozenset(_SET_DEVICE.findall(text)) if "set_device(" in text else frozenset[str]()
    return ProgramFacts(scripts, default, lightning, set_devices, _reducers(text))


def merged(parts: Iterable[ProgramFacts]) -> ProgramFacts:
    """What all files together say."""
    known = [part for part in parts if part != NOTHING]
    return ProgramFacts(
        any(part.scripts_modules for part in known),
        any(part.cuda_default for part in known),
        frozenset[str]().union(*(part.lightning for part in known)),
        frozenset[str]().union(*(part.set_devices for part in known)),
        frozenset[str]().union(*(part.reducers for part in known)),
    )


def _reducers(text: str) -> frozenset[str]:
    if not _COLLECTIVE.search(text):
        return frozenset()
    try:
        index = ModuleIndex(text, _REDUCING)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    _, handed_in = reduced(index, _is_reducing)
    plain = (each for each in handed_in if isinstance(index.parent(each.function), ast.Module))
    return frozenset(f"{each.function.name}:{each.place}:{each.name}" for each in plain)


def _is_reducing(name: str) -> bool:
    return name.startswith("torch.distributed.") and name.rpartition(".")[2] in _REDUCING


def _scripted(text: str) -> list[str]:
    """What is given to torch.jit.script by a call, as far as it is a name."""
    found: list[str] = _SCRIPTED.findall(text)
    return [*found, *(_BARE_SCRIPTED.findall(text) if _SCRIPT_IMPORT.search(text) else ())]


def _is_no_function(name: str, text: str) -> bool:
    return not re.search(rf"\bdef {re.escape(name)}\(", text) if name else True
