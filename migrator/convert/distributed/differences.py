"""What may differ between the ranks and is nowhere placed: it is reported, with the lines to write."""

from __future__ import annotations

import ast
import re
from typing import Any

from migrator.convert.distributed.training import Training
from migrator.convert.draft import Draft
from migrator.convert.program import File, Program
from migrator.convert.syntax import dotted, function_of


def report_differences(program: Program, draft: Draft, found: list[Training]) -> None:
    """Add it to the draft."""
    texts = " ".join(file.text for file in program.files.values())
    seeded = re.search(r"\bmanual_seed\(|\bseed_everything\(|\brandom_state\s*=", texts)
    for file in program.files.values():
        for call in file.nodes(ast.Call):
            name = file.called(call)
            last = (name or dotted(call.func)).split(".")[-1] or getattr(call.func, "attr", "")
            if last == "ReduceLROnPlateau":
                draft.report("scheduler_metric", file, call)
            elif (
                last == "random_split" and not seeded and not any(k.arg == "generator" for k in call.keywords)
            ):
                draft.report("random_split", file, call)
            elif last == "SummaryWriter" or name == "wandb.init":
                draft.report("own_logs", file, call)
            elif last == "open" and _writes(call):
                draft.report("opened_by_every_rank", file, call)
            elif name == "torch.load" and any(_comes_after(file, call, one) for one in found):
                draft.report("read_after_training", file, call)
            elif name == "torch.load" and not _given(call, "map_location"):
                draft.report("map_location", file, call)
            elif any(k.arg == "download" and getattr(k.value, "value", None) is True for k in call.keywords):
                draft.report("download", file, call)
            elif name == "os.mkdir" or (name == "os.makedirs" and not _given(call, "exist_ok")):
                draft.report("folder", file, call)
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
                draft.report("summed_loss", file, node)
            elif _compares_within(file, node):
                draft.report("within_batch", file, node)


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
                draft.report("early_stop", file, node)
