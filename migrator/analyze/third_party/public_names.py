"""Under which names a library's users find its functions."""

from __future__ import annotations

import re
from pathlib import Path

from migrator.project.call_graph import CallGraph, Key

_NOT_LIBRARY = re.compile(
    r"(?:^|/)(?:tests?|testing_utils|examples?|docs?|benchmarks?|scripts?|tools|\.ci|projects|build)/"
    r"|(?:^|/)(?:setup|conftest|test_\w+|\w+_test)\.py$"
)


def package_of(root: Path) -> str:
    """The name of the package that the folder itself is; empty where packages lie in it."""
    return root.resolve().name if (root / "__init__.py").is_file() else ""


def is_public(file: str) -> bool:
    """Whether a file belongs to the library and not to its tests, examples and tools."""
    return not _NOT_LIBRARY.search(file)


def other_names(library: CallGraph) -> dict[Key, set[str]]:
    """The names that packages give to definitions of their modules: ``mmcv.ops.RoIAlign``."""
    found: dict[Key, set[str]] = {}
    for module, facts in library.modules.items():
        if not is_public(facts.file):
            continue
        own = library.definition((module, ""))
        names = {name for name, values in own.values.items() if "." in values[0]}
        if facts.is_package:
            names.update(own.imports, own.values)
            for inside in (library.modules[star] for star in facts.stars if star in library.modules):
                names.update(inside.exported or (*inside.definitions, *inside.definitions[""].imports))
        for name in names:
            if not name or name.startswith("_") or "." in name:
                continue
            meant = library.named(module, name)
            if meant is None:
                continue
            if meant.kind in ("function", "class"):
                found.setdefault(meant.key, set()).add(f"{module}.{name}")
            elif meant.kind == "member" and meant.name.endswith(".apply"):
                owner = (meant.module, meant.name[: -len(".apply")])
                forward = library.method(owner, "forward")
                if forward and library.is_autograd(owner):
                    found.setdefault(forward, set()).add(f"{module}.{name}")
    return found
