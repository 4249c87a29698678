"""The names of a package that a text may mean, read off the text without parsing it.

A quick look that says which lines are worth a walk through their expressions: it may name too much,
because it does not know scopes, and names that are made at run time it misses.
"""

from __future__ import annotations

import re

# Patterns that begin with a plain character, or a class of them, are several times as fast as others.
_CHAIN = re.compile(r"[\w.]+")
_ASCII_CHAIN = re.compile(r"[a-zA-Z_.][a-zA-Z_.0-9]*")
# A line break is put before the text: so each line begins with one.
_IMPORT = re.compile(
    r"[\n;:][ \t]*(?:import[ \t]+([^#;\n]+)"
    r"|from[ \t]+([\w.]+)[ \t]+import[ \t\\\n]*(?:\(([^)]*)\)|((?:[^#;\n\\]|\\\n)+)))"
)
_ALIAS = re.compile(r"\n[ \t]*(\w+)[ \t]*=[ \t]*([^\W\d]\w*(?:\.\w+)*)[ \t]*(?:#.*)?$", re.M)
_GETATTR = re.compile(r"\bgetattr\(\s*([\w.]+)\s*,\s*[\"'](\w+)[\"']")
_COMMENT = re.compile(r"#[^\n]*")


def chains(text: str) -> set[str]:
    """Every dotted name as it is written, such as ``F.relu``; behind a bracket with its dot: ``.relu``."""
    return set((_ASCII_CHAIN if text.isascii() else _CHAIN).findall(text))


def words_of(written: set[str]) -> tuple[set[str], set[str]]:
    """The parts of dotted names: all of them, and those that stand right behind a dot."""
    words = set(".".join(written).split("."))
    members = set(".".join([chain.partition(".")[2] for chain in written]).split("."))
    return words - {""}, members - {""}


def behind_a_dot(text: str, word: str) -> bool:
    """Whether a word stands behind a dot from which blanks, a line's end or a comment keep it apart."""
    return re.search(rf"\.(?:[\s\\]|#[^\n]*\n)+{word}\b", text) is not None


def qualified(text: str, written: set[str], package: str) -> set[str]:
    """The full names of things of ``package`` that the text may mean: used, or imported."""
    roots = _roots(text, package)
    if not roots:
        return set()
    names = {name for name in roots.values() if "." in name}
    if "getattr" in text:
        written = written.union(".".join(match) for match in _GETATTR.findall(text))
    for chain in written:
        root, _, rest = chain.partition(".")
        full = roots.get(root)
        if full and rest.strip("."):  # a sentence may end behind a name
            names.add(f"{full}.{rest.rstrip('.')}")
    return names


def _roots(text: str, package: str) -> dict[str, str]:
    """What the names of a text stand for, as far as it is in the package."""
    roots: dict[str, str] = {}
    if package not in text:
        return roots
    inside = f"{package}."
    text = f"\n{text}"
    imported: dict[str, str] = {}
    for plain, module, in_brackets, listed in _IMPORT.findall(text):
        if plain:
            for part in plain.split(","):
                name, _, alias = part.strip().partition(" as ")
                name = name.strip()
                if name == package or name.startswith(inside):
                    roots[alias.strip() or package] = name if alias.strip() else package
        elif module == package or module.startswith(inside):
            for part in _COMMENT.sub("", in_brackets or listed).split(","):
                name, _, alias = part.replace("\\", " ").strip().partition(" as ")
                if name.strip():
                    imported[alias.strip() or name.strip()] = f"{module}.{name.strip()}"
    roots.update(imported)
    for name, value in _ALIAS.findall(text):
        root, dot, rest = value.partition(".")
        if root in roots and name not in roots:
            roots[name] = f"{roots[root]}{dot}{rest}"
    return roots
