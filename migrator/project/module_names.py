"""The dotted name under which Python finds a file of a project."""

from __future__ import annotations

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
