"""Where a program trains: the loops and functions that run once a step."""

from __future__ import annotations

import ast
import re
from typing import Union

from migrator.names.index import ModuleIndex
from migrator.names.tree import FUNCTIONS, Function, called_name, holder_of, last_name

# What stands below such a condition is not done in every step.
_NOW_AND_THEN = re.compile(
    r"log|print|verbos|debug|eval|valid|test|save|rank|master|main_process|last|display|summar|plot|wandb|tensorboard"
    r"|writer|visual|freq|interval|every|nan|finite|profil|metric|report|checkpoint|progress|pbar",
    re.IGNORECASE,
)
_OPTIMIZER = re.compile(r"optim|^opt|^solver|scaler", re.IGNORECASE)
# Functions that compute gradients to measure or to check something.
_NO_TRAINING = re.compile(r"_*(?:test|check|bench|profil|measur|backward$|step$|__call__$)", re.IGNORECASE)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
Region = Union[ast.For, ast.AsyncFor, ast.While, Function]


def training_regions(index: ModuleIndex) -> list[Region]:
    """The innermost loops, or functions without one, that call ``backward()`` or step an optimizer."""
    regions: dict[int, Region] = {}
    for call in index.calls:
        name = called_name(call)
        if name == "backward" or (name == "step" and _OPTIMIZER.search(last_name(holder_of(call)))):
            region = _region(index, call)
            if region is not None:
                regions[id(region)] = region
    for function in index.functions:
        if function.name == "training_step" and index.class_of(function) is not None:
            regions[id(function)] = function
    # The larger one of two is enough: its steps are those of the smaller one as well.
    return [r for r in regions.values() if not any(id(up) in regions for up in index.above(r))]


def _region(index: ModuleIndex, node: ast.AST) -> Region | None:
    """The innermost loop around a node within its function; else the function, unless it tests something."""
    function = index.function_of(node)
    if function is not None and _NO_TRAINING.match(function.name):
        return None
    around = index.above(index.statement_of(node))
    return next((up for up in around if isinstance(up, (*LOOPS, *FUNCTIONS))), None)


def every_step(index: ModuleIndex, node: ast.AST, regions: list[Region]) -> Region | None:
    """The region in whose every step a node is reached; None where it is reached now and then, or never."""
    statement = index.statement_of(node)
    if statement in regions:
        return None  # the head of the loop
    for child, up in index.way_up(statement):
        if (isinstance(up, ast.If) and _is_rare(index, up)) or isinstance(up, ast.ExceptHandler):
            return None
        region = next((each for each in regions if each is up), None)
        if region is not None:
            return None if child in getattr(region, "orelse", ()) else region
        if isinstance(up, (*FUNCTIONS, ast.ClassDef)):
            return None
    return None


def _is_rare(index: ModuleIndex, statement: ast.If) -> bool:
    if any(isinstance(node, ast.Mod) for node in ast.walk(statement.test)):
        return True
    return bool(_NOW_AND_THEN.search(index.segment(statement.test)))


def losses(index: ModuleIndex, region: Region) -> set[str]:
    """The names of tensors in a region: those that ``backward()`` is called on, or given to ``scale()``."""
    names = set()
    for call in index.calls:
        if not region.lineno <= call.lineno <= (region.end_lineno or 0):
            continue
        if called_name(call) == "backward" and isinstance(call.func, ast.Attribute):
            value = call.func.value
            if isinstance(value, ast.Call) and called_name(value) == "scale" and value.args:
                value = value.args[0]
            if isinstance(value, ast.Name):
                names.add(value.id)
    return names
