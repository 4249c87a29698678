"""A program for one card becomes one for many: its new texts, and what there is to say of them."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Optional

from migrator.distributed.draft import Draft
from migrator.distributed.find import UncertainError
from migrator.distributed.plan import SET_UP, plan
from migrator.distributed.program import AlreadyDistributedError, Program, load
from migrator.distributed.write import NotPlacedError, write
from migrator.finding import FileResult, Finding


@dataclass(frozen=True)
class Converted:
    """One file of the program: its text for many cards (the input's where it stays), and the findings."""

    before: str
    text: str
    findings: tuple[Finding, ...] = ()


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
            lines = "manual_review.csv has the lines to write"
            return f"{self.entry} stays a program for one card: {self.reason} ({lines})"
        changed = sum(one.text != one.before for one in self.files.values())
        return f"{self.entry} trains on many cards; files changed for that: {changed}"


def convert(entry: str, read: Callable[[str], Optional[str]], target: str = "") -> Conversion:
    """Convert the program that the file ``entry`` starts. All of it is converted, or nothing.

    ``read`` gives the text of a project's file by its path, None where there is none; ``target``
    is the model's name, where the user gives it. Nothing is raised for what the files hold.
    """
    try:
        program = load(entry, read)
    except AlreadyDistributedError:
        return Conversion(entry, already=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Conversion(entry, reason="it cannot be parsed")
    try:
        draft = plan(program, target)
        texts = {}
        for name, changes in draft.changes.items():
            texts[name] = write(program.files[name].text, changes)
            ast.parse(texts[name])
    except UncertainError as error:
        return _by_hand(program, error)
    except (NotPlacedError, SyntaxError) as error:
        return _by_hand(program, UncertainError(f"a change has no place ({error})", "Convert it by hand."))
    return Conversion(entry, _files(program, draft, texts))


def _files(program: Program, draft: Draft, texts: dict[str, str]) -> dict[str, Converted]:
    names = {*texts, *draft.findings}
    return {
        name: Converted(
            program.files[name].text,
            texts.get(name, program.files[name].text),
            tuple(draft.findings.get(name, ())),
        )
        for name in sorted(names)
    }


def _by_hand(program: Program, error: UncertainError) -> Conversion:
    """Nothing is changed; the findings hold the lines to write."""
    draft = Draft()
    draft.report(error.file or program.entry, error.node, error.message, error.advice, "error")
    imports = "import builtins, logging, os\nimport torch.distributed as dist\n"
    imports += "from torch.nn.parallel import DistributedDataParallel\n"
    imports += "from torch.utils.data.distributed import DistributedSampler\n\n"
    steps = (
        (
            "the ranks have to find each other",
            f"{imports}\n{SET_UP}\nFirst in the program call setup_distributed(), "
            "at its end dist.destroy_process_group().",
        ),
        (
            "the model has to be wrapped",
            "When it is on its device: model = DistributedDataParallel(model). In "
            "checkpoints: model.module.state_dict() and model.module.load_state_dict(…).",
        ),
        (
            "every rank has to train on its share of the data",
            "DataLoader(dataset, …, "
            "sampler=DistributedSampler(dataset, shuffle=True)) without shuffle=; first in each epoch: "
            "train_loader.sampler.set_epoch(epoch)",
        ),
        ("one rank has to write the files", "if dist.get_rank() == 0: torch.save(…)"),
    )
    for message, advice in steps:
        draft.report(program.entry, None, message, advice)
    return Conversion(program.entry.name, _files(program, draft, {}), reason=error.message)


def with_conversion(migrated: FileResult, converted: Converted) -> FileResult:
    """The result of migrating a converted text, with its findings at the lines of the input."""
    lines = _lines(converted.before, converted.text)
    found = []
    for finding in migrated.findings:
        first = lines[min(finding.line, len(lines)) - 1]
        last = lines[min(finding.end_line, len(lines)) - 1]
        found.append(replace(finding, line=first, end_line=max(first, last)))
    text = None if migrated.skipped else migrated.text or converted.text
    return replace(migrated, text=text, findings=(*converted.findings, *found))


def _lines(before: str, after: str) -> list[int]:
    """For each line of the new text the one of the old that it comes from, or behind which it was put."""
    old, new = before.splitlines(), after.splitlines()
    result = [1] * (len(new) or 1)
    for tag, old_first, old_last, new_first, new_last in difflib.SequenceMatcher(
        None, old, new, False
    ).get_opcodes():
        for number in range(new_first, new_last):
            offset = number - new_first if tag in ("equal", "replace") else 0
            result[number] = max(1, min(old_first + offset + (tag != "insert"), max(old_last, 1)))
    return result
