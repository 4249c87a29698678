"""What is read of documents: commands in their blocks of shell, and nothing else."""

from __future__ import annotations

import pytest

from migrator.other_files.index import read


def commands(name: str, of_type: str, text: str) -> list[list[str | None]]:
    return [[word.text for word in command.words] for command in read(name, of_type, text).content.commands]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```bash\na --x 1 \\\n  --y 2\nb\n```\nc\n", [["a", "--x", "1", "--y", "2"], ["b"]]),
        ("1. one\n   ~~~ sh title\n   a\n   ~~~\n", [["a"]]),
        ("````{.shell}\na\n~~~\nb\n````\n", [["a"], ["~~~"], ["b"]]),
        ("```console\n$ a \\\n  b\nprinted 1\n(env) $ c\nprinted 2\n```\n", [["a", "b"], ["c"]]),
        ("```python\na\n```\n", []),
        ("```\na\n```\n", []),
        ("    a\n\n`b`\n", []),
        ("```shellcheck\na\n```\n", []),
        ("```bash\na\n", [["a"]]),
    ],
)
def test_blocks_of_markdown(text: str, found: list[list[str]]) -> None:
    assert commands("a.md", "markdown", text) == found


def test_a_block_that_no_shell_could_read_spoils_no_other() -> None:
    text = '```bash\na "open\n```\n```bash\nb\n```\n'
    assert commands("a.md", "markdown", text)[-1] == ["b"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".. code-block:: bash\n   :linenos:\n\n   a\n\n   b\n\nc\n", [["a"], ["b"]]),
        (".. code:: console\n\n   $ a\n   printed\n", [["a"]]),
        (".. code-block:: python\n\n   a\n", []),
        ("one::\n\n   a\n", []),
    ],
)
def test_blocks_of_restructured_text(text: str, found: list[list[str]]) -> None:
    assert commands("a.rst", "rst", text) == found
