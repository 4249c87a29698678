"""``--add-noqa`` in files that are no Python: a comment stands where it changes nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

FILES = {
    "a.yaml": ("device: cuda\n", "device: cuda  # noqa: NPU425\n"),
    "b.yaml": ("device: cuda  # the first\r\n", "device: cuda  # the first  # noqa: NPU425\r\n"),
    "c.yaml": ("backend: nccl  # noqa: X1\n", "backend: nccl  # noqa: X1, NPU426\n"),
    "d.ini": ("[a]\n  device = cuda\n", "[a]\n  # noqa: NPU425\n  device = cuda\n"),
    "e.toml": ('device = "cuda"', 'device = "cuda"  # noqa: NPU425'),
    "f.json": ('{"device": "cuda"}\n', '{"device": "cuda"}\n'),
    "g.yaml": (
        "command: >\n  python t.py\n  --device cuda\n",
        "command: >\n  python t.py\n  --device cuda\n",
    ),
    "h.sh": (
        "python t.py \\\n  --device cuda \\\n  --n 1\n",
        "python t.py \\\n  --device cuda \\\n  --n 1\n",
    ),
    "i.sh": ("python t.py --device cuda\n", "python t.py --device cuda  # noqa: NPU412\n"),
    ".env": ("DEVICE=cuda\n", "# noqa: NPU413\nDEVICE=cuda\n"),
    "Dockerfile": (
        "FROM pytorch/pytorch:2.1.0-cuda12.1\n",
        "# noqa: NPU456\nFROM pytorch/pytorch:2.1.0-cuda12.1\n",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_comment_is_added_where_it_can_be(npumigrate, tmp_path: Path, monkeypatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    before, after = FILES[name]
    (tmp_path / name).write_bytes(before.encode())
    command = ("lint", "--isolated", "--no-cache", "-v2.6")
    npumigrate(*command, "--add-noqa")
    assert (tmp_path / name).read_bytes().decode() == after
    remaining = npumigrate(*command, "--output-format", "concise").out
    assert ("NPU4" in remaining) == (before == after)


def test_a_comment_in_a_command_of_a_workflow_suppresses(npumigrate, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "run: |\n  python t.py --device cuda  # noqa: NPU412\n  python t.py --device cuda:1\n"
    (tmp_path / "a.yaml").write_text(text)
    found = npumigrate("lint", "--isolated", "--no-cache", "-v2.6", "--output-format", "concise").out
    assert [line.split(":")[1] for line in found.splitlines() if line.startswith("a.yaml")] == ["3"]
