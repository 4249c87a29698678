"""What a file says does not control the terminal that shows it; a program gets it as it is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = b'import torch\nx = torch.zeros(3, device="cuda"), "\x1b]0;owned\x07\xc2\x9b2J\xe2\x80\xae "\n'
COMMANDS = [["lint", "--diff", "."], ["-i", ".", "--diff", "-v", "2.6"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_bytes(SOURCE)
    return tmp_path


def on_a_terminal(folder: Path, command: list[str], environment: dict[str, str]) -> str:
    import pty

    ours, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "migrator", *command],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=terminal,
        stderr=subprocess.DEVNULL,
    )
    os.close(terminal)
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
    except OSError:  # how a terminal ends on Linux
        pass
    os.close(ours)
    assert done.returncode in (0, 1)
    return shown.replace(b"\r\n", b"\n").decode()


@pytest.mark.skipif(os.name == "nt", reason="has no such terminals")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_diff_on_a_terminal_has_escapes(folder: Path, command: list[str]) -> None:
    text = on_a_terminal(folder, command, {"NO_COLOR": "1"})
    assert '+x = torch.zeros(3, device="npu"), "\\x1b]0;owned\\x07\\x9b2J\\u202e "\n' in text
    assert not set("\x1b\x07\x9b\u202e\r") & set(text)


@pytest.mark.skipif(os.name == "nt", reason="has no such terminals")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_diff_on_a_terminal_has_colours_and_no_other_orders(folder: Path, command: list[str]) -> None:
    text = on_a_terminal(folder, command, {"NO_COLOR": "", "TERM": "xterm"})
    assert '\x1b[32m+x = torch.zeros(3, device="npu"), "\\x1b]0;owned\\x07\\x9b2J\\u202e "\x1b[0m\n' in text
    assert not set("\x1b\x07\x9b\u202e\r") & set(re.sub("\x1b\\[[0-9;]*m", "", text))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_diff_for_a_program_has_the_bytes(folder: Path, command: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "migrator", *command], cwd=folder, capture_output=True)
    assert SOURCE.splitlines(keepends=True)[1].replace(b"cuda", b"npu")[:40] in done.stdout
