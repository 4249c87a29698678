"""A lint run from end to end: the files in, findings out, fixes made.

The engine is loaded only where the cache does not know a file: most runs need none.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

from migrator.lint import baseline
from migrator.lint.cache import Cache, digest, pack, unpack
from migrator.lint.changed_lines import changed_lines, on_changed_line
from migrator.lint.diagnostic import Checked, Diagnostic
from migrator.lint.document import NOTEBOOK, Document, document, encoded, in_cells
from migrator.lint.files import Target
from migrator.lint.jobs import Job, RuleSet
from migrator.lint.options import (
    ConfigError,
    Options,
    ignored_codes,
    rule_choice,
    severity_at_least,
    torch_version,
)
from migrator.sources.errors import Unreadable, shown
from migrator.sources.replacing import replace_file
from migrator.sources.source import LINE_END, read_bytes

if TYPE_CHECKING:
    from migrator.engine.project import Project

_CUDA = b"cuda"
# How often a rule has findings that do not count, by the line that they are in.
Hidden = Counter[tuple[str, str]]
# Facts of a file that does not define what another file has to know.
_NO_FACTS: list[Any] = []


@dataclass(frozen=True)
class Request:
    """What to do with the files. ``data`` holds the content of files that are not read from the disk."""

    targets: Sequence[Target]
    jobs: Optional[int] = None
    diff_base: str = ""
    baseline: Optional[Path] = None
    write_baseline: Optional[Path] = None
    add_noqa: bool = False
    noqa: bool = True
    fix: str = ""  # safe | unsafe; empty: fix nothing
    diff: bool = False  # show what fixes would do instead of making them
    data: Mapping[Path, bytes] = field(default_factory=dict)


@dataclass
class Outcome:
    """What was found, and what was done about it.

    ``found`` holds what counts, with places as in the files. ``troubles`` are lines
    about files that could not be looked at. ``changed`` has the new bytes of files
    that were, or with ``diff`` would be, fixed.
    """

    found: list[Diagnostic] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fixed: dict[str, Mapping[str, int]] = field(default_factory=dict)
    changed: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    suppressed: int = 0
    files: int = 0


class Run:
    """One run: its cache, its project, and what it has read of the files."""

    def __init__(self, request: Request, cache: Cache) -> None:
        self._request = request
        self._cache = cache
        self._facts: list[tuple[str, list[Any]]] = []
        self._project: Optional[Project] = None
        self._project_key = b""
        self._rule_keys: dict[RuleSet, bytes] = {}
        self._found: dict[Path, list[Diagnostic]] = {}  # with the places in the checked text
        self._new_data: dict[Path, bytes] = {}
        self._shown: tuple[Any, list[str]] = (None, [])
        self.outcome = Outcome()

    @property
    def has_stdin(self) -> bool:
        """Whether the text comes from the standard input."""
        return bool(self._request.data)

    # -- from files to findings -------------------------------------------

    def check(self) -> Outcome:
        """Look at all files, and do what was asked for with the findings.

        Raises ConfigError for a baseline, a revision or a choice of rules that cannot be used,
        CannotWrite where a file cannot be written.
        """
        outcome = self.outcome
        request = self._request
        ranges = changed_lines(request.diff_base, Path.cwd()) if request.diff_base else None
        readable = self._learn()
        outcome.files = len(readable)
        results = self._all_checked(readable)
        for (target, _), checked in zip(readable, results):
            if checked.trouble:
                outcome.troubles.append(f"{shown(target.path)}: {checked.trouble}")
            outcome.suppressed += checked.suppressed
            grave = [i for i in checked.found if severity_at_least(i.severity, target.options.severity)]
            if grave:
                self._found[target.place] = grave
                outcome.found += self._placed(target, grave)
        self._cache.flush()
        if ranges is not None:
            outcome.found = [item for item in outcome.found if on_changed_line(item, ranges)]
        if request.write_baseline is not None:
            count = baseline.write(request.write_baseline, outcome.found, self.lines)
            outcome.notes.append(f"Wrote {count} {_findings(count)} to {shown(request.write_baseline)}.")
            outcome.found = []
            return outcome
        self._leave_out_known()
        if request.add_noqa:
            self._add_noqa(readable)
        elif request.fix:
            self._fix(readable)
        return outcome

    def _learn(self) -> list[tuple[Target, bytes]]:
        """Read every file once; gives those that can be read, with the digest of their content."""
        readable = []
        for target in self._request.targets:
            if not self._usable(target):
                continue
            try:
                data = self._data(target)
                key = digest(data)
                self._facts.append((name_in_project(target), self._facts_of(target, data, key)))
            except Unreadable as error:
                self.outcome.troubles.append(f"{shown(target.path)}: {error}")
                continue
            readable.append((target, key))
        facts = [(name, facts) for name, facts in self._facts if facts]
        self._project_key = digest(repr(facts).encode("utf-8", "surrogatepass"))
        return readable

    def _usable(self, target: Target) -> bool:
        """Whether the rules for a file can be used; if not, that is told once."""
        try:
            self._rules(target)
        except ValueError as error:  # UnknownVersion, ConfigError
            self.outcome.troubles.append(_of_origin(target, error))
            return False
        return True

    def _data(self, target: Target) -> bytes:
        given = self._request.data.get(target.place)
        return given if given is not None else read_bytes(target.place)

    def _facts_of(self, target: Target, data: bytes, key: bytes) -> list[Any]:
        if _CUDA not in data:
            return _NO_FACTS
        facts_key = digest(b"facts", target.place.suffix.encode(), key)
        known = self._cache.get(facts_key)
        if known is not None:
            return list(known)
        from migrator.engine.project import scan_file

        facts = scan_file("", document(data, target.path).text)
        # The file's name is put in again when they are used: the content alone decides them.
        rows = [
            [f.name, list(f.bases), sorted(f.methods), sorted(f.stored), f.moves_tensors]
            for f in (facts.classes if facts else ())
        ]
        self._cache.put(facts_key, rows)
        return rows

    def project(self) -> Project:
        """What one file has to know of the others."""
        from migrator.engine.project import ClassFacts, Project

        if self._project is None:
            self._project = Project(
                tuple(
                    ClassFacts(file, name, tuple(bases), frozenset(methods), frozenset(stored), moves)
                    for file, rows in self._facts
                    for name, bases, methods, stored, moves in rows
                )
            )
        return self._project

    def _key(self, target: Target, content: bytes, ignored: tuple[str, ...]) -> bytes:
        rules = self._rules(target)
        if rules not in self._rule_keys:
            self._rule_keys[rules] = digest(repr(astuple(rules)).encode("utf-8", "surrogatepass"))
        name = name_in_project(target).encode("utf-8", "surrogatepass")
        return digest(content, self._rule_keys[rules], self._project_key, name, repr(ignored).encode())

    def _all_checked(self, readable: Sequence[tuple[Target, bytes]]) -> list[Checked]:
        results: list[Optional[Checked]] = []
        missing: list[tuple[int, bytes, tuple[str, ...]]] = []
        for place, (target, content) in enumerate(readable):
            ignored = ignored_codes(target.options, target.place)
            key = self._key(target, content, ignored)
            known = self._cache.get(key)
            results.append(unpack(known, target.path) if known is not None else None)
            if known is None:
                missing.append((place, key, ignored))
        if missing:
            from migrator.lint.processes import check_files

            missing = [item for item in missing if self._has_engine(readable[item[0]][0])]
            jobs = [self._job(readable[place][0], ignored) for place, _, ignored in missing]
            done = check_files(jobs, self.project(), self._request.jobs)
            for (place, key, _), checked in zip(missing, done):
                results[place] = checked
                if not checked.trouble:
                    self._cache.put(key, pack(checked))
        return [checked or Checked() for checked in results]

    def _has_engine(self, target: Target) -> bool:
        """Make the engine for a file, for the processes to come, too; what it cannot use is told."""
        from migrator.lint.engines import RuleError, engine_for

        try:
            engine_for(self._rules(target))
        except RuleError as error:
            self.outcome.troubles.append(_of_origin(target, error))
            return False
        return True

    def _rules(self, target: Target) -> RuleSet:
        return rule_set(target.options, self._request.noqa)

    def _job(self, target: Target, ignored: tuple[str, ...]) -> Job:
        data = self._request.data.get(target.place)
        return Job(target.path, target.place, name_in_project(target), self._rules(target), ignored, data)

    # -- from findings to what counts ---------------------------------------

    def _placed(self, target: Target, found: list[Diagnostic]) -> list[Diagnostic]:
        """The findings with the places that a person sees: those in cells for a notebook."""
        if not found or not target.path.lower().endswith(NOTEBOOK):
            return found
        notebook = document(self._data(target), target.path).notebook
        return in_cells(notebook, found) if notebook else found

    def lines(self, item: Diagnostic) -> Sequence[str]:
        """The source lines of the file or cell that a finding lies in, empty where they are gone."""
        place = Path(os.path.abspath(item.path))
        data = self._new_data.get(place, self._request.data.get(place))
        key = (item.path, item.cell, data)
        if self._shown[0] != key:
            self._shown = (key, _lines(item, place, data))
        return self._shown[1]

    def _leave_out_known(self) -> None:
        """Take what the baseline holds out of the findings."""
        file = self._request.baseline
        if file is None:
            return
        paths = [target.path for target in self._request.targets]
        root = file.absolute().parent
        new, matched, gone = baseline.split(self.outcome.found, baseline.read(file), self.lines, root, paths)
        self.outcome.found = new
        if matched:
            self.outcome.notes.append(
                f"{matched} {_findings(matched)} known from {shown(os.path.relpath(file))} left out."
            )
        if gone and not self._request.diff_base:
            what = f"{gone} {_findings(gone)} of {shown(os.path.relpath(file))}"
            verb = "is" if gone == 1 else "are"
            self.outcome.notes.append(f"{what} {verb} gone: write it again with --write-baseline.")

    # -- changes ---------------------------------------------------------------

    def _own(
        self, readable: Sequence[tuple[Target, bytes]]
    ) -> Iterator[tuple[Target, list[Diagnostic], Hidden]]:
        """Each file with findings that count, and how often it has others on which lines."""
        visible = {_place(item) for item in self.outcome.found}
        for target, _ in readable:
            every = self._found.get(target.place, [])
            pairs = list(zip(every, self._placed(target, every)))
            own = [item for item, placed in pairs if _place(placed) in visible]
            hidden = Counter(
                (item.code, self._line(placed)) for item, placed in pairs if _place(placed) not in visible
            )
            if own:
                yield target, own, hidden

    def _line(self, item: Diagnostic) -> str:
        lines = self.lines(item)
        return lines[item.row - 1].strip() if item.row <= len(lines) else ""

    def _add_noqa(self, readable: Sequence[tuple[Target, bytes]]) -> None:
        from migrator.lint.suppressions import added_noqa

        total = 0
        for target, own, _ in self._own(readable):
            item = document(self._data(target), target.path)
            text, rows = added_noqa(item.text, own)
            if self._try_write(target, item, text):
                total += rows
        self.outcome.found = []
        self.outcome.notes.append(f"Added {total} noqa {'comment' if total == 1 else 'comments'}.")

    def _fix(self, readable: Sequence[tuple[Target, bytes]]) -> None:
        """Make the fixes of all files, and replace their findings by those that remain."""
        remaining: list[Diagnostic] = []
        for target, own, hidden in self._own(readable):
            if any(item.fix and (self._request.fix == "unsafe" or item.safely_fixable) for item in own):
                remaining += self._fix_file(target, own, hidden)
            else:
                remaining += self._placed(target, own)
        self.outcome.found = remaining

    def _fix_file(self, target: Target, own: list[Diagnostic], hidden: Hidden) -> list[Diagnostic]:
        from migrator.lint.engines import check_document, engine_for
        from migrator.lint.fixing import fix_text

        item = document(self._data(target), target.path)
        placed = self._placed(target, own)
        ignored = ignored_codes(target.options, target.place)
        rules = self._rules(target)
        name = name_in_project(target)
        done = fix_text(engine_for(rules, self._request.fix), name, item.text, self.project(), own, ignored)
        if done.trouble:
            self.outcome.troubles.append(f"{shown(target.path)}: not fixed: {done.trouble}")
            return placed
        if not self._try_write(target, item, done.text):
            return placed
        self.outcome.fixed[target.path] = done.counts
        data = self.outcome.changed[target.path][1]
        self._new_data[target.place] = data
        new = document(data, target.path)
        checked = check_document(rules, target.path, name, new, self.project(), ignored)
        left = [i for i in checked.found if severity_at_least(i.severity, target.options.severity)]
        remaining = []
        for each in in_cells(new.notebook, left) if new.notebook else left:
            key = (each.code, self._line(each))
            if hidden[key] > 0:  # known, or on a line that is none of this run's
                hidden[key] -= 1
            else:
                remaining.append(each)
        return remaining

    def _try_write(self, target: Target, item: Document, text: str) -> bool:
        """Put a new text into its file; says whether anything changed."""
        try:
            data = encoded(item, text)
        except Unreadable as error:
            self.outcome.troubles.append(f"{shown(target.path)}: not changed: {error}")
            return False
        if data == item.data:
            return False
        self.outcome.changed[target.path] = (item.data, data)
        if not self._request.diff and target.place not in self._request.data:
            replace_file(target.place, data)
        return True


def rule_set(options: Options, noqa: bool = True) -> RuleSet:
    """What of the options decides which findings there are. Raises UnknownVersion and ConfigError."""
    mentioned = {code for item in options.per_file_ignores for code in item.codes}
    return RuleSet(
        version=torch_version(options),
        hardware=options.hw,
        select=rule_choice(options),
        ignore=options.ignore,
        rules=options.rules,
        content=digest(*map(_pack_bytes, options.rules)).hex() if options.rules else "",
        mentioned=tuple(sorted(mentioned)),
        noqa=noqa,
    )


def _of_origin(target: Target, error: Exception) -> str:
    return f"{shown(target.options.origin)}: {error}" if target.options.origin else str(error)


def _pack_bytes(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{shown(file)}: cannot be read: {(error.strerror or str(error)).lower()}"
        ) from None


def name_in_project(target: Target) -> str:
    """The file's name below the folder of its configuration."""
    name = str(target.place)
    root = str(target.options.root).rstrip(os.sep) + os.sep
    return name[len(root) :] if name.startswith(root) else name


def _lines(item: Diagnostic, place: Path, data: Optional[bytes]) -> list[str]:
    try:
        content = document(read_bytes(place) if data is None else data, item.path)
    except Unreadable:
        return []
    text = content.text
    if content.notebook is not None:
        text = next((cell.source for cell in content.notebook.cells if cell.number == item.cell), "")
    return LINE_END.split(text)


def _place(item: Diagnostic) -> tuple[str, Optional[int], int, int, str]:
    return item.path, item.cell, item.row, item.column, item.code


def _findings(count: int) -> str:
    return "finding" if count == 1 else "findings"
