"""The engine: a file's text in, findings and the migrated text out."""

from __future__ import annotations

import ast
import gc
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Callable

from migrator.analysis.index import ModuleIndex, identifiers
from migrator.analysis.places import PlaceData
from migrator.api_support import env_vars, versions
from migrator.engine.context import FileContext, Found, found
from migrator.engine.finding import Edit, FileResult, Finding
from migrator.engine.kinds import argument, env, library, method, name, string, text
from migrator.engine.packs import Rule, applies, choose, load_all
from migrator.engine.project import Project, merge_facts, scan_file
from migrator.engine.settings import Settings
from migrator.engine.structural import documented_support
from migrator.engine.structural.handlers import HANDLERS
from migrator.rewrite.edits import apply, back_mapping, overlaps
from migrator.rewrite.imports import torch_npu_imports

__all__ = ["Engine", "merge_facts", "scan_file"]

_MAX_PASSES = 8
_NUL = "holds NUL bytes: not a Python source file"
_IMPORT_RULE = "NPU901"
_TRANSFER_RULE = "NPU902"


class Engine:
    """The chosen rules for one torch version.

    Raises RuleError for a bad rule pack or selection, UnknownVersion for a
    torch version that the API database does not know.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.version = versions.resolve(settings.version)
        every = load_all(settings.rule_files)
        self.rules: dict[str, Rule] = {rule.code: rule for rule in every}
        chosen = choose(every, settings.select, settings.ignore)
        self._rules = [rule for rule in chosen if applies(rule, self.version.tuple)]
        self._words = {rule.code: self._words_of(rule) for rule in self._rules}
        self._all_words = frozenset().union(*self._words.values()) if self._words else frozenset()
        self._places = _place_data(every)

    def _words_of(self, rule: Rule) -> frozenset[str]:
        source = rule.options.get("words_from")
        if source == "env_vars":
            return env_vars.names()
        if source == "unsupported_apis":
            return documented_support.trigger_words(self.version)
        return rule.trigger_words()

    def is_relevant(self, text: str) -> bool:
        """Whether a text holds a word from which some rule starts."""
        if self.settings.transfer:
            return "torch" in text
        return not self._all_words.isdisjoint(identifiers(text))

    def migrate_text(self, file: str, text: str, project: Project) -> FileResult:
        """Migrate one file's text.

        Never raises but for KeyboardInterrupt: a file that cannot be parsed, or
        on which the engine fails, comes back unchanged with the reason.
        """
        words = identifiers(text)
        if self.settings.transfer:
            return self._guarded(file, text, lambda: self._transfer(file, text, project))
        rules = [rule for rule in self._rules if not self._words[rule.code].isdisjoint(words)]
        rules = [rule for rule in rules if self._file_fits(rule, words)]
        if not rules:
            return FileResult(file)
        return self._guarded(file, text, lambda: self._migrate(file, text, rules, project))

    def _file_fits(self, rule: Rule, words: set[str]) -> bool:
        """Rules may ask for words that a file has, or has not."""
        if rule.options.get("words_from") == "unsupported_apis":
            return documented_support.may_be_used(self.version, words)
        wanted, unwanted = rule.options.get("file_has", ()), rule.options.get("file_has_not", ())
        if wanted and words.isdisjoint(wanted):
            return False
        return not unwanted or words.isdisjoint(unwanted)

    def _guarded(self, file: str, text: str, work: Callable[[], FileResult]) -> FileResult:
        # A tree is built at once and dropped at once: looking for garbage meanwhile costs a quarter more.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return work()
        except SyntaxError as error:
            return FileResult(file, skipped=_syntax_reason(error, text))
        except (RecursionError, MemoryError):
            return FileResult(file, skipped="an expression is nested too deeply to be parsed")
        except ValueError as error:
            if "null byte" in str(error):
                return FileResult(file, skipped=_NUL)
            return FileResult(file, skipped=f"internal error, file left as it was: {error!r}")
        except Exception as error:
            return FileResult(file, skipped=f"internal error, file left as it was: {error!r}")
        finally:
            if collecting:
                gc.enable()

    def _migrate(self, file: str, text: str, rules: list[Rule], project: Project) -> FileResult:
        findings: list[Finding] = []
        original = ModuleIndex(text, self._triggers(rules))
        index = original
        old_offset: Callable[[int], int] = lambda offset: offset  # noqa: E731
        left_alone = 0
        for step in range(_MAX_PASSES):
            context = FileContext(file, index, self.version, project)
            matches, alone = self._match(context, rules)
            if step == 0:
                left_alone = alone
            accepted, rest = self._accept(matches)
            if step == 0:
                findings += [
                    self._unfixed(item.finding) for item in rest if not self._deferred(item, accepted)
                ]
            if not accepted:
                break
            inserted = self._imports(context, accepted, rules)
            edits = [edit for item in (*accepted, *inserted) for edit in item.finding.edits]
            for item in (*accepted, *inserted):
                findings.append(
                    item.finding if step == 0 else _at_original(item, index, original, old_offset)
                )
            new_text = apply(index.data, edits).decode("utf-8")
            previous, back = old_offset, back_mapping(edits)
            old_offset = _chain(previous, back)
            try:
                index = ModuleIndex(new_text, self._triggers(rules))
            except (SyntaxError, ValueError) as error:
                return FileResult(
                    file, skipped=f"internal error, file left as it was: the result does not parse ({error})"
                )
        else:
            return FileResult(file, skipped="internal error, file left as it was: the rules do not settle")
        findings.sort(key=lambda finding: (finding.line, finding.column, finding.code))
        changed = index.text if index.text != text else None
        return FileResult(file, changed, tuple(findings), left_alone=left_alone)

    def _triggers(self, rules: list[Rule]) -> set[str]:
        words = set().union(*(self._words[rule.code] for rule in rules))
        return words.union(*(rule.options.get("line_words", ()) for rule in rules))

    def _match(self, context: FileContext, rules: list[Rule]) -> tuple[list[Found], int]:
        kinds: dict[str, list[Rule]] = {}
        for rule in rules:
            kinds.setdefault(rule.kind, []).append(rule)
        matches: list[Found] = []
        # Structural rules first: what they replace as a whole is theirs.
        for rule in kinds.get("structural", ()):
            handler = HANDLERS.get(str(rule.options.get("handler")))
            if handler is not None:
                matches += handler(context, rule)
        for kind, finder in _FINDERS:
            if kind in kinds:
                matches += finder(context, kinds[kind])
        alone = 0
        if "string" in kinds:
            more, alone = string.find(context, kinds["string"], self._places)
            matches += more
        return matches, alone

    def _accept(self, matches: list[Found]) -> tuple[list[Found], list[Found]]:
        """The matches whose fixes are made now, and the rest."""
        accepted: list[Found] = []
        rest: list[Found] = []
        taken: list[Edit] = []
        for item in matches:
            edits = item.finding.edits
            wanted = edits and not (self.settings.safe_only and item.finding.safety == "unsafe")
            if wanted and not overlaps(taken, edits):
                accepted.append(item)
                taken += edits
            else:
                rest.append(item)
        return accepted, rest

    def _deferred(self, item: Found, accepted: list[Found]) -> bool:
        """Whether a match waits for the next pass because another one holds its place."""
        if not item.finding.edits or (self.settings.safe_only and item.finding.safety == "unsafe"):
            return False
        return overlaps([edit for other in accepted for edit in other.finding.edits], item.finding.edits)

    @staticmethod
    def _unfixed(finding: Finding) -> Finding:
        return replace(finding, operation="", after="", edits=())

    def _imports(self, context: FileContext, accepted: list[Found], rules: list[Rule]) -> list[Found]:
        """``import torch_npu`` for the fixes that need it."""
        rule = self.rules.get(_IMPORT_RULE)
        index = context.index
        has_torch = any(_names_torch(node) for node in index.imports)
        needing = [
            item.node
            for item in accepted
            if item.needs_npu
            and (has_torch or self.rules[item.finding.code].kind not in ("string", "argument"))
        ]
        if rule is None or not needing or _IMPORT_RULE not in self._words:
            return []
        return [_insertion(context, rule, node, edit) for node, edit in torch_npu_imports(index, needing)]

    def _transfer(self, file: str, text: str, project: Project) -> FileResult:
        """Add the two imports of torch_npu's own run-time patching to an entry file."""
        rule = self.rules[_TRANSFER_RULE]
        index = ModuleIndex(text, {"torch"})
        if not _is_entry(index) or not any(_names_torch(node) for node in index.imports):
            return FileResult(file)
        if any("transfer_to_npu" in index.segment(node) for node in index.imports):
            return FileResult(file)
        context = FileContext(file, index, self.version, project)
        inserted = []
        for node, edit in torch_npu_imports(index, list(index.imports)):
            added = edit.text.replace(
                "import torch_npu",
                "import torch_npu" + _break(edit.text) + "from torch_npu.contrib import transfer_to_npu",
            )
            inserted.append(_insertion(context, rule, node, replace(edit, text=added)))
        if not inserted:
            return FileResult(file)
        new_text = apply(index.data, [edit for item in inserted for edit in item.finding.edits]).decode(
            "utf-8"
        )
        ast.parse(new_text)
        return FileResult(file, new_text, tuple(item.finding for item in inserted))


