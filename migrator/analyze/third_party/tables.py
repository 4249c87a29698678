"""``npumigrate analyze -m third_party``: the rows about a library's public functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from migrator.analyze.third_party.flow import Steps
from migrator.analyze.third_party.steps import read_steps
from migrator.analyze.third_party.verdicts import Verdict, judge
from migrator.files.errors import Unreadable, shown
from migrator.files.source import read
from migrator.findings.finding import Finding, internal_error
from migrator.language import _
from migrator.names.index import ModuleIndex
from migrator.project.call_graph import CallGraph, Key
from migrator.project.modules import ModuleFacts, scan_module
from migrator.report.log_file import log_trace
from migrator.report.rows import SKIPPED
from migrator.run.project_files import check_files

if TYPE_CHECKING:
    from migrator.analyze.run import Row, Survey
    from migrator.run.processes import Progress

FULL = "full_unsupported_results.csv"
_TABLES = {
    "unsupported": {"api": "framework_unsupported_op.csv", "cuda": "cuda_op.csv"},
    "migration_needed": dict.fromkeys(("api", "cuda"), "migration_needed_op.csv"),
    "unknown": dict.fromkeys(("api", "cuda"), "unknown_op.csv"),
}
_SEVERITIES = {"unsupported": "error", "unknown": "warning", "migration_needed": "info"}
_SHOWN_STEPS = 12
_NOT_LIBRARY = re.compile(
    r"(?:^|/)(?:tests?|testing_utils|examples?|docs?|benchmarks?|scripts?|tools|\.ci|projects|build)/"
    r"|(?:^|/)(?:setup|conftest|test_\w+|\w+_test)\.py$"
)


def find(survey: Survey, progress: Progress) -> Iterator[Row]:
    """Two rows for each public function, class and module with a verdict, and one for a skipped file."""
    # Where the folder itself is a package, and packages do not lie in it, its name begins the modules'.
    package = survey.root.resolve().name if (survey.root / "__init__.py").is_file() else ""
    skipped: dict[str, str] = {}
    modules: list[ModuleFacts] = []
    steps: dict[Key, Steps] = {}
    findings: dict[str, Sequence[Finding]] = {}
    for facts, own_steps, found in _read(survey, package, skipped, progress):
        if facts.name not in findings:
            modules.append(facts)
            steps.update(((facts.name, name), own) for name, own in own_steps.items())
            findings[facts.name] = found
    for name, reason in skipped.items():
        yield SKIPPED, {"file": shown(name), "reason": reason}
    library = CallGraph(modules)
    verdicts = judge(library, steps, findings)
    also = _other_names(library)
    for key, name, kind, verdict, line, end in sorted(
        _public(library, verdicts), key=lambda row: (library.modules[row[0][0]].file, row[4], row[1])
    ):
        row = {
            "file": shown(library.modules[key[0]].file),
            "line": str(line),
            "end_line": str(end),
            "api": name,
            "kind": kind,
            "verdict": verdict.word,
            "reached": verdict.reason.api,
            "status": verdict.reason.status,
            "condition": verdict.condition,
            "chain": _chain(library, verdict),
            "tips": verdict.reason.tips,
            "also": " ".join(sorted(also.get(key, set()) - {name})),
            "severity": _SEVERITIES[verdict.word],
        }
        yield FULL, row
        yield _TABLES[verdict.word][verdict.reason.kind], row


def _is_public(file: str) -> bool:
    """Whether a file belongs to the library and not to its tests, examples and tools."""
    return not _NOT_LIBRARY.search(file)


def _other_names(library: CallGraph) -> dict[Key, set[str]]:
    """The names that packages give to definitions of their modules: ``mmcv.ops.RoIAlign``."""
    found: dict[Key, set[str]] = {}
    for module, facts in library.modules.items():
        if not _is_public(facts.file):
            continue
        own = library.definition((module, ""))
        names = {name for name, values in own.values.items() if "." in values[0]}
        if facts.is_package:
            names.update(own.imports, own.values)
            for inside in (library.modules[star] for star in facts.stars if star in library.modules):
                names.update(inside.exported or (*inside.definitions, *inside.definitions[""].imports))
        for name in names:
            if not name or name.startswith("_") or "." in name:
                continue
            meant = library.named(module, name)
            if meant is None:
                continue
            if meant.kind in ("function", "class"):
                found.setdefault(meant.key, set()).add(f"{module}.{name}")
            elif meant.kind == "member" and meant.name.endswith(".apply"):
                owner = (meant.module, meant.name[: -len(".apply")])
                forward = library.method(owner, "forward")
                if forward and library.is_autograd(owner):
                    found.setdefault(forward, set()).add(f"{module}.{name}")
    return found


def _public(
    library: CallGraph, verdicts: Mapping[Key, Verdict]
) -> Iterator[tuple[Key, str, str, Verdict, int, int]]:
    """What a user of the library can call, with its verdict; a class by making and calling it."""
    for module, facts in library.modules.items():
        if not _is_public(facts.file):
            continue
        if (module, "") in verdicts:
            verdict = verdicts[module, ""]
            if verdict.word == "unsupported":
                yield (module, ""), module, "module", verdict, verdict.chain[0].line, verdict.chain[0].line
        for name, definition in facts.definitions.items():
            key = module, name
            if not name or not _is_reachable(facts, name):
                continue
            if definition.kind == "class":
                runs = [*library.construction(key), *library.instance_call(key)]
                known = [verdicts[run] for run in runs if run in verdicts]
                known.sort(key=lambda each: ("unsupported", "unknown", "migration_needed").index(each.word))
                if known and known[0].word != "migration_needed":
                    yield key, f"{module}.{name}", "class", known[0], definition.line, definition.end
            elif key in verdicts:
                kind = "method" if "." in name else "function"
                yield key, f"{module}.{name}", kind, verdicts[key], definition.line, definition.end


def _is_reachable(facts: ModuleFacts, name: str) -> bool:
    """Whether a name is not private, and not inside a function."""
    parts = name.split(".")
    if any(part.startswith("_") and not (part.startswith("__") and part.endswith("__")) for part in parts):
        return False
    around = (facts.definitions.get(".".join(parts[:length])) for length in range(1, len(parts)))
    return "#" not in name and all(outer is None or outer.kind == "class" for outer in around)


def _chain(library: CallGraph, verdict: Verdict) -> str:
    steps = [
        f"{link.key[1] or link.key[0]} ({shown(library.modules[link.key[0]].file)}:{link.line})"
        for link in verdict.chain
    ]
    if len(steps) > _SHOWN_STEPS:
        steps = [*steps[: _SHOWN_STEPS // 2], "…", *steps[-_SHOWN_STEPS // 2 :]]
    return " -> ".join([*steps, verdict.reason.api])


def _read(
    survey: Survey, package: str, skipped: dict[str, str], progress: Progress
) -> Iterator[tuple[ModuleFacts, dict[str, Steps], Sequence[Finding]]]:
    """Every Python file of the library, what the rules find in it; ``skipped`` gets why one is not read."""
    entries = [entry for entry in survey.entries if entry.kind == "python"]
    skipped.update((entry.name, entry.reason) for entry in survey.entries if entry.kind == "unreadable")
    texts = {}
    for entry in entries:
        try:
            texts[entry.name] = read(entry.path, entry.name).text
        except Unreadable as error:
            skipped[entry.name] = str(error)
    if survey.results:
        results = (survey.results[shown(name)] for name in texts)
    else:
        entries = [entry for entry in entries if entry.name in texts]
        done = check_files(entries, survey.settings, survey.project, survey.jobs, lambda *_: None)
        results = (one.result for _, one in done)
    for number, (name, result) in enumerate(zip(texts, results), 1):
        progress("analysing", number, len(texts))
        try:
            index = ModuleIndex(texts[name], ())
            facts, steps = scan_module(name, index, package), read_steps(index, result.findings)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            skipped[name] = result.skipped or _("cannot be parsed: {error}", error=error)
            continue
        except Exception as error:
            failed = internal_error(name, error)
            log_trace(failed)
            skipped[name] = failed.skipped
            continue
        yield facts, steps, result.findings
