"""From the files of a run to their findings: from the cache, or by the engine where it does not know them.

The engine is loaded only where the cache does not know a file: most runs need none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, Any, Callable, Optional

from migrator.files.errors import Unreadable, shown
from migrator.findings.finding import Edit, Finding, Fix
from migrator.lint.files import Target, name_in_project
from migrator.lint.options import Options, ignored_codes, with_origin
from migrator.lint.rule_sets import RuleSet, rule_set, rules_of
from migrator.lint.texts import Texts
from migrator.run.cache import Cache, digest
from migrator.run.loading import Loader, PythonFile

if TYPE_CHECKING:
    from migrator.lint.file import Job

Trouble = Callable[[str], None]
# What is going on, how many files of how many.
Progress = Callable[[str, int, int], None]


def no_progress(_stage: str, _done: int, _total: int) -> None:
    """For who does not want to know."""


@dataclass(frozen=True)
class Checked:
    """The findings that remain in a file, and how many its comments suppress.

    ``trouble`` is the reason for which the file could not be looked at.
    """

    found: tuple[Finding, ...] = ()
    suppressed: int = 0
    trouble: str = ""


class Checker:
    """Looks at files. ``trouble`` is given a line for each file or set of rules that cannot be used."""

    def __init__(
        self,
        cache: Cache,
        texts: Texts,
        loader: Loader,
        noqa: bool,
        processes: Optional[int],
        trouble: Trouble,
    ) -> None:
        self._cache = cache
        self._texts = texts
        self._loader = loader
        self._noqa = noqa
        self._processes = processes
        self._trouble = trouble
        self._rule_keys: dict[RuleSet, bytes] = {}
        self._rules: Optional[tuple[Options, RuleSet]] = (
            None  # those of the last file: the next one's are the same
        )

    def readable(self, targets: Sequence[Target]) -> list[tuple[Target, bytes]]:
        """Read every file once; gives those that can be read, with the digest of their content."""
        found = []
        for target in targets:
            if not self._usable(target):
                continue
            try:
                data = self._texts.data(target)
                content = digest(data)
                self._loader.add(self._file(target), data, content)
            except Unreadable as error:
                self._trouble(f"{shown(target.path)}: {error}")
                continue
            found.append((target, content))
        return found

    def check(self, files: Sequence[tuple[Target, bytes]], progress: Progress) -> list[Checked]:
        """What is found in each of the files that ``readable`` gave."""
        project_key = self._loader.key()
        results: list[Optional[Checked]] = []
        missing: list[tuple[int, tuple[str, ...]]] = []
        for place, (target, content) in enumerate(files):
            ignored = ignored_codes(target.options, target.place)
            known = self._cache.get(self._key(target, content, project_key, ignored))
            results.append(unpacked(known, target.path) if known is not None else None)
            if known is None:
                missing.append((place, ignored))
        if missing:
            from migrator.lint.file import check_job
            from migrator.run.processes import processes_for, spread

            missing = [item for item in missing if self._has_rules(files[item[0]][0])]
            jobs = [self._job(files[place][0], ignored) for place, ignored in missing]
            size = sum(os.path.getsize(job.place) for job in jobs if job.data is None and job.place.exists())
            processes = processes_for(size, self._processes)
            done = spread(jobs, processes, check_job, self._loader.project())
            for number, ((place, ignored), (content, checked)) in enumerate(zip(missing, done), 1):
                results[place] = checked
                if not checked.trouble:
                    key = self._key(files[place][0], content, project_key, ignored)
                    self._cache.put(key, packed(checked))
                progress("linting", number, len(missing))
        self._cache.flush()
        return [checked or Checked() for checked in results]

    def rules(self, target: Target) -> RuleSet:
        """The rules for a file. Raises UnknownVersion and ConfigError."""
        if self._rules is None or self._rules[0] is not target.options:
            self._rules = (target.options, rule_set(target.options, self._noqa))
        return self._rules[1]

    def _usable(self, target: Target) -> bool:
        """Whether the rules for a file can be used; if not, that is told."""
        try:
            self.rules(target)
        except ValueError as error:  # UnknownVersion, ConfigError
            self._trouble(with_origin(target.options, error))
            return False
        return True

    def _key(self, target: Target, content: bytes, project: bytes, ignored: tuple[str, ...]) -> bytes:
        rules = self.rules(target)
        if rules not in self._rule_keys:
            self._rule_keys[rules] = digest(repr(astuple(rules)).encode("utf-8", "surrogatepass"))
        name = name_in_project(target).encode("utf-8", "surrogatepass")
        return digest(content, self._rule_keys[rules], project, name, repr(ignored).encode())

    def _has_rules(self, target: Target) -> bool:
        """Make the rules for a file, for the processes to come, too; what cannot be used is told."""
        from migrator.matchers.packs import RuleError

        try:
            rules_of(self.rules(target), self._cache)
        except RuleError as error:
            self._trouble(with_origin(target.options, error))
            return False
        return True

    def _job(self, target: Target, ignored: tuple[str, ...]) -> Job:
        from migrator.lint.file import Job

        file = self._file(target)
        return Job(target.path, file.path, file.name, self.rules(target), ignored, file.data)

    def _file(self, target: Target) -> PythonFile:
        return PythonFile(name_in_project(target), target.place, self._texts.given.get(target.place))


_FIELDS = tuple(field.name for field in fields(Finding) if field.name not in ("fix", "file"))


def packed(checked: Checked) -> list[Any]:
    """What ``unpacked`` takes, and JSON can hold: the findings without their file."""
    return [checked.suppressed, [_row(finding) for finding in checked.found]]


def _row(finding: Finding) -> list[Any]:
    fix: Optional[list[Any]] = None
    if finding.fix:
        made = finding.fix
        fix = [*([[e.start, e.end, e.text] for e in edits] for edits in (made.edits, made.imports))]
        fix += [made.safety, made.operation, made.message]
    return [fix, *(getattr(finding, name) for name in _FIELDS)]


def unpacked(known: list[Any], path: str) -> Checked:
    """What ``packed`` was given, for a file that the user spelled ``path``."""
    suppressed, rows = known
    return Checked(tuple(_finding(fix, values, path) for fix, *values in rows), suppressed)


def _finding(packed_fix: Optional[list[Any]], values: list[Any], path: str) -> Finding:
    fix = None
    if packed_fix:
        edits, imports, safety, operation, message = packed_fix
        own, shared = (tuple(Edit(*edit) for edit in part) for part in (edits, imports))
        fix = Fix(own, safety, operation, shared, message)
    named = dict(zip(_FIELDS, values))
    return Finding(**{**named, "span": tuple(named["span"]), "fix": fix, "file": path})