_FINDERS: tuple[tuple[str, Callable[[FileContext, list[Rule]], Iterable[Found]]], ...] = (
    ("name", name.find),
    ("method", method.find_methods),
    ("attribute", method.find_attributes),
    ("argument", argument.find),
    ("import", library.find),
    ("env", env.find),
    ("text", text.find),
)


def _break(inserted: str) -> str:
    """What separates a second statement from the first in an inserted text."""
    if inserted.startswith(";"):
        return "; "
    match = re.match(r"(\r\n|\r|\n)?([ \t\f]*)import torch_npu(\r\n|\r|\n)?", inserted)
    if match is None:
        return "; "
    return (match.group(1) or match.group(3) or "\n") + match.group(2)


def _insertion(context: FileContext, rule: Rule, node: Any, edit: Edit) -> Found:
    index = context.index
    item = found(
        context, rule, node, api="torch_npu", edits=[edit], span=(index.start(node), index.end(node))
    )
    line = index.line_of(max(edit.start - 1, 0))
    finding = replace(
        item.finding, line=line, end_line=line, operation="INSERT", before="", after=edit.text.strip("; \r\n")
    )
    return Found(finding, node)


def _names_torch(node: Any) -> bool:
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] == "torch" for alias in node.names)
    return node.level == 0 and (node.module or "").split(".")[0] == "torch"


