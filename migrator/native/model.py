"""What a C++ or CUDA file defines, and binds for Python; ``functions`` finds it out."""

from __future__ import annotations

from typing import NamedTuple, Optional


class NativeFunction(NamedTuple):
    """A function, a macro, or the text behind a binding. ``cuda`` is the line and the word that touch CUDA.

    ``mentions`` are the words in its body that may be functions; ``owner`` is its class.
    """

    name: str
    line: int
    owner: str = ""
    cuda: Optional[tuple[int, str]] = None
    npu: bool = False
    mentions: frozenset[str] = frozenset()
    kernel: bool = False


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


class NativeFile(NamedTuple):
    """One file: ``functions`` in their order, ``registered`` the words that a macro ties to a word."""

    name: str
    functions: tuple[NativeFunction, ...] = ()
    bindings: tuple[Binding, ...] = ()
    declared: frozenset[str] = frozenset()
    registered: tuple[tuple[str, frozenset[str]], ...] = ()
    cuda: bool = False

    @property
    def kernels(self) -> list[NativeFunction]:
        """The ``__global__`` functions that have a body."""
        return [function for function in self.functions if function.kernel]
