"""An agent: a client of the official SDK that talks to the real command over its standard streams."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Callable, NamedTuple

import pytest

_PATIENCE = 600  # seconds: a hang, not a slow machine


class Reply(NamedTuple):
    """What a tool answered."""

    text: str
    content: Any
    failed: bool


class Agent:
    """Asks a server that was started for a folder with some options; each question starts one."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._command = ["-m", "migrator", "mcp", str(folder), *options]

    def ask(self, tool: str, **arguments: object) -> Reply:
        return self.ask_all((tool, arguments))[0]

    def ask_all(self, *questions: tuple[str, dict[str, object]]) -> list[Reply]:
        """Ask one server several things, one after the other."""

        async def work(client: Any) -> list[Reply]:
            return [await _call(client, *each) for each in questions]

        replies: list[Reply] = self.talk(work)
        return replies

    def talk(self, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        """Do something with a client that is connected."""
        from mcp import Client, StdioServerParameters

        # Answers are English, whatever its user reads.
        server = StdioServerParameters(
            command=sys.executable, args=self._command, env={"NPUMIGRATE_LANG": "zh"}
        )

        async def session() -> Any:
            async with Client(server) as client:
                return await work(client)

        return asyncio.run(asyncio.wait_for(session(), _PATIENCE))


async def _call(client: Any, tool: str, arguments: dict[str, object]) -> Reply:
    result = await client.call_tool(tool, arguments)
    text = "\n".join(part.text for part in result.content)
    return Reply(text, result.structured_content, bool(result.is_error))


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)