def _is_entry(index: ModuleIndex) -> bool:
    """Whether a file is one that is started.

    It asks whether it is ``__main__``, or runs something at its top level: a
    loop, a ``with``, or a call of a function of its own.
    """
    own = {node.name for node in index.functions}
    for node in index.tree.body:
        if isinstance(node, ast.If) and "__name__" in index.segment(node.test):
            return True
        if isinstance(node, (ast.For, ast.While, ast.With)):
            return True
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = node.value.func
            if isinstance(called, ast.Name) and called.id in own:
                return True
    return False


def _at_original(
    item: Found, index: ModuleIndex, original: ModuleIndex, old_offset: Callable[[int], int]
) -> Finding:
    """A later pass's finding with the lines of the input."""
    start, _ = index.line_span(item.finding.line, item.finding.line)
    end, _ = index.line_span(item.finding.end_line, item.finding.end_line)
    return replace(
        item.finding,
        line=original.line_of(old_offset(start)),
        end_line=max(original.line_of(old_offset(end)), original.line_of(old_offset(start))),
    )


def _chain(first: Callable[[int], int], second: Callable[[int], int]) -> Callable[[int], int]:
    return lambda offset: first(second(offset))


def _syntax_reason(error: SyntaxError, text: str) -> str:
    if "null byte" in (error.msg or ""):
        return _NUL
    running = ".".join(map(str, sys.version_info[:2]))
    place = f"line {error.lineno}: " if error.lineno else ""
    hint = ""
    if "print" in (error.msg or "") or re.search(
        r"^\s*print\s+[^(\s=]|^\s*except\s+\w+\s*,\s*\w+\s*:", text, re.M
    ):
        hint = "; Python 2 code? Convert it to Python 3 first"
    elif re.search(r"^\s*(match|case)\s.+:|^\s*type\s+\w+\s*=|except\*", text, re.M):
        hint = "; syntax of a newer Python? Run npumigrate with that one"
    return f"{place}not valid Python {running} ({error.msg}){hint}"


def _place_data(rules: list[Rule]) -> PlaceData:
    """What the rule packs know of places where device strings go."""
    apis: dict[str, tuple[Any, ...]] = {}
    sets: dict[str, set[str]] = {"keywords": set(), "never": set(), "option_calls": set()}
    hints: list[str] = []
    for rule in rules:
        places = rule.options.get("places")
        if not isinstance(places, dict):
            continue
        for api, where in (places.get("apis") or {}).items():
            apis[str(api)] = tuple(where if isinstance(where, list) else [where])
        for key, values in sets.items():
            values.update(places.get(key) or ())
        hints += [str(hint) for hint in places.get("hints") or ()]
    pattern = "|".join(f"(?:{hint})" for hint in hints) or r"(?!)"
    return PlaceData(
        apis=apis,
        keywords=frozenset(sets["keywords"]),
        never=frozenset(sets["never"]),
        option_calls=frozenset(sets["option_calls"]),
        hint=re.compile(pattern, re.IGNORECASE),
    )
