"""What became of a program for one card, and how it is migrated."""

from __future__ import annotations

from dataclasses import dataclass, field

from migrator.core.check import Converted


@dataclass(frozen=True)
class Conversion:
    """What became of a program. ``files`` are those that changed or of which there is something to say.

    ``reason`` says why it is not converted, empty where it is; ``already``: it was for many cards before.
    """

    entry: str
    files: dict[str, Converted] = field(default_factory=dict)
    reason: str = ""
    already: bool = False

    def line(self) -> str:
        """What the user reads of it."""
        if self.already:
            return f"{self.entry} is distributed already: it is only migrated"
        if self.reason:
            failed = any(one.failed for one in self.files.values())
            more = "npumigrate.log has the details" if failed else "manual_review.csv has the lines to write"
            return f"{self.entry} stays a program for one device: {self.reason} ({more})"
        changed = sum(bool(one.edits) for one in self.files.values())
        return f"{self.entry} trains on many NPUs; files changed for that: {changed}"
