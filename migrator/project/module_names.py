"""The dotted name under which Python finds a file of a project."""

from __future__ import annotations

from collections.abc import Iterable

SOURCE_FOLDER = "src"


def module_name(file: str, package: str = "") -> str:
    """``src/acme/ops/nms.py`` is ``acme.ops.nms``; ``package`` stands before it where the folder is one."""
    parts = file.rpartition(".")[0].split("/")
    if parts[-1] == "__init__":
        parts = parts[:-1]
    if parts[:1] == [SOURCE_FOLDER] and len(parts) > 1:
        parts = parts[1:]
    return ".".join([package, *parts] if package else parts)


def absolute_name(name: str, file: str, package: str = "") -> str:
    """A relative name (``..ops.nms``) made absolute by the place of the file that says it; others stay."""
    if not name.startswith("."):
        return name
    level = len(name) - len(name.lstrip("."))
    parents = [part for part in module_name(file, package).split(".") if part]
    if not file.endswith("__init__.py"):
        parents = parents[:-1]
    parents = parents[: len(parents) - level + 1]
    return ".".join([*parents, name[level:]]).strip(".")


class NamesElsewhere:
    """What is known of the names that files define: each as ``acme.helpers.th=torch``."""

    def __init__(self, facts: Iterable[str]) -> None:
        self._by_last: dict[str, list[tuple[str, str]]] = {}
        for full, _, known in (each.partition("=") for each in sorted(facts)):
            self._by_last.setdefault(full.rpartition(".")[2], []).append((f".{full}", known))

    def find_here(self, name: str) -> str:
        """What others say of a name that a file defines, by its own name or that of a package around it."""
        package, _, last = name.rpartition(".")
        found = (what for full, what in self._by_last.get(last, ()) if _hands_on(full, f".{package}."))
        return next(found, "")

    def find(self, name: str) -> str:
        """What is known of a name that is imported; empty for nothing.

        The folder of a project may stand before its packages or not, and a package may hand on what its
        modules define.
        """
        package, _, last = name.rpartition(".")
        known = self._by_last.get(last, ())
        same = (what for full, what in known if full.endswith(f".{name}") or f".{name}".endswith(full))
        inside = (what for full, what in known if package and f".{package}." in full)
        return next(same, "") or next(inside, "")


def _hands_on(full: str, package: str) -> bool:
    """Whether a name is one of a package, or of a package around it; the project's folder may be left out."""
    outer = full.rpartition(".")[0] + "."
    return len(outer) > 1 and (
        package.startswith(outer) or package.endswith(outer) or outer.endswith(package)
    )
