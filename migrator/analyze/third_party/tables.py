"""``npumigrate analyze -m third_party``: the rows about a library's public functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from migrator.analyze.third_party.steps import Steps, read_steps
from migrator.analyze.third_party.verdicts import Judge, Verdict
from migrator.core.check import unparsed
from migrator.files.discover import Entry
from migrator.files.errors import Unreadable, shown
from migrator.files.source import read
from migrator.findings.finding import Finding, Result, internal_error
from migrator.language import _
from migrator.names.index import ModuleIndex
from migrator.project.call_graph import CallGraph, Key
from migrator.project.modules import ModuleFacts, scan_module
from migrator.report.csv_tables import SKIPPED
from migrator.report.log_file import log_trace

# A row: the name of its table, and its values under the names that reports/columns.yaml uses.
Row = tuple[str, dict[str, str]]
FULL = "full_unsupported_results.csv"
_TABLES = {
    "unsupported": {"api": "framework_unsupported_op.csv", "cuda": "cuda_op.csv"},
    "migration_needed": dict.fromkeys(("api", "cuda"), "migration_needed_op.csv"),
    "unknown": dict.fromkeys(("api", "cuda"), "unknown_op.csv"),
}
_SEVERITIES = {"unsupported": "error", "unknown": "warning", "migration_needed": "info"}
_SHOWN_STEPS = 12
# Tests, examples and tools.
_NOT_LIBRARY = re.compile(
    r"(?:^|/)(?:tests?|testing_utils|examples?|docs?|benchmarks?|scripts?|tools|\.ci|projects|build)/"
    r"|(?:^|/)(?:setup|conftest|test_\w+|\w+_test)\.py$"
)


def find(root: Path, entries: Sequence[Entry], results: Mapping[str, Result]) -> Iterator[Row]:
    """Two rows for each public function, class and module with a verdict, and one for a skipped file.

    ``results`` are what the rules find in the Python files below ``root``, by name as it is shown.
    """
    # Where the folder itself is a package, and packages do not lie in it, its name begins the modules'.
    package = root.resolve().name if (root / "__init__.py").is_file() else ""
    skipped: dict[str, str] = {}
    modules: list[ModuleFacts] = []
    steps: dict[Key, Steps] = {}
    findings: dict[str, Sequence[Finding]] = {}
    for entry in entries:
        name = entry.name
        if entry.kind == "unreadable":
            skipped[name] = entry.reason
        elif entry.kind == "python":
            result = results[shown(name)]
            try:
                text = read(entry.path, name).text
                index = ModuleIndex(text, ())
                facts, own_steps = scan_module(name, index, package), read_steps(index, result.findings)
            except Unreadable as error:
                skipped[name] = str(error)
            except SyntaxError as error:
                skipped[name] = unparsed(name, text, error).skipped
            except (ValueError, RecursionError, MemoryError) as error:
                skipped[name] = result.skipped or _("cannot be parsed: {error}", error=error)
            except Exception as error:
                failed = internal_error(name, error)
                log_trace(failed)
                skipped[name] = failed.skipped
            else:
                if facts.name not in findings:
                    modules.append(facts)
                    steps.update(((facts.name, inside), own) for inside, own in own_steps.items())
                    findings[facts.name] = result.findings
    yield from ((SKIPPED, {"file": shown(name), "reason": reason}) for name, reason in skipped.items())
    library = CallGraph(modules)
    also = _other_names(library)
    public = _public(library, Judge(library, steps, findings).verdicts())
    files = {name: facts.file for name, facts in library.modules.items()}
    for key, name, kind, verdict, line, end in sorted(
        public, key=lambda row: (files[row[0][0]], row[4], row[1])
    ):
        way = [
            f"{link.key[1] or link.key[0]} ({shown(files[link.key[0]])}:{link.line})"
            for link in verdict.chain
        ]
        if len(way) > _SHOWN_STEPS:
            way = [*way[: _SHOWN_STEPS // 2], "…", *way[-_SHOWN_STEPS // 2 :]]
        row = {
            "file": shown(files[key[0]]),
            "line": str(line),
            "end_line": str(end),
            "api": name,
            "kind": kind,
            "verdict": verdict.word,
            "reached": verdict.reason.api,
            "status": verdict.reason.status,
            "condition": verdict.condition,
            "chain": " -> ".join([*way, verdict.reason.api]),
            "tips": verdict.reason.tips,
            "also": " ".join(sorted(also.get(key, set()) - {name})),
            "severity": _SEVERITIES[verdict.word],
        }
        yield FULL, row
        yield _TABLES[verdict.word][verdict.reason.kind], row


def _other_names(library: CallGraph) -> dict[Key, set[str]]:
    """The names that packages give to definitions of their modules: ``mmcv.ops.RoIAlign``."""
    found: dict[Key, set[str]] = {}
    for module, facts in library.modules.items():
        own = library.definition((module, ""))
        names = {name for name, values in own.values.items() if "." in values[0]}
        if facts.is_package:
            names.update(own.imports, own.values)
            for inside in (library.modules[star] for star in facts.stars if star in library.modules):
                names.update(inside.exported or (*inside.definitions, *inside.definitions[""].imports))
        for name in () if _NOT_LIBRARY.search(facts.file) else names:
            hidden = not name or name.startswith("_") or "." in name
            meant = None if hidden else library.named(module, name)
            if meant is None:
                continue
            key: Key | None = meant.key if meant.kind in ("function", "class") else None
            if meant.kind == "member" and meant.name.endswith(".apply"):
                owner = (meant.module, meant.name[: -len(".apply")])
                key = library.method(owner, "forward") if library.is_autograd(owner) else None
            if key:
                found.setdefault(key, set()).add(f"{module}.{name}")
    return found


def _public(
    library: CallGraph, verdicts: Mapping[Key, Verdict]
) -> Iterator[tuple[Key, str, str, Verdict, int, int]]:
    """What a user of the library can call, with its verdict; a class by making and calling it."""
    for module, facts in library.modules.items():
        for name, definition in () if _NOT_LIBRARY.search(facts.file) else facts.definitions.items():
            key, full = (module, name), f"{module}.{name}"
            if not name and key in verdicts and verdicts[key].word == "unsupported":
                line = verdicts[key].chain[0].line
                yield key, module, "module", verdicts[key], line, line
            # Neither private, nor inside a function.
            parts = name.split(".")
            private = any(part[:1] == "_" and not (part[:2] == part[-2:] == "__") for part in parts)
            around = (facts.definitions.get(".".join(parts[:length])) for length in range(1, len(parts)))
            outside = "#" not in name and all(outer is None or outer.kind == "class" for outer in around)
            if not name or private or not outside:
                continue
            if definition.kind == "class":
                runs = [*library.construction(key), *library.instance_call(key)]
                known = [verdicts[run] for run in runs if run in verdicts]
                worst = min(known, key=lambda each: list(_SEVERITIES).index(each.word), default=None)
                if worst and worst.word != "migration_needed":
                    yield key, full, "class", worst, definition.line, definition.end
            elif key in verdicts:
                kind = "method" if "." in name else "function"
                yield key, full, kind, verdicts[key], definition.line, definition.end
