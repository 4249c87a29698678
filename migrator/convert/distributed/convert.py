"""A program for one card becomes one for many: its new texts, and what there is to say of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Optional

from migrator.convert.distributed.plan import SET_UP, plan
from migrator.convert.distributed.training import UncertainError
from migrator.convert.draft import Draft, converted
from migrator.convert.program import AlreadyDistributedError, Program, load
from migrator.convert.result import Conversion
from migrator.convert.write import NotPlacedError
from migrator.project.definitions import Definitions


def convert(
    entry: str, read: Callable[[str], Optional[str]], target: str = "", root: Path | None = None
) -> Conversion:
    """Convert the program that the file ``entry`` starts. All of it is converted, or nothing.

    ``read`` gives the text of a project's file by its path, None where there is none; ``target``
    is the model's name, where the user gives it. ``root`` is the project's folder: with it jedi follows names
    where their files alone say too little. Nothing is raised for what the files hold.
    """
    try:
        folders = (root / Path(entry).parent,) if root else ()
        program = load(entry, read, Definitions(root, folders) if root else None)
    except AlreadyDistributedError:
        return Conversion(entry, already=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Conversion(entry, reason="it cannot be parsed")
    try:
        draft = plan(program, target)
        files = converted(program.files, draft)
    except UncertainError as error:
        return _by_hand(program, error)
    except (NotPlacedError, SyntaxError) as error:
        return _by_hand(program, UncertainError(f"a change has no place ({error})", "Convert it by hand."))
    return Conversion(entry, files)


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
    return Conversion(program.entry.name, converted(program.files, draft), reason=error.message)
