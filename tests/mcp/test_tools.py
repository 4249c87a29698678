"""The tools by themselves, without a client: what they ask of commands, and make of the answers."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
from mcp.server.mcpserver.exceptions import ToolError

from migrator.mcp import own_runs
from migrator.mcp.own_runs import Finished, Refused, name_in, place_in, run_own
from migrator.mcp.tools import Tools, _cut, _rule_text

VERDICT = {
    "verdict": "failed",
    "exit_code": 1,
    "reasons": ["2 of 2 ranks failed"],
    "command": ["python", "train.py"],
    "ran_on": "npu",
    "failures": [{"rank": number} for number in range(25)],
    "cuda_reached": [{"line": number} for number in range(60)],
    "versions": "not told",
}


def test_a_text_is_cut_between_lines() -> None:
    assert _cut("one\ntwo\n", 8) == ("one\ntwo\n", True)
    assert _cut("one\ntwo\n", 7) == ("one\n", False)


class Runs:
    """In the place of ``run_own``: notes what is asked for, and answers as ``verify`` does."""

    def __init__(self, verdict: dict[str, Any] | None) -> None:
        self.verdict = verdict
        self.asked: list[tuple[Sequence[str], Path, float]] = []

    async def __call__(self, arguments: Sequence[str], folder: Path, seconds: float, stdin: str) -> Finished:
        self.asked.append((arguments, folder, seconds))
        assert stdin == ""
        (place,) = [each.removeprefix("--json=") for each in arguments if each.startswith("--json=")]
        if self.verdict is not None:
            Path(place).write_text(json.dumps(self.verdict))
        return Finished(1, "x" * 5000 + "the end\n", "npumigrate: building\nnpumigrate: no emulator\n")


def test_what_a_run_proves_is_told_in_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(VERDICT)
    monkeypatch.setattr("migrator.mcp.tools.run_own", runs)
    tools = Tools(tmp_path, 30)
    answer = asyncio.run(tools.verify(".", ["python", "train.py", "--steps=9"], devices=2, steps=3))
    ((arguments, folder, seconds),) = runs.asked
    assert [each for each in arguments if not each.startswith("--json=")] == [
        *("verify", str(tmp_path), "--devices=2", "--timeout=30", "--steps=3"),
        *("--", "python", "train.py", "--steps=9"),
    ]
    assert folder == tmp_path
    assert seconds == 210  # more than the program has: the emulator may have to be built
    told: Any = answer.structured_content
    assert (told["verdict"], told["exit_code"], told["ran_on"]) == ("failed", 1, "npu")
    assert told["failures"] == VERDICT["failures"][:20]
    assert told["cuda_reached"] == VERDICT["cuda_reached"][:50]
    assert told["output"] == ("x" * 5000 + "the end\n")[-4000:]
    assert "versions" not in told
    text = answer.content[0].text
    assert text.startswith("failed (exit code 1)\n2 of 2 ranks failed\n\nnpumigrate: building\n")
    assert text.endswith("xxthe end\n")
    asyncio.run(Tools(tmp_path, 30).verify("."))
    assert not {"--", "--steps=3"} & {*runs.asked[1][0]}


def test_what_cannot_be_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(None)
    monkeypatch.setattr("migrator.mcp.tools.run_own", runs)
    (tmp_path / "train.py").write_text("")
    with pytest.raises(ToolError, match=r"^no folder: train.py$"):
        asyncio.run(Tools(tmp_path, 30).verify("train.py"))
    assert runs.asked == []
    with pytest.raises(ToolError, match=r"^building\nno emulator$"):
        asyncio.run(Tools(tmp_path, 30).verify("."))


def test_settings_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    (tmp_path / "npumigrate.toml").write_text("ignroe = []\n")
    (tmp_path / "train.py").write_text("import torch\n")
    for path in (".", "train.py"):
        with pytest.raises(ToolError, match="unknown key 'ignroe'; did you mean 'ignore'"):
            asyncio.run(Tools(tmp_path, 60).lint(path))


def test_a_long_diff_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import torch\ntorch.cuda.synchronize()\n"
    monkeypatch.setattr("migrator.mcp.tools._LONGEST_DIFF", 120)
    answer = asyncio.run(Tools(tmp_path, 60).preview_migration(text=text, version="2.6"))
    told: Any = answer.structured_content
    assert told["diff_complete"] is False
    assert len(told["diff"]) <= 120
    assert told["diff"].endswith("\n")
    assert told["files"] == [{"file": "snippet.py", "added": 2, "removed": 1}]  # of all of it
    head, cut, *_ = answer.content[0].text.splitlines()
    assert head == "1 file would change for torch 2.6.0; nothing was written"
    assert cut == "The diff is cut: name a smaller folder, or a file."


def test_where_nothing_changes_only_that_is_said(tmp_path: Path) -> None:
    answer = asyncio.run(Tools(tmp_path, 60).preview_migration(text="x = 1\n", version="2.6"))
    assert answer.content[0].text == "0 files would change for torch 2.6.0; nothing was written"


def test_a_rule_is_told_with_what_it_has() -> None:
    rule = {"code": "ACME1", "name": "acme", "summary": "Acme", "severity": "info", "fix": "none"}
    less = {"why": "", "advice": "", "examples": [{"unchanged": "x\n"}], "references": []}
    assert _rule_text({**rule, **less}) == "ACME1 acme: Acme\ninfo, fix: none"
    examples = [{"unchanged": "x\n"}, {"before": "a\n", "after": "b\n"}]
    more = {"why": "So.\n", "advice": "Do.\n", "examples": examples, "references": ["https://a.example"]}
    assert _rule_text({**rule, **more}).splitlines() == [
        *("ACME1 acme: Acme", "info, fix: none", "", "So.", "", "What to do: Do."),
        *("", "Before:", "a", "", "After:", "b", "https://a.example"),
    ]


def test_what_is_no_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"^no path: 'a\\x00b'$"):
        place_in(tmp_path, "a\0b")


def test_a_link_out_of_the_workspace_has_no_name(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    (workspace / "inner").mkdir(parents=True)
    (tmp_path / "outer.py").write_text("")
    (workspace / "link.py").symlink_to(tmp_path / "outer.py")
    assert name_in(workspace, str(workspace / "inner" / "a.py")) == "inner/a.py"
    assert name_in(workspace, str(workspace / "link.py")) == ""


@pytest.mark.skipif(os.name == "nt", reason="a process of Windows has no signal to ignore")
def test_a_command_that_does_not_end_when_asked_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "stubborn"
    program.write_text(f"#!/bin/sh\ntrap '' TERM\necho $$ > {tmp_path}/pid\nwhile :; do sleep 1; done\n")
    program.chmod(0o700)
    monkeypatch.setattr(own_runs.sys, "executable", str(program))
    monkeypatch.setattr(own_runs, "_GRACE", 0.2)
    with pytest.raises(Refused, match="lint took longer than 1 s"):
        asyncio.run(run_own(["lint"], tmp_path, 1))
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
