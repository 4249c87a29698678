"""What may differ between the ranks and is nowhere placed: it is reported, with the lines to write."""

from __future__ import annotations

import ast
import re

from migrator.convert.distributed.find.training import Training
from migrator.convert.draft import Draft
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, method_name
from migrator.language import _
from migrator.names.tree import argument_of


def report_differences(program: Program, draft: Draft, found: list[Training]) -> None:
    """Add it to the draft."""
    texts = " ".join(file.text for file in program.files.values())
    seeded = re.search(r"\bmanual_seed\(|\bseed_everything\(|\brandom_state\s*=", texts)
    for file, call in program.nodes(ast.Call):
        name = file.called(call)
        last = (name or dotted(call.func)).split(".")[-1] or method_name(call)
        reasons = {
            "scheduler_metric": last == "ReduceLROnPlateau",
            "random_split": last == "random_split" and not seeded and not argument_of(call, "generator"),
            "own_logs": last == "SummaryWriter" or name == "wandb.init",
            "opened_by_every_rank": last == "open" and _writes(call),
            "read_after_training": name == "torch.load"
            and any(_comes_after(file, call, one) for one in found),
            "map_location": name == "torch.load" and not argument_of(call, "map_location"),
            "download": getattr(argument_of(call, "download"), "value", None) is True,
            "folder": _makes_folder(name, call) and not _may_exist(draft, file, call),
        }
        for key in [key for key, holds in reasons.items() if holds][:1]:
            draft.report(key, file, call)
    for training in found:
        _whole_batch(program, draft, training)


def _makes_folder(name: str, call: ast.Call) -> bool:
    return name == "os.mkdir" or (name == "os.makedirs" and not argument_of(call, "exist_ok"))


def _may_exist(draft: Draft, file: File, call: ast.Call) -> bool:
    """Plan that a folder may be there already: another rank makes it, too. False where that is not plain."""
    if len(call.args) != 1 or call.keywords or not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "mkdir":
        draft.replace(file, call.func, f"{file.index.segment(call.func.value)}.makedirs")
    draft.change_arguments(file, call, [], ["exist_ok=True"])
    draft.changed(file, call, _("another rank may have made the folder"))
    return True


def _whole_batch(program: Program, draft: Draft, training: Training) -> None:
    """Report a loss that means something else where each rank has a part of the batch."""
    for file, node in program.nodes(ast.Call, ast.BinOp):
        owner = next((up.name for _, up in file.above(node) if isinstance(up, ast.ClassDef)), "")
        if id(node) not in training.inside and "loss" not in owner.lower():
            continue
        if isinstance(node, ast.Call) and getattr(argument_of(node, "reduction"), "value", "") == "sum":
            draft.report("summed_loss", file, node)
        elif _compares_within(file, node):
            draft.report("within_batch", file, node)


def _compares_within(file: File, node: ast.AST) -> bool:
    """Whether a node multiplies a matrix by itself, transposed: ``features @ features.T``."""
    sides = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        sides = [node.left, node.right]
    elif isinstance(node, ast.Call) and file.called(node) in ("torch.matmul", "torch.mm"):
        sides = node.args[:2]
    if len(sides) != 2 or not dotted(sides[0]):
        return False
    other = sides[1].func if isinstance(sides[1], ast.Call) else sides[1]
    return isinstance(other, ast.Attribute) and other.attr in ("T", "mT", "t") and dotted(other.value) != ""


def _writes(call: ast.Call) -> bool:
    """Whether a call of ``open`` names a mode in which files are written."""
    modes = [*call.args[1:2], argument_of(call, "mode")]
    return any(isinstance(mode, ast.Constant) and set("wax+") & set(str(mode.value)) for mode in modes)


def _comes_after(file: File, call: ast.Call, training: Training) -> bool:
    """Whether a call stands behind the loop over epochs, in the same function."""
    epochs = training.epochs
    if epochs is None or epochs.file is not file or call.lineno <= (epochs.loop.end_lineno or 0):
        return False
    return file.function_of(call) is file.function_of(epochs.loop)
