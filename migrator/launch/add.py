"""The launcher in a migrated project: which script it starts, and whether there is one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from migrator.api_support.versions import TorchVersion
from migrator.files.document import is_notebook
from migrator.files.errors import SourceError, shown
from migrator.files.output import OutputTree, add
from migrator.files.source import text_below
from migrator.language import N_, _
from migrator.launch.script import NAME, run_script
from migrator.launch.target import start_of
from migrator.project.entry import Candidate, has_relative_imports
from migrator.project.frameworks import NAMES, TORCH, names_of, other_framework, why_not_started
from migrator.project.imports import Read
from migrator.project.start_ways import StartWay, start_ways

_MOST = 30  # scripts of which the launcher knows how they are started
_RANKS = {
    "none": N_(" with one rank: no use of ranks was found"),
    "unseen": N_(" with one rank: another package does the training (--nproc N)"),
    "program": N_(", which starts its own ranks"),
}


@dataclass(frozen=True)
class Launcher:
    """What became of the launcher. ``entry`` is empty where there is none, ``others`` may be meant as well.

    ``way`` is how its ranks come to be. ``kept``: the project has a file of that name, which stays.
    ``frameworks`` are those of the project's programs that are not PyTorch's.
    """

    entry: str
    others: tuple[str, ...] = ()
    kept: bool = False
    way: StartWay | None = None
    frameworks: tuple[str, ...] = ()

    def line(self) -> str:
        """What the user reads of it."""
        if self.kept:
            return _("{name} belongs to the project: left unchanged", name=NAME)
        if not self.entry and self.frameworks:
            names = names_of(self.frameworks)
            said = _("no PyTorch training script found; found programs of {names}", names=names)
            start = _("npumigrate launch mindspore -o RESULT -m FILE writes a script that starts one")
            return f"{said}; {start}" if "mindspore" in self.frameworks else said
        if not self.entry:
            return _("no training script was found: give it with -m FILE")
        others = _(" (other candidates: {others}; -m FILE)", others=len(self.others)) if self.others else ""
        ranks = _(_RANKS.get(self.way.ranks, "")) if self.way else ""
        starts = N_("bash {name} starts {entry}{ranks}{others}")
        return _(starts, name=NAME, entry=shown(self.entry), ranks=ranks, others=others)


def add_launcher(
    tree: OutputTree,
    candidates: Sequence[Candidate],
    main: str | None,
    read: Read,
    mended: bool,
    version: TorchVersion,
    frameworks: Sequence[str] = (),
    seen: Callable[[int], object] = lambda count: None,
) -> Launcher:
    """Write ``run_distributed_npu.sh`` for the script ``main``, or for the first of ``candidates``.

    ``read``, ``mended`` and ``seen`` are what ``start_ways`` takes, ``frameworks`` those of programs that are
    not PyTorch's. A file of that name in the project stays. Raises SourceError where the project holds no
    ``main``, or where it is such a program.
    """
    others = tuple(one.name for one in candidates)
    if main:
        entry = place_of(tree.source, main)
        folder = tree.source if os.path.isdir(tree.source) else tree.source.parent
        text = text_below(folder, entry) or ""
        refuse_other_framework(entry, text)
        relative = has_relative_imports(text)
    elif candidates:
        entry, relative = candidates[0].name, candidates[0].relative_imports
    else:
        return Launcher("", frameworks=tuple(frameworks))
    if os.path.lexists(os.path.join(tree.building, NAME)):
        return Launcher(entry, kept=True)
    ways = start_ways(dict.fromkeys([entry, *others[:_MOST]]), read, mended, seen)
    start = start_of(
        entry, relative, lambda name: os.path.isfile(os.path.join(tree.source, name)), ways, version
    )
    add(tree, NAME, run_script(start).text.encode("utf-8", "surrogateescape"), mode=0o755)
    return Launcher(entry, tuple(name for name in others if name != entry), way=start.way)


def place_of(source: Path, main: str) -> str:
    """``main`` as a path below the project, also where it is given from the current folder.

    Raises SourceError where the project holds no such file, and for a notebook: none can be started so. A
    project that is one file holds only that.
    """
    if is_notebook(main):
        raise SourceError("{main} (-m/--main) is a notebook: ranks start from a script", main=shown(main))
    root = os.path.realpath(source if os.path.isdir(source) else os.path.dirname(source) or ".")
    for path in (os.path.join(root, main), os.path.realpath(main)):
        inside = os.path.relpath(os.path.realpath(path), root)
        held = os.path.isdir(source) or os.path.realpath(path) == os.path.realpath(source)
        if held and os.path.isfile(path) and not inside.startswith(os.pardir + os.sep):
            return inside.replace(os.sep, "/")
    raise SourceError("{main} (-m/--main) is not a file in {source}", main=shown(main), source=shown(source))


def refuse_other_framework(entry: str, text: str, wanted: str = TORCH) -> None:
    """Raise SourceError where the script ``entry`` is not a program of the ``wanted`` framework."""
    framework = other_framework(text)
    if framework and wanted == TORCH:
        raise SourceError(why_not_started(shown(entry), framework))
    if framework != wanted and wanted != TORCH:
        raise SourceError(f"{shown(entry)} is no program of {NAMES[wanted]}")
