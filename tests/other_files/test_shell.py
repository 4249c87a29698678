"""What is read of a shell script."""

from __future__ import annotations

import pytest

from migrator.files.document import document, encoded
from migrator.files.errors import Unreadable
from migrator.other_files.index import Setting, TextIndex, read

SCRIPT = """\
#!/bin/bash
export CUDA_VISIBLE_DEVICES=0,1  # both
NCCL_DEBUG="INFO" FOO=$BAR nohup python -u train.py --device cuda --backend='nccl' \\
  --gpus "$N" > "log $X" 2>&1 &
cat <<EOF > a.yaml
device: cuda
EOF
EMPTY=
"""


def of(text: str) -> TextIndex:
    return read("a.sh", "shell", text)


def plain(index: TextIndex, setting: Setting) -> tuple[str, str, str | None, str | None]:
    span = setting.value_span
    return setting.kind, setting.name, setting.value, index.text_of(span) if span else None


def test_settings_and_commands_have_their_places() -> None:
    index = of(SCRIPT)
    settings = [item for item in index.content.settings if not item.reads]
    assert [plain(index, item) for item in settings] == [
        ("variable", "CUDA_VISIBLE_DEVICES", "0,1", "0,1"),
        ("option", "-u", "train.py", "train.py"),
        ("option", "--device", "cuda", "cuda"),
        ("option", "--backend", "nccl", "nccl"),
        ("option", "--gpus", None, None),
        ("variable", "NCCL_DEBUG", "INFO", "INFO"),
        ("variable", "FOO", None, None),
        ("variable", "EMPTY", "", ""),
    ]
    assert all(index.text_of(item.name_span) == item.name for item in settings)
    words = [word.text for word in index.content.commands[0].words]
    assert words == [
        "nohup",
        "python",
        "-u",
        "train.py",
        "--device",
        "cuda",
        None,
        "--gpus",
        None,
    ]
    assert [item.name for item in index.content.settings if item.reads] == ["BAR", "N", "X"]
    assert [index.text_of(span) for span in index.content.comments] == ["#!/bin/bash", "# both"]


def test_an_odd_line_spoils_only_itself() -> None:
    index = of("export A=1\nif [ ; then fi (\nexport B=2\n")
    assert {item.name for item in index.content.settings} >= {"A"}


@pytest.mark.parametrize(
    "data",
    [
        "A=1  # 中文\r\nB=2\r\n".encode("gb18030"),
        b"\xef\xbb\xbfexport A=1\n",
        b"export A=\xe4\xb8\xad",
    ],
)
def test_the_bytes_come_back(data: bytes) -> None:
    item = document(data, "a.sh")
    assert item.type == "shell"
    assert encoded(item, item.text) == data


def test_what_is_no_text_is_not_read() -> None:
    with pytest.raises(Unreadable, match="save it as UTF-8"):
        document(b"\xff\xfe\x00", "a.sh")
    with pytest.raises(Unreadable):
        document(b"A=\x00", "a.sh")
