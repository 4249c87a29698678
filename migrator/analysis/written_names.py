"""The names of a package that a text may mean, read off the text without parsing it.

A quick look that says which lines are worth a walk through their expressions: it may name too much,
because it does not know scopes, and names that are made at run time it misses.
"""

from __future__ import annotations

import re

_CHAIN = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_IMPORT = re.compile(r"(?:^|[;:])[ \t]*import[ \t]+([^#;\n]+)", re.M)
_FROM = re.compile(
    r"(?:^|[;:])[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t\\\n]*(?:\(([^)]*)\)|((?:[^#;\n\\]|\\\n)+))", re.M
)
_ALIAS = re.compile(r"^[ \t]*(\w+)[ \t]*=[ \t]*([^\W\d]\w*(?:\.\w+)*)[ \t]*(?:#.*)?$", re.M)
_GETATTR = re.compile(r"\bgetattr\(\s*([\w.]+)\s*,\s*[\"'](\w+)[\"']")
_COMMENT = re.compile(r"#[^\n]*")


def chains(text: str) -> set[str]:
    """Every dotted name as it is written, such as ``F.relu``; what follows a bracket stands by itself."""
    return set(_CHAIN.findall(text))


def words_of(written: set[str]) -> set[str]:
    """The parts of dotted names."""
    words: set[str] = set()
    for chain in written:
        words.update(chain.split("."))
    return words


def qualified(text: str, written: set[str], package: str) -> set[str]:
    """The full names of things of ``package`` that the text may mean: used, or imported."""
    roots = _roots(text, package)
    if not roots:
        return set()
    names = {name for name in roots.values() if "." in name}
    if "getattr" in text:
        written = written.union(".".join(match) for match in _GETATTR.findall(text))
    for chain in written:
        root, dot, rest = chain.partition(".")
        full = roots.get(root)
        if full and dot:
            names.add(f"{full}.{rest}")
    return names


def _roots(text: str, package: str) -> dict[str, str]:
    """What the names of a text stand for, as far as it is in the package."""
    roots: dict[str, str] = {}
    if package not in text:
        return roots
    inside = f"{package}."
    for match in _IMPORT.finditer(text):
        for part in match.group(1).split(","):
            name, _, alias = part.strip().partition(" as ")
            name = name.strip()
            if name == package or name.startswith(inside):
                roots[alias.strip() or package] = name if alias.strip() else package
    for match in _FROM.finditer(text):
        module = match.group(1)
        if module != package and not module.startswith(inside):
            continue
        for part in _COMMENT.sub("", match.group(2) or match.group(3)).split(","):
            name, _, alias = part.replace("\\", " ").strip().partition(" as ")
            if name.strip():
                roots[alias.strip() or name.strip()] = f"{module}.{name.strip()}"
    for match in _ALIAS.finditer(text):
        root, dot, rest = match.group(2).partition(".")
        if root in roots and match.group(1) not in roots:
            roots[match.group(1)] = f"{roots[root]}{dot}{rest}"
    return roots
