"""What a lint run writes into the files: fixes, and comments that suppress findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from migrator.files.document import Document, document, encoded
from migrator.files.errors import CannotWrite, Unreadable, shown
from migrator.files.replacing import replace_file
from migrator.files.source import read_bytes
from migrator.lint.cells import in_cells
from migrator.lint.checking import Checker, Trouble
from migrator.lint.diagnostic import Diagnostic
from migrator.lint.files import Target, name_in_project
from migrator.lint.options import ignored_codes, may_be_fixed, severity_at_least, with_wanted_fixes
from migrator.lint.texts import Texts
from migrator.run.loading import Loader

# How often a rule has findings that do not count, by the line that they are in.
_Hidden = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Own:
    """The findings of one file, with places in its checked text; ``counting`` are those that count."""

    target: Target
    found: Sequence[Diagnostic]
    counting: list[Diagnostic]


def with_findings(
    found: Mapping[Path, list[Diagnostic]],
    counting: Sequence[Diagnostic],
    targets: Sequence[Target],
    texts: Texts,
) -> Iterator[Own]:
    """Each file with findings that count; ``counting`` has the places that a person sees."""
    visible = {_place(item) for item in counting}
    for target in targets:
        every = found.get(target.place, [])
        pairs = zip(every, texts.placed(target, every))
        own = [item for item, placed in pairs if _place(placed) in visible]
        if own:
            yield Own(target, every, own)


@dataclass
class Changes:
    """Changes files, or with ``dry`` only says how.

    ``changed`` has the bytes of each file before and after, ``fixed`` how often each rule was.
    """

    texts: Texts
    checker: Checker
    loader: Loader
    dry: bool
    trouble: Trouble
    changed: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)
    fixed: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def add_noqa(self, file: Own) -> int:
        """Add a comment for each finding that counts; gives the number of rows that got one."""
        from migrator.lint.suppressions import added_noqa

        item = self._document(file.target)
        if item is None:
            return 0
        text, rows = added_noqa(item.text, file.counting)
        return rows if self._write(file.target, item, text) else 0

    def fix(self, file: Own, fixing: str) -> list[Diagnostic]:
        """Make the fixes, the ``safe`` ones or the ``unsafe`` ones too; gives the findings that remain."""
        target, own = file.target, file.counting
        item = self._document(target)
        if item is None:
            return []
        placed = self.texts.placed(target, own)
        if not any(item.fix and (fixing == "unsafe" or item.safely_fixable) for item in own):
            return placed
        from migrator.lint.engines import engine_for
        from migrator.lint.fixing import fix_text

        hidden = self._hidden(file)
        ignored = ignored_codes(target.options, target.place)
        engine = engine_for(self.checker.rules(target), fixing)
        wanted = [one for one in own if may_be_fixed(one, target.options)]
        done = fix_text(engine, name_in_project(target), item.text, self.loader.project(), wanted, ignored)
        if done.trouble:
            self.trouble(f"{shown(target.path)}: not fixed: {done.trouble}")
            return placed
        if not self._write(target, item, done.text):
            return placed
        self.fixed[target.path] = done.counts
        return self._remaining(target, ignored, hidden)

    def _document(self, target: Target) -> Optional[Document]:
        """A file as it is now, None where it cannot be read any more."""
        try:
            return document(self.texts.data(target), target.path)
        except Unreadable as error:
            self.trouble(f"{shown(target.path)}: not changed: {error}")
            return None

    def _hidden(self, file: Own) -> _Hidden:
        rest = [item for item in file.found if item not in file.counting]
        return Counter((item.code, self.texts.line(item)) for item in self.texts.placed(file.target, rest))

    def _remaining(self, target: Target, ignored: tuple[str, ...], hidden: _Hidden) -> list[Diagnostic]:
        """What is found in a file that was fixed, without what did not count before."""
        from migrator.lint.engines import check_document

        _, data = self.changed[target.path]
        self.texts.change(target, data)
        new = document(data, target.path)
        rules = self.checker.rules(target)
        checked = check_document(
            rules, target.path, name_in_project(target), new, self.loader.project(), ignored
        )
        every = with_wanted_fixes(checked.found, target.options)
        left = [item for item in every if severity_at_least(item.severity, target.options.severity)]
        remaining = []
        for item in in_cells(new.notebook, left) if new.notebook else left:
            key = (item.code, self.texts.line(item))
            if hidden[key] > 0:  # known, or on a line that is none of this run's
                hidden[key] -= 1
            else:
                remaining.append(item)
        return remaining

    def _write(self, target: Target, item: Document, text: str) -> bool:
        """Put a new text into its file; says whether anything changed."""
        try:
            data = encoded(item, text)
        except Unreadable as error:
            self.trouble(f"{shown(target.path)}: not changed: {error}")
            return False
        if data == item.data:
            return False
        if not self.dry and target.place not in self.texts.given:
            try:
                if read_bytes(target.place) != item.data:
                    raise Unreadable("it was changed meanwhile")
                replace_file(target.place, data)
            except Unreadable as error:
                self.trouble(f"{shown(target.path)}: not changed: {error}")
                return False
            except CannotWrite as error:
                self.trouble(str(error))
                return False
        self.changed[target.path] = (item.data, data)
        return True


def _place(item: Diagnostic) -> tuple[str, Optional[int], int, int, str]:
    return item.path, item.cell, item.row, item.column, item.code
