"""The house: packages import what is below them only, so there is no circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "migrator"

# From the top down, as docs/design.md draws it.
ROOMS = (
    *("cli", "server", "mcp", "lint", "migrate", "analyze", "verify", "doctor", "fleet", "profile"),
    *("insight", "explain", "compare"),
    *("convert", "report", "run", "core", "matchers", "launch"),
    *("project", "names", "other_files", "findings", "native", "files", "api_support", "emulator"),
)


def imports() -> Iterator[tuple[str, str, str]]:
    for file in sorted(PACKAGE.rglob("*.py")):
        room = file.relative_to(PACKAGE).parts[0]
        if room not in ROOMS:  # what starts the program, and where the data folders are
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                package, _, rest = module.partition(".")
                other = rest.partition(".")[0]
                if package == "migrator" and other in ROOMS:
                    yield f"{file.relative_to(PACKAGE)}:{node.lineno}", room, other


def test_every_room_is_known() -> None:
    rooms = {folder.name for folder in PACKAGE.iterdir() if (folder / "__init__.py").exists()}
    assert rooms == set(ROOMS)


def test_packages_import_only_what_is_below_them() -> None:
    upwards = [
        f"{place}: {room} imports {other}"
        for place, room, other in imports()
        if ROOMS.index(room) > ROOMS.index(other)
    ]
    assert upwards == []
