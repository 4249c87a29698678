"""A program for one device becomes one for many: its new texts, and what there is to say of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from migrator.convert.distributed.plan import plan
from migrator.convert.draft import Draft, UncertainError, converted
from migrator.convert.load import UNREADABLE, AlreadyDistributedError, load
from migrator.convert.program import Program
from migrator.convert.write import NotPlacedError
from migrator.core.check import Converted
from migrator.findings.finding import internal_error
from migrator.language import N_, _
from migrator.project.definitions import Definitions
from migrator.project.imports import Read


def convert(
    entry: str, read: Read, target: str = "", root: Path | None = None, others: Collection[str] = ()
) -> Conversion:
    """Convert the program that the file ``entry`` starts. All of it is converted, or nothing.

    ``read`` gives the text of a project's file by its path, None where there is none; ``target``
    is the model's name, where the user gives it. ``root`` is the project's folder: with it jedi follows names
    where their files alone say too little. ``others`` are the project's Python files. Nothing is raised for
    what the files hold.
    """
    try:
        return _converted(entry, read, target, root, others)
    except Exception as error:  # a mistake of ours: the script stays as it is
        files = {entry: Converted("", failed=internal_error(entry, error))}
        return Conversion(entry, files, reason=f"internal error: {error!r}")


def _converted(entry: str, read: Read, target: str, root: Path | None, others: Collection[str]) -> Conversion:
    try:
        folders = (root / Path(entry).parent,) if root else ()
        program = load(entry, read, Definitions(root, folders) if root else None)
    except AlreadyDistributedError:
        return Conversion(entry, already=True)
    except UNREADABLE:
        return Conversion(entry, reason="it cannot be parsed")
    try:
        draft = plan(program, read, target, others)
        files = converted(program.files, draft)
    except UncertainError as error:
        return _by_hand(program, error)
    except (NotPlacedError, SyntaxError) as error:
        return _by_hand(program, UncertainError("no_place", error=error))
    return Conversion(entry, files)


def _by_hand(program: Program, error: UncertainError) -> Conversion:
    """Nothing is changed; the findings hold the lines to write."""
    draft = Draft()
    draft.refuse(error.file or program.entry, error)
    for key in ("ranks_meet", "model_to_wrap", "data_to_share", "files_to_write"):
        draft.report(key, program.entry, None)
    return Conversion(program.entry.name, converted(program.files, draft), reason=error.text.message)


@dataclass(frozen=True)
class Conversion:
    """What became of a program. ``files`` are those that changed or of which there is something to say.

    ``reason`` says why it is not converted, empty where it is; ``already``: it was for many devices before.
    """

    entry: str
    files: dict[str, Converted] = field(default_factory=dict)
    reason: str = ""
    already: bool = False

    def line(self) -> str:
        """What the user reads of it."""
        if self.already:
            return _("{entry} is distributed already: it is only migrated", entry=self.entry)
        if self.reason:
            more = _("manual_review.csv has the lines to write")
            if any(one.failed for one in self.files.values()):
                more = _("npumigrate.log has the details")
            stays = N_("{entry} stays a program for one device: {reason} ({more})")
            return _(stays, entry=self.entry, reason=self.reason, more=more)
        changed = sum(bool(one.edits) for one in self.files.values())
        return _("{entry} trains on many NPUs; files changed for that: {n}", entry=self.entry, n=changed)
