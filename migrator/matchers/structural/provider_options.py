"""Options beside the name of an execution provider of ONNX Runtime that another provider does not take."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from migrator.findings.finding import Edit
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.matchers.removal import without_entries
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import string_value


@dataclass(frozen=True)
class ProviderOptions(Options):
    """The options that the NPU's provider calls otherwise (``renamed``), and those it lacks (``gone``)."""

    renamed: dict[str, str] = field(default_factory=dict)
    gone: tuple[str, ...] = ()


def find(context: FileContext, rule: Rule[ProviderOptions]) -> Iterator[Match]:
    """Dictionaries of options behind a provider's name: ``("CUDAExecutionProvider", {"device_id": 0})``.

    One that a variable holds is changed where every use of the variable is such a place.
    """
    index, options = context.index, rule.options
    known = {*options.renamed, *options.gone}
    given = (index.parent(each) for each in index.strings if string_value(each) in known)
    for entries in dict.fromkeys(each for each in given if isinstance(each, ast.Dict)):
        keys = [key for key in entries.keys if string_value(key) in known and key is not None]
        of_provider = [_provider(index, each) in rule.match for each in index.reads_of(entries)]
        if not keys or not any(of_provider):
            continue
        edits = _edits(index, options, entries, keys) if all(of_provider) else None
        api = ", ".join(str(string_value(key)) for key in keys)
        yield found(context, rule, keys[0], api=api, edits=edits or ())


def _provider(index: ModuleIndex, options: ast.expr) -> str:
    """The provider that is named in front of its options; empty where none is."""
    pair = index.parent(options)
    if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 and pair.elts[1] is options:
        return string_value(pair.elts[0]) or ""
    return ""


def _edits(
    index: ModuleIndex, options: ProviderOptions, entries: ast.Dict, keys: Sequence[ast.expr]
) -> list[Edit] | None:
    """The edits that rename keys and take out entries; None where one cannot be taken out."""
    edits: list[Edit] = []
    for key in keys:
        old = string_value(key) or ""
        if old in options.renamed and isinstance(key, ast.Constant):
            edits += replace_text(index, key, old, options.renamed[old])
    gone = [key for key in keys if string_value(key) in options.gone]
    removed = without_entries(index, entries, gone) if gone else []
    return None if removed is None else [*edits, *removed]
