"""The server: which tools it offers, and what it says of them to clients."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

from migrator import __version__
from migrator.mcp.tools import Tools

_INSTRUCTIONS = """\
npumigrate takes PyTorch projects from CUDA and NCCL to Ascend NPUs (torch_npu and HCCL). Ask look_up_api \
before you write code for NPUs, lint to find what keeps code from running there, explain_rule for the reason \
of a finding, and preview_migration for the changes that npumigrate would make. Nothing is written: apply a \
diff yourself, or run `npumigrate SRC -o OUT`. Paths are relative to the workspace {workspace}.
"""
_READ_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_RUNS_PROGRAMS = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
)


def build(
    workspace: Path, seconds: float, packs: Sequence[str] = (), verify: bool = False
) -> MCPServer[None]:
    """The server for a workspace; ``verify``: it offers to run the user's programs, too."""
    tools = Tools(workspace, seconds, packs)
    server: MCPServer[None] = MCPServer(
        "npumigrate",
        title="npumigrate",
        version=__version__,
        instructions=_INSTRUCTIONS.format(workspace=workspace),
        log_level="WARNING",
    )
    for tool, title in (
        (tools.look_up_api, "Look up an API on NPUs"),
        (tools.lint, "Find what keeps code from running on NPUs"),
        (tools.explain_rule, "Explain a rule"),
        (tools.preview_migration, "Preview a migration as a diff"),
    ):
        server.add_tool(tool, title=title, annotations=_READ_ONLY)
    if verify:
        server.add_tool(tools.verify, title="Run a project on emulated NPUs", annotations=_RUNS_PROGRAMS)
    return server


def serve(workspace: Path, seconds: float, packs: Sequence[str], verify: bool) -> None:
    """Serve one client over the standard streams, to its end."""
    os.chdir(workspace)  # where a person would run the commands
    build(workspace, seconds, packs, verify).run("stdio")
