"""Progress bars are shown by one rank."""

from __future__ import annotations

import ast

from migrator.convert.draft import DIST, Draft
from migrator.convert.program import Program
from migrator.convert.syntax import function_of
from migrator.project.distributed_names import listed


def show_bars_once(program: Program, draft: Draft) -> None:
    """Plan ``disable=`` for the bars that have none."""
    for file, call in program.nodes(ast.Call):
        given = any(one.arg in ("disable", None) for one in call.keywords)
        if given or not listed("bars", file.called(call)):
            continue
        disable = "disable=dist.get_rank() != 0"
        if file is not program.entry or function_of(call) is None:
            disable = "disable=dist.is_initialized() and dist.get_rank() != 0"
        draft.change_arguments(file, call, [], [disable])
        draft.of(file).imports.append(DIST)
        draft.changed(file, call, "one rank shows the bar")
