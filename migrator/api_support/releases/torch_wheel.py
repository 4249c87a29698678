"""The names of a torch or torchvision wheel, of its sources, stubs and compiled part."""

from __future__ import annotations

import re
from functools import partial

from migrator.api_support.releases.archive import Archive
from migrator.api_support.releases.bindings import Package, Sources
from migrator.api_support.releases.torch_facts import Release, read

# Where the names of torch's compiled part stand, on each platform.
_COMPILED = re.compile(r"torch/lib/(lib)?torch_python\.(so|dylib|dll)")


def read_names(archive: Archive, package: str) -> Release:
    """What the package in a wheel offers. Raises WheelError for a damaged wheel, SyntaxError for a source."""
    words: frozenset[str] = frozenset()
    if package == "torch":
        words = words.union(
            *(archive.words(entry) for entry in archive.entries if _COMPILED.fullmatch(entry))
        )
    return read(Package(texts(archive, package, ".py"), texts(archive, package, ".pyi")), package, words)


def texts(archive: Archive, package: str, ending: str) -> Sources:
    """The files of a kind by their module."""
    found: Sources = {}
    for entry in archive.entries:
        parts = entry.removesuffix(ending).split("/")
        if not entry.endswith(ending) or parts[0] != package or not all(map(str.isidentifier, parts)):
            continue
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        found[module] = is_package, partial(archive.text, entry)
    return found
