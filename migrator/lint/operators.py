"""A project's CUDA operators as the cache of lint runs keeps them: to find them may take seconds."""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from migrator.project.operators import Catalog, Module


def pack(catalog: Catalog) -> list[Any]:
    """The catalog in a form that JSON can hold, for ``unpack``."""
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
    """The catalog that was packed, without what only the reports of a migration need."""
    from migrator.project.extensions import Extension
    from migrator.project.operators import Catalog, Module, Operator

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
