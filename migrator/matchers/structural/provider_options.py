"""Options beside the name of an execution provider of ONNX Runtime that another provider does not take."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import field

from migrator.matchers.argument_edits import without_entries
from migrator.matchers.context import FileContext, Match, found
from migrator.matchers.packs import Options, Rule
from migrator.names.index import ModuleIndex
from migrator.names.strings import replace_text
from migrator.names.tree import string_value


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
        keys = {key: text for key in entries.keys if key and (text := string_value(key)) in known and text}
        of_provider = [_provider(index, each) in rule.match for each in index.reads_of(entries)]
        if not keys or not any(of_provider):
            continue
        gone = [key for key, text in keys.items() if text in options.gone]
        edits = without_entries(index, entries, gone) if gone else []
        if edits is not None and all(of_provider):
            for key, text in keys.items():
                if text in options.renamed and isinstance(key, ast.Constant):
                    edits += replace_text(index, key, text, options.renamed[text])
        else:  # one cannot be taken out
            edits = []
        yield found(context, rule, next(iter(keys)), api=", ".join(keys.values()), edits=sorted(edits))


def _provider(index: ModuleIndex, options: ast.expr) -> str:
    """The provider that is named in front of its options; empty where none is."""
    pair = index.parent(options)
    if isinstance(pair, ast.Tuple) and len(pair.elts) == 2 and pair.elts[1] is options:
        return string_value(pair.elts[0]) or ""
    return ""
