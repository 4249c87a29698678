"""Neovim with what docs/editors.md has people write into their init.lua."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NVIM = shutil.which("nvim")
PAGE = Path(__file__).parents[2] / "docs" / "editors.md"

# Waits for findings, makes the fix of the line where the cursor is, and says what came.
ASK = """\
local function found()
  return vim.tbl_map(function(each) return each.code end, vim.diagnostic.get(0))
end
vim.wait(60000, function() return #found() > 0 end, 20)
local said = { filetype = vim.bo.filetype, found = found() }
local params = vim.lsp.util.make_range_params(0, "utf-16")
params.context = { diagnostics = {} }
local all = vim.lsp.buf_request_sync(0, "textDocument/codeAction", params, 30000) or {}
for _, answer in pairs(all) do
  for _, action in ipairs(answer.result or {}) do
    if action.isPreferred then
      vim.lsp.util.apply_workspace_edit(action.edit, "utf-16")
      break
    end
  end
end
local place = vim.lsp.util.make_position_params(0, "utf-16")
local hover = vim.lsp.buf_request_sync(0, "textDocument/hover", place, 30000)
for _, answer in pairs(hover or {}) do
  said.hover = answer.result and answer.result.contents.value
end
said.lines = vim.api.nvim_buf_get_lines(0, 0, -1, true)
vim.fn.writefile({ vim.fn.json_encode(said) }, "said.json")
vim.cmd("qall!")
"""


def snippets() -> list[str]:
    """What stands in the page: for Neovim from 0.11 on, and for older ones."""
    part = PAGE.read_text(encoding="utf-8").partition("## Neovim")[2].partition("## ")[0]
    found = re.findall(r"```lua\n(.*?)```", part, re.DOTALL)
    assert len(found) == 2
    return found


def nvim(folder: Path, *arguments: str, path: str = "") -> str:
    assert NVIM is not None
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    command = [NVIM, "--headless", "-n", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=True
    )
    return done.stdout + done.stderr


@pytest.mark.skipif(NVIM is None, reason="needs Neovim: apt-get install neovim")
@pytest.mark.parametrize(
    ("name", "text", "line", "filetype", "codes", "after"),
    [
        (
            "train.py",
            "import torch\n\ntorch.cuda.synchronize()\n",
            3,
            "python",
            ["NPU901", "NPU101"],
            ["import torch", "import torch_npu", "", "torch.npu.synchronize()"],
        ),
        (
            "run.sh",
            "export CUDA_VISIBLE_DEVICES=0\n",
            1,
            "sh",
            ["NPU410"],
            ["export ASCEND_RT_VISIBLE_DEVICES=0"],
        ),
    ],
)
def test_the_page_is_true(
    command: Path,
    tmp_path: Path,
    name: str,
    text: str,
    line: int,
    filetype: str,
    codes: list[str],
    after: list[str],
) -> None:
    version = re.search(r"NVIM v0\.(\d+)", nvim(tmp_path, "--version"))
    new = version is None or int(version[1]) >= 11
    (tmp_path / "init.lua").write_text(snippets()[0 if new else 1])
    (tmp_path / "ask.lua").write_text(ASK)
    (tmp_path / name).write_text(text)
    told = nvim(
        tmp_path,
        "-u",
        "init.lua",
        name,
        f"+call cursor({line}, 12)",
        "+luafile ask.lua",
        path=str(command.parent),
    )
    said = json.loads((tmp_path / "said.json").read_text(encoding="utf-8"))
    assert said["filetype"] == filetype, told
    assert sorted(said["found"]) == sorted(codes), told
    assert said["lines"] == after
    assert said["hover"]


@pytest.mark.skipif(NVIM is None, reason="needs Neovim: apt-get install neovim")
def test_both_snippets_are_lua(tmp_path: Path) -> None:
    for number, text in enumerate(snippets()):
        (tmp_path / f"{number}.lua").write_text(text)
        check = f"lua assert(loadfile('{number}.lua')); io.write('fine')"
        assert "fine" in nvim(tmp_path, "-u", "NONE", "-c", check, "-c", "qall!")
