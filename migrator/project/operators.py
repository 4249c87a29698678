"""What is known of a project's CUDA operators; ``gathering`` finds it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from migrator.project.extensions import Extension


class Operator(NamedTuple):
    """A CUDA kernel, or a function for Python that reaches CUDA: where it is, and how it does.

    ``kind`` is kernel or bound. ``npu`` tells that an implementation for NPUs stands beside the CUDA one.
    """

    kind: str
    name: str
    file: str
    line: int
    reason: str = ""
    npu: bool = False


class Module(NamedTuple):
    """An extension module with CUDA operators, and the file that builds it.

    ``operators`` is None where it is unknown what it binds. ``npu`` tells that all of it is there for
    NPUs too.
    """

    name: str
    operators: Optional[Mapping[str, Operator]]
    file: str = ""
    npu: bool = False


@dataclass(frozen=True)
class Catalog:
    """What Python files have to know of a project's CUDA operators.

    ``in_file`` are the operators by the file that defines them, ``modules`` the extension modules by their
    names, ``torch_ops`` what stands below ``torch.ops`` (``ns.op``), ``builders`` the classes whose
    ``load()`` gives a module, ``extensions`` what is built where.
    """

    in_file: Mapping[str, tuple[Operator, ...]] = field(default_factory=dict)
    modules: Mapping[str, Module] = field(default_factory=dict)
    torch_ops: Mapping[str, Operator] = field(default_factory=dict)
    builders: Mapping[str, Module] = field(default_factory=dict)
    extensions: Mapping[tuple[str, int], Extension] = field(default_factory=dict)
    variables: Mapping[tuple[str, str], Module] = field(default_factory=dict)

    def words(self) -> frozenset[str]:
        """Words of which a Python file that uses one of these operators holds one: what holds operators."""
        words = {name.rpartition(".")[2] for name in self.modules} | set(self.builders)
        words.update(name.partition(".")[0] for name in self.torch_ops)
        words.update(variable for _, variable in self.variables)
        return frozenset(words)

    def function_names(self) -> frozenset[str]:
        """The operators' own names, of which many are common words: ``forward``."""
        names = {name.rpartition(".")[2] for name in self.torch_ops}
        for module in (*self.modules.values(), *self.builders.values(), *self.variables.values()):
            names.update(module.operators or ())
        return frozenset(names)
