"""What may differ between the ranks and is nowhere placed: it is reported, with the lines to write."""

from __future__ import annotations

import ast
import re
from typing import Any

from migrator.convert.distributed.training import Training
from migrator.convert.draft import Draft
from migrator.convert.program import Program
from migrator.convert.syntax import File, dotted, function_of


def report_differences(program: Program, draft: Draft, found: list[Training]) -> None:
    """Add it to the draft."""
    texts = " ".join(file.text for file in program.files.values())
    seeded = re.search(r"\bmanual_seed\(|\bseed_everything\(|\brandom_state\s*=", texts)
    for file in program.files.values():
        for call in file.nodes(ast.Call):
            name = file.called(call)
            last = (name or dotted(call.func)).split(".")[-1] or getattr(call.func, "attr", "")
            if last == "ReduceLROnPlateau":
                draft.report(
                    file,
                    call,
                    "the metric that steps this scheduler has to be the same on every rank",
                    "If it is of the training batches, before step(loss) write: loss = torch.tensor(loss, "
                    "device='cuda'); dist.all_reduce(loss); loss = loss.item() / dist.get_world_size()",
                )
            elif (
                last == "random_split" and not seeded and not any(k.arg == "generator" for k in call.keywords)
            ):
                draft.report(
                    file,
                    call,
                    "each rank splits the data in its own way",
                    "Write generator=torch.Generator().manual_seed(0) in the call.",
                )
            elif last == "SummaryWriter" or name == "wandb.init":
                draft.report(
                    file,
                    call,
                    "every rank logs its own run",
                    "Log on one rank: if dist.get_rank() == 0:, here and at the uses.",
                )
            elif last == "open" and _writes(call):
                draft.report(
                    file, call, "every rank writes this file", "Write it below: if dist.get_rank() == 0:"
                )
            elif name == "torch.load" and any(_comes_after(file, call, one) for one in found):
                draft.report(
                    file,
                    call,
                    "rank 0 may still be writing this file",
                    "Before it, where every rank comes by, write: dist.barrier()",
                )
            elif name == "torch.load" and not _given(call, "map_location"):
                draft.report(
                    file,
                    call,
                    "every rank loads this onto the card from which it was saved",
                    "Write map_location='cpu' in the call.",
                )
            elif any(k.arg == "download" and getattr(k.value, "value", None) is True for k in call.keywords):
                draft.report(
                    file,
                    call,
                    "every rank downloads the data at the same time",
                    "Have them there before the start, or put before it: if dist.get_rank() != 0: "
                    "dist.barrier(); and behind it: if dist.get_rank() == 0: dist.barrier()",
                    "info",
                )
            elif name == "os.mkdir" or (name == "os.makedirs" and not _given(call, "exist_ok")):
                draft.report(
                    file,
                    call,
                    "the first rank makes this folder, and the others may fail on it",
                    "Write os.makedirs(folder, exist_ok=True)",
                )
    for training in found:
        _whole_batch(program, draft, training)
        if training.epochs:
            _breaks(draft, training.epochs.file, training.epochs.loop, training.batches)


def _whole_batch(program: Program, draft: Draft, training: Training) -> None:
    """Report a loss that means something else where each rank has a part of the batch."""
    for file in program.files.values():
        for node in file.nodes(ast.Call, ast.BinOp):
            if id(node) not in training.inside and "loss" not in _owner(node).lower():
                continue
            if isinstance(node, ast.Call) and any(
                one.arg == "reduction" and getattr(one.value, "value", "") == "sum" for one in node.keywords
            ):
                draft.report(
                    file,
                    node,
                    "a loss that is summed over the batch: of its gradients the ranks take the mean",
                    "For those of the whole batch multiply the loss by dist.get_world_size().",
                    "info",
                )
            elif _compares_within(file, node):
                draft.report(
                    file,
                    node,
                    "samples are compared within the batch: each rank does it for its own ones",
                    "To compare those of all ranks write before it: features = "
                    "torch.cat(torch.distributed.nn.functional.all_gather(features))",
                )


def _owner(node: Any) -> str:
    """The class in which a node stands."""
    up = node
    while up is not None and not isinstance(up, ast.ClassDef):
        up = getattr(up, "parent", None)
    return up.name if up is not None else ""


def _compares_within(file: File, node: Any) -> bool:
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
    modes = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and set("wax+") & set(str(mode.value)) for mode in modes)


def _comes_after(file: File, call: ast.Call, training: Training) -> bool:
    """Whether a call stands behind the loop over epochs, in the same function."""
    epochs = training.epochs
    if epochs is None or epochs.file is not file or function_of(call) is not function_of(epochs.loop):
        return False
    return bool(call.lineno > (epochs.loop.end_lineno or 0))


def _given(call: ast.Call, name: str) -> bool:
    return any(keyword.arg == name for keyword in call.keywords)


def _breaks(draft: Draft, file: File, loop: Any, batches: Any) -> None:
    for node in ast.walk(loop):
        if isinstance(node, ast.Break):
            up = node.parent  # type: ignore[attr-defined]
            while not isinstance(up, (ast.For, ast.While)):
                up = up.parent
            if up is loop and up is not batches:
                draft.report(
                    file,
                    node,
                    "all ranks have to stop in the same epoch, or those that go on wait for the others",
                    "Let the condition depend on what is the same on every rank: a metric of the whole "
                    "validation set, or a reduced one.",
                )
