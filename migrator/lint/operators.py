"""A project's CUDA operators for a lint run: what its C++ and CUDA files and its extension modules define.

To read all of them takes seconds in a large project, so the cache keeps the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from migrator.operators.catalog import Catalog, Module


def read_operators(
    native: Sequence[tuple[str, Path]], building: Iterable[tuple[str, str]], jobs: Optional[int]
) -> list[Any]:
    """The catalog in a form that JSON can hold, for ``unpack``.

    ``native`` are C++ and CUDA files by name, ``building`` name and text of the Python files that may build
    extensions, ``jobs`` the number of processes (None: as many as are worth it).
    """
    from migrator.engine.project import merge_facts, scan_file
    from migrator.operators.native_files import read_native

    facts = [scan_file(name, text) for name, text in building]
    return _pack(merge_facts(facts, read_native(native, jobs)).operators)


def _pack(catalog: Catalog) -> list[Any]:
    extensions = [
        [e.name, e.kind, e.file, e.line, e.sources, e.complete, e.cuda, e.functions, e.variables]
        for e in catalog.extensions.values()
    ]
    return [
        [[name, _packed_module(module)] for name, module in catalog.modules.items()],
        [[name, astuple(operator)] for name, operator in catalog.torch_ops.items()],
        [[name, _packed_module(module)] for name, module in catalog.builders.items()],
        extensions,
        [[*place, _packed_module(module)] for place, module in catalog.variables.items()],
    ]


def _packed_module(module: Module) -> list[Any]:
    operators: Optional[list[Any]] = None
    if module.operators is not None:
        operators = [[name, astuple(operator)] for name, operator in module.operators.items()]
    return [module.name, operators, module.file, module.npu]


def unpack(packed: list[Any]) -> Catalog:
    """The catalog of ``read_operators``, without what only the reports of a migration need."""
    from migrator.operators.catalog import Catalog, Module, Operator
    from migrator.operators.extensions import Extension

    def module(row: list[Any]) -> Module:
        name, operators, file, npu = row
        found = None if operators is None else {key: Operator(*values) for key, values in operators}
        return Module(name, found, file, npu)

    modules, torch_ops, builders, extensions, variables = packed
    built = [
        Extension(name, kind, file, line, tuple(sources), complete, cuda, tuple(functions), tuple(variables))
        for name, kind, file, line, sources, complete, cuda, functions, variables in extensions
    ]
    return Catalog(
        modules={name: module(row) for name, row in modules},
        torch_ops={name: Operator(*values) for name, values in torch_ops},
        builders={name: module(row) for name, row in builders},
        extensions={(extension.file, extension.line): extension for extension in built},
        variables={(file, name): module(row) for file, name, row in variables},
    )
