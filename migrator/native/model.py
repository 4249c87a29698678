"""Which files are C, C++ or CUDA, and what one defines and binds for Python; ``functions`` reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Optional

from migrator.light import Frozen, NamedTuple

# Of functions that are declared and nowhere defined (the sources were left out), the name has to say it.
_CUDA_NAME = (
    r"(?:^|_)(?:cuda|gpu)(?:_|$)|(?:Cuda|CUDA|Gpu|GPU)(?:[A-Z_]|$)|(?:^|[a-z_])(?:CUDA|Cuda)(?:[A-Z]|_|$)"
    r"|[Kk]ernel_?[Ll]aunch(?:er)?$"
)
CUDA_SUFFIXES = frozenset({".cu", ".cuh"})
NATIVE_SUFFIXES = CUDA_SUFFIXES | {".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hh", ".inl"}
MAX_BYTES = 4 * 2**20


def is_cuda(name: str) -> bool:
    """Whether a file's name says CUDA."""
    return name.endswith(tuple(CUDA_SUFFIXES))


def is_cuda_name(name: str) -> bool:
    """Whether a function's name says that it works on CUDA."""
    return re.search(_CUDA_NAME, name) is not None


def is_native(name: str) -> bool:
    """Whether a file's name says C, C++ or CUDA."""
    return "." + name.rpartition(".")[2].lower() in NATIVE_SUFFIXES


def native_bytes(files: Iterable[tuple[str, Path]]) -> dict[str, bytes]:
    """The content of those of ``files`` (name inside the project, path) that are C++ or CUDA by their names.

    What cannot be read or is larger than MAX_BYTES is left out; it is not CUDA sources that are that large.
    """
    found = {}
    for name, path in files:
        if is_native(name):
            try:
                if path.stat().st_size <= MAX_BYTES:
                    found[name] = path.read_bytes()
            except OSError:
                continue
    return found


class NativeFunction(NamedTuple):
    """A function, a macro, or the text behind a binding. ``cuda`` is the line and the word that touch CUDA.

    ``mentions`` are the words in its body that may be functions; ``owner`` is its class. ``parameters`` are
    the names of its own.
    """

    name: str
    line: int
    owner: str = ""
    cuda: Optional[tuple[int, str]] = None
    npu: bool = False
    mentions: frozenset[str] = frozenset()
    kernel: bool = False
    parameters: tuple[str, ...] = ()


class Binding(NamedTuple):
    """A function that Python can call: ``module`` is what binds it, as written (``TORCH_EXTENSION_NAME``).

    ``kind`` is pybind (an extension module's function) or torch (``torch.ops.<module>.<name>``); ``key`` the
    dispatch key of an implementation, where one is named.
    """

    kind: str
    module: str
    name: str
    key: str
    target: NativeFunction


class Use(Frozen):
    """A kernel that is started, or a library: its first line, and how often it is used in the file.

    ``route`` is what stands for a library on NPUs; it is empty for a kernel.
    """

    name: str
    line: int
    count: int
    route: str = ""


class NativeFile(NamedTuple):
    """One file: ``functions`` in their order, ``registered`` the words that a macro ties to a word.

    ``uses`` are what it takes from CUDA; None where that was not looked for.
    """

    name: str
    functions: tuple[NativeFunction, ...] = ()
    bindings: tuple[Binding, ...] = ()
    declared: frozenset[str] = frozenset()
    registered: tuple[tuple[str, frozenset[str]], ...] = ()
    cuda: bool = False
    uses: Optional[tuple[Use, ...]] = None

    @property
    def kernels(self) -> list[NativeFunction]:
        """The ``__global__`` functions that have a body."""
        return [function for function in self.functions if function.kernel]
