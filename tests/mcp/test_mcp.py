"""The server as an agent sees it: the same answers as the command line, and nothing but the workspace."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from migrator.this_copy import install_command
from tests.reading import tree, write

if TYPE_CHECKING:
    from conftest import Agent

pytest.importorskip("mcp", reason="the package mcp needs Python 3.10")

TRAIN = "import torch\n\nx = torch.zeros(2).cuda()\ntorch.cuda.synchronize()\nimport apex\n"


def npumigrate(folder: Path, *arguments: str) -> str:
    """What the command line prints in a folder."""
    command = [sys.executable, "-m", "migrator", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


async def tools(client: Any) -> dict[str, Any]:
    return {tool.name: tool for tool in (await client.list_tools()).tools}


def test_what_is_offered_is_read_only(agent: Agent, tmp_path: Path) -> None:
    offered = agent.talk(tools)
    assert offered.keys() == {"look_up_api", "lint", "explain_rule", "explain_error", "preview_migration"}
    assert all(tool.annotations.read_only_hint and tool.output_schema for tool in offered.values())
    offered = type(agent)(tmp_path, "--allow-verify").talk(tools)
    assert offered["verify"].annotations.read_only_hint is False
    assert offered["verify"].annotations.destructive_hint is True


def test_answers_are_those_of_the_command_line(agent: Agent, tmp_path: Path) -> None:
    # Neither fixes nor a cache: the project's own settings do not make the server write.
    # A package of that name in the project is not npumigrate's.
    settings = "fix = true\nunsafe-fixes = true\n"
    files = {"npumigrate.toml": settings, "migrator/__init__.py": "open('imported', 'w')\n"}
    write(tmp_path, {**files, "train.py": TRAIN, "requirements.txt": "torch==2.6.0\n"})
    before = tree(tmp_path)
    api, lint, rule, preview, one = agent.ask_all(
        ("look_up_api", {"name": "torch.cuda.Event", "version": "2.6"}),
        ("lint", {}),
        ("explain_rule", {"code": "NPU101"}),
        ("preview_migration", {}),
        ("lint", {"path": "train.py", "select": ["NPU6"], "version": "2.1"}),
    )
    assert tree(tmp_path) == before
    says = npumigrate(Path.cwd(), "api", "torch.cuda.Event", "-v", "2.6", "--json")
    expected = {**json.loads(says), "not_shown": 0}
    del expected["schema"]  # tools tell theirs
    assert api.content == expected
    assert api.text.startswith("torch.cuda.Event  at torch 2.6.0")

    said = json.loads(
        npumigrate(Path.cwd(), "lint", str(tmp_path), "--output-format", "json", "-n", "--no-fix")
    )
    places = [(item["code"], item["location"]["row"], item["location"]["column"]) for item in said]
    found = [(item["code"], item["line"], item["column"]) for item in lint.content["findings"]]
    assert sorted(found) == sorted(places)
    assert lint.content["torch"] == "2.6.0"
    assert lint.content["total"] == sum(lint.content["by_severity"].values()) == len(places)
    assert lint.content["findings"][0]["severity"] == "error"
    assert "train.py:4:1: NPU101 error: " in lint.text

    assert [each["code"] for each in rule.content["rules"]] == ["NPU101"]
    assert rule.text.startswith("NPU101 cuda-module: ")

    assert preview.content["diff"] == npumigrate(Path.cwd(), "migrate", str(tmp_path), "--diff", "-q")
    assert preview.content["diff_complete"] is True
    assert {"file": "train.py", "added": 3, "removed": 2} in preview.content["files"]
    assert [item["code"] for item in preview.content["review"]] == ["NPU601"]
    assert [item["code"] for item in preview.content["unsafe"]] == ["NPU450"]
    assert "+torch.npu.synchronize()\n" in preview.text

    assert (one.content["torch"], one.content["by_rule"]) == ("2.1.0", {"NPU601": 1})


def test_a_text_is_looked_at_in_place_of_a_file(agent: Agent, tmp_path: Path) -> None:
    lint, shell, preview, limited = agent.ask_all(
        ("lint", {"text": TRAIN, "version": "2.6"}),
        ("lint", {"text": "export NCCL_DEBUG=INFO\n", "filename": "run.sh"}),
        ("preview_migration", {"text": TRAIN, "version": "2.6", "safe_only": True}),
        ("lint", {"text": TRAIN, "limit": 1}),
    )
    assert lint.content["by_rule"] == {"NPU101": 1, "NPU111": 1, "NPU601": 1, "NPU901": 1}
    assert {item["file"] for item in lint.content["findings"]} == {"snippet.py"}
    assert [item["file"] for item in shell.content["findings"]] == ["run.sh"]
    assert preview.content["files"] == [{"file": "snippet.py", "added": 3, "removed": 2}]
    assert (len(limited.content["findings"]), limited.content["not_shown"]) == (1, 3)
    assert limited.text.endswith("and 3 more")
    assert not any(tmp_path.iterdir())


def test_what_is_refused_is_said_in_a_line(agent: Agent, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside.py"
    outside.write_text(TRAIN)
    (tmp_path / "link.py").symlink_to(outside)
    (tmp_path / "large.py").write_bytes(b"#" * 1_000_001)
    os.mkfifo(tmp_path / "pipe.py")
    replies = agent.ask_all(
        ("lint", {"path": "../x"}),
        ("lint", {"path": str(outside)}),
        ("preview_migration", {"path": "link.py"}),
        ("lint", {"path": "large.py"}),
        ("lint", {"path": "pipe.py"}),
        ("lint", {"text": "x", "filename": "../x.py"}),
        ("lint", {"path": ".", "version": "9.9"}),
        ("lint", {"path": ".", "select": ["NPU000"]}),
        ("explain_rule", {"code": "NPU000"}),
        ("preview_migration", {"text": "echo\n", "filename": "run.sh"}),
        ("lint", {"text": "#" * 1_000_001}),
        ("verify", {"path": "."}),
    )
    assert all(reply.failed for reply in replies)
    reasons = [reply.text.partition(": ")[2].partition("; ")[0] for reply in replies]
    assert reasons[0] == f"../x lies outside of the workspace {tmp_path}"
    assert all("lies outside" in reasons[number] for number in (1, 2, 5))
    assert reasons[3] == "large.py has more than 1,000,000 bytes"
    assert reasons[4] == "no such file or folder in the workspace: pipe.py"
    assert reasons[6].startswith("unknown torch version '9.9'")
    assert reasons[7] == "unknown rule 'NPU000'"
    assert reasons[8] == "unknown rule 'NPU000'"
    assert reasons[9] == "run.sh has no Python files or notebooks: nothing to do"
    assert "1000000" in replies[10].text
    # A link out of the workspace is no way out of it.
    (tmp_path / "pipe.py").unlink()
    assert agent.ask("lint").content["total"] == 0
    # And nothing is known of a name.
    nothing = agent.ask("look_up_api", name="torch.cuda.Evnt")
    assert (nothing.content["answers"], nothing.content["nearest"][:1]) == ([], ["torch.cuda.Event"])


def test_a_command_ends_when_its_time_is_up(tmp_path: Path) -> None:
    from migrator.mcp.own_runs import Refused, run_own

    with pytest.raises(Refused, match=r"lint took longer than 0.01 s"):
        asyncio.run(run_own(["lint", "--watch", "."], tmp_path, 0.01))
    with pytest.raises(Refused, match=r"rule has more than 0 MiB to say"):
        asyncio.run(run_own(["rule", "NPU101"], tmp_path, 60, most=100))


def test_a_server_needs_a_folder_and_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from migrator.cli.main import run

    assert run(["mcp", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"npumigrate: {tmp_path}/none: no such file or folder\n"
    monkeypatch.chdir("/")
    assert run(["mcp"]) == 2
    assert "give the workspace: npumigrate mcp FOLDER" in capsys.readouterr().err
    for name in ("mcp", "mcp.server"):
        monkeypatch.setitem(sys.modules, name, None)
    assert run(["mcp", str(tmp_path)]) == 2
    line = f"the server needs the package mcp, on Python 3.10 or newer: {install_command('mcp')}"
    assert capsys.readouterr().err == f"npumigrate: {line}\n"


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the emulator runs on Linux")
def test_a_run_is_verified_where_that_is_allowed(agent: Agent, tmp_path: Path) -> None:
    program = "import torch\nimport torch_npu\nx = torch.ones(8, 8).npu()\nprint((x @ x).sum().item())\n"
    (tmp_path / "train.py").write_text(program)
    allowed = type(agent)(tmp_path, "--allow-verify")
    told, none = allowed.ask_all(
        ("verify", {"path": ".", "command": [sys.executable, "train.py"], "devices": 1}),
        ("verify", {"path": "none"}),
    )
    assert (told.content["verdict"], told.content["ran_on"]) == ("passed", "npu")
    assert told.content["output"] == "512.0\n"
    assert (none.failed, "no such file or folder" in none.text) == (True, True)


def test_a_failure_in_a_log_is_explained(agent: Agent, tmp_path: Path) -> None:
    oom = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity)\n"
    write(tmp_path, {"logs/rank_3.log": "an ordinary line\n" * 70_000 + oom})  # logs are large
    folder, text, unknown = agent.ask_all(
        ("explain_error", {"path": "logs/rank_3.log"}),
        ("explain_error", {"text": oom}),
        ("explain_error", {"text": "all is well\n"}),
    )
    assert [each.content["code"] for each in (folder, text, unknown)] == ["npu-out-of-memory"] * 2 + [None]
    assert folder.content["failure"]["rank"] == 3
    assert folder.text.startswith("npu-out-of-memory: NPU out of memory. ")
    assert (unknown.content["explained"], unknown.content["failure"]) == (False, None)
    assert unknown.content["collect"]
