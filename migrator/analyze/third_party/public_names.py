"""Under which names a library's users find its functions."""

from __future__ import annotations

import re
from pathlib import Path

from migrator.analyze.third_party.library import Key, Library

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


def other_names(library: Library) -> dict[Key, set[str]]:
    """The names that packages give to definitions of their modules: ``mmcv.ops.RoIAlign``."""
    found: dict[Key, set[str]] = {}
    for module, facts in library.modules.items():
        if not is_public(facts.file):
            continue
        names = set(facts.imports) if facts.is_package else set()
        names.update(name for name, value in facts.assigned.items() if "." in value or facts.is_package)
        for star in facts.stars if facts.is_package else ():
            if star in library.modules:
                inside = library.modules[star]
                names.update(inside.exported or {*inside.functions, *inside.classes, *inside.imports})
        for name in names:
            if name.startswith("_") or "." in name:
                continue
            meant = library.named(module, name)
            if meant is None:
                continue
            key = (meant.module, meant.name)
            if meant.kind in ("function", "class"):
                found.setdefault(key, set()).add(f"{module}.{name}")
            elif meant.kind == "member" and meant.name.endswith(".apply"):
                owner = (meant.module, meant.name[: -len(".apply")])
                forward = library.method(owner, "forward")
                if forward and library.is_autograd(owner):
                    found.setdefault(forward, set()).add(f"{module}.{name}")
    return found
