"""Bytes to text and back: nothing may change that no one changed."""

from __future__ import annotations

import codecs
import encodings.aliases
import io
import os
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from migrator.files import source as source_module
from migrator.files.errors import shown
from migrator.files.source import Source, Unreadable, decode, encode, line_starts, newline_of, read

CODECS = sorted(set(encodings.aliases.aliases.values()))
NEWLINES = st.sampled_from(["\n", "\r\n", "\r", "\n\r", "\f\n", "\x0b", "\x85", "\u2028", "\t", ""])

LETTERS = {
    "utf-8": "ab#'\té中文🙂\ufeff",
    "latin-1": "ab#'\té\xa0ÿ\x85",
    "cp1252": "ab#'\t€“",
    "gbk": "ab#'\t中文模型",
    "gb18030": "ab#'\t中文🙂é",
    "big5": "ab#'\t中文",
    "shift_jis": "ab#'\tモデルｱ",
    "euc-jp": "ab#'\tモデル",
    "iso-2022-jp": "ab#'\tモデル",
    "euc-kr": "ab#'\t모델",
    "koi8-r": "ab#'\tмодель",
    "utf-7": "ab#'\té",
}
COOKIES = [
    "# coding: {}",
    "# -*- coding: {} -*-",
    "#!/usr/bin/env python3{newline}# vim: set fileencoding={} :",
]


@st.composite
def files(draw: st.DrawFn) -> tuple[str, bytes]:
    """An encoding and a file that declares it."""
    encoding = draw(st.sampled_from(sorted(LETTERS)))
    newline = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    cookie = draw(st.sampled_from(COOKIES)).replace("{newline}", newline).format(encoding)
    words = st.text(LETTERS[encoding], max_size=8)
    body = "".join(draw(st.lists(st.one_of(words, st.sampled_from(["\n", "\r\n", "\r", "\f", "\t"])))))
    return encoding, (cookie + newline + body).encode(encoding)


@given(files())
def test_a_declared_encoding_comes_back_byte_for_byte(file: tuple[str, bytes]) -> None:
    encoding, data = file
    try:
        source = decode(data, "a.py")
    except Unreadable:
        assert encoding in ("utf-7", "iso-2022-jp", "shift_jis")  # more than one spelling for a text
        return
    assert source.encoding == codecs.lookup(encoding).name
    assert source.text == data.decode(encoding)
    assert encode(source, source.text) == data


@given(st.lists(st.one_of(st.text(), NEWLINES)).map("".join), st.booleans())
def test_utf8_comes_back_byte_for_byte(text: str, bom: bool) -> None:
    data = (codecs.BOM_UTF8 if bom else b"") + text.encode()
    if b"\0" in data or "coding" in text:
        return
    source = decode(data, "a.py")
    assert source.bom == (codecs.BOM_UTF8 if bom or text.startswith("\ufeff") else b"")
    assert encode(source, source.text) == data


def refusal(data: bytes) -> str:
    """Why ``data`` is refused; empty where it comes back."""
    try:
        source = decode(data, "a.py")
    except Unreadable as error:
        return str(error)
    assert encode(source, source.text) == data
    return ""


@given(st.binary())
@example(b"# coding: utf-16-le\nx = 1\n")
@example(b"\xff\xfe")
@example(b"\xef\xbb\xbf")
@example(b"# coding: \xff")
def test_any_bytes_come_back_or_are_refused_in_one_line(data: bytes) -> None:
    assert refusal(data).isprintable()


@given(st.sampled_from([*CODECS, "rot13", "undefined", "no-such", "idna", "unicode_escape"]), st.binary())
def test_any_declared_codec_comes_back_or_is_refused(codec: str, data: bytes) -> None:
    assert refusal(b"# coding: " + codec.encode() + b"\n" + data).isprintable()


@given(files(), st.data())
def test_an_ascii_change_leaves_the_bytes_around_it(file: tuple[str, bytes], data: st.DataObject) -> None:
    encoding, before = file
    if encoding in ("utf-7", "iso-2022-jp"):  # shifts: a character's bytes depend on its neighbours
        return
    try:
        source = decode(before, "a.py")
    except Unreadable:
        return
    head = len(before.splitlines(keepends=True)[0]) + (source.text.startswith("#!") and 60)
    at = data.draw(st.integers(min(head, len(source.text)), len(source.text)))
    after = encode(source, source.text[:at] + "import torch_npu" + source.text[at:])
    start = len(source.text[:at].encode(encoding))
    assert after == before[:start] + b"import torch_npu" + before[start:]


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (b"", "utf-8", ""),
        (b"x = 1", "utf-8", "x = 1"),
        (b"# coding: utf8\nx = '\xc3\xa9'", "utf-8", "# coding: utf8\nx = 'é'"),
        (b"# coding: latin-1-unix\nx = '\xe9'", "iso8859-1", "# coding: latin-1-unix\nx = 'é'"),
        (b"# a\r# coding: latin-1\rx = '\xe9'", "iso8859-1", "# a\r# coding: latin-1\rx = 'é'"),
        (b"# \xd6\xd0\n# coding: gbk\n", "gbk", "# 中\n# coding: gbk\n"),
        (b"# coding: gbk \xd6\xd0\n", "gbk", "# coding: gbk 中\n"),
        (b"\x0c# coding: gbk\n'\xd6\xd0'\n", "gbk", "\x0c# coding: gbk\n'中'\n"),
        (b"'''\n# coding: gbk\n'''\n", "utf-8", "'''\n# coding: gbk\n'''\n"),
        (b"\n\n# coding: gbk\n", "utf-8", "\n\n# coding: gbk\n"),
        (b"encoding = 1\n", "utf-8", "encoding = 1\n"),
        (b"\xef\xbb\xbf# coding: utf-8\r\n", "utf-8", "# coding: utf-8\r\n"),
    ],
)
def test_the_encoding_is_the_one_that_python_uses(data: bytes, encoding: str, text: str) -> None:
    source = decode(data, "a.py")
    assert (source.encoding, source.text) == (encoding, text)
    compile(data, "a.py", "exec")
    assert encode(source, source.text) == data


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("x = 1\n".encode("utf-16"), "UTF-16 text, which Python does not read: save it as UTF-8"),
        ("x = 1\n".encode("utf-32"), "UTF-32 text, which Python does not read: save it as UTF-8"),
        (
            "x = 1\n".encode("utf-16-le"),
            "UTF-16 text without a byte order mark, which Python does not read: save it as UTF-8",
        ),
        (b"x = 1\r\ny = '\0'\n", "NUL byte at line 2, which Python does not read: remove it"),
        (
            b"a\rb\r\nc\n'\xb0C'\n",
            "byte 0xb0 at line 4 is not UTF-8 and the file declares no encoding: "
            "add a coding cookie or save it as UTF-8",
        ),
        (
            b"# coding: utf-8\n'\xb0C'\n",
            "byte 0xb0 at line 2 is not UTF-8, which the file declares: "
            "correct its coding cookie or save it as UTF-8",
        ),
        (
            b"# coding: gbk\n\n'\xff'\n",
            "byte 0xff at line 3 is not gbk, which the file declares: correct its coding cookie",
        ),
        (b"# coding: klingon\n", "unknown encoding: klingon: correct its coding cookie"),
        (b"# coding: rot13\n", "declares rot-13, which cannot be read: save it as UTF-8"),
        (
            b"# coding: utf-16-le\n",
            "its utf-16-le text cannot be written back byte for byte: save it as UTF-8",
        ),
        (b"# coding: cp037\n", "its cp037 text cannot be written back byte for byte: save it as UTF-8"),
        (
            b"# coding: utf-7\n'+AGE-'\n",
            "its utf-7 text cannot be written back byte for byte: save it as UTF-8",
        ),
        (
            b"\xef\xbb\xbf# coding: latin-1\n",
            "its coding cookie is not utf-8 but it starts with a UTF-8 byte order mark: remove one",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(data: bytes, line: str) -> None:
    with pytest.raises(Unreadable) as caught:
        decode(data, "a.py")
    assert str(caught.value) == line


def test_new_text_that_the_encoding_lacks_is_refused() -> None:
    source = decode(b"# coding: latin-1\rx = 1\r", "a.py")
    with pytest.raises(Unreadable, match=r"^iso8859-1 has no U\+4E2D at line 3 of the migrated text"):
        encode(source, source.text + "# 中")


@pytest.mark.parametrize("new", ["import torch_npu\nimport a\n# coding: gbk\n", "# coding: latin-1\n"])
def test_a_change_that_moves_the_cookie_is_refused(new: str) -> None:
    with pytest.raises(Unreadable, match="would move the coding cookie"):
        encode(decode(b"# coding: gbk\n'\xd6\xd0'", "a.py"), new)


@pytest.mark.parametrize(
    ("text", "newline"),
    [
        ("", "\n"),
        ("a", "\n"),
        ("a\nb\r\nc\n", "\n"),
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\rb\rc\r", "\r"),
        ("a\rb\rc\n", "\n"),  # an inserted \r before the \n would take that line's end
        ("\r\n\n", "\n"),
    ],
)
def test_the_most_common_newline(text: str, newline: str) -> None:
    assert newline_of(text) == newline


@pytest.mark.parametrize(
    ("data", "starts"),
    [
        (b"", [0]),
        (b"a", [0]),
        (b"a\n", [0, 2]),
        (b"a\r\nb\rc\x0c\x0bd\xc2\x85\ne", [0, 3, 5, 12]),
        (b"\n\r", [0, 1, 2]),
    ],
)
def test_line_starts(data: bytes, starts: list[int]) -> None:
    assert line_starts(data) == starts


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"\f", b"\xc2\x85"])).map(b"".join))
def test_line_starts_are_what_universal_newlines_make_of_a_file(data: bytes) -> None:
    lines = list(io.TextIOWrapper(io.BytesIO(data), "latin-1", newline=""))
    expected = [0, *accumulate(map(len, lines))]
    if lines and lines[-1][-1] not in "\r\n":
        expected.pop()
    assert line_starts(data) == expected


def test_read(tmp_path: Path) -> None:
    path = tmp_path / "模型 +1.py"
    path.write_bytes(b"x = 1\r\n")
    assert read(path, "模型 +1.py") == Source("模型 +1.py", "x = 1\r\n", "utf-8", b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_reading_what_is_no_file_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for path in (tmp_path / "pipe.py", tmp_path):
        with pytest.raises(Unreadable, match="cannot be read: it is not a file"):
            read(path, "pipe.py")


def test_reading_what_is_gone_or_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    with pytest.raises(Unreadable, match=r"^no such file or folder$"):
        read(path, "a.py")
    path.write_bytes(b"x")

    def refuse(*_args: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(source_module, "open", refuse, raising=False)
    with pytest.raises(Unreadable, match=r"^cannot be read: permission denied$"):
        read(path, "a.py")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_reading_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(Unreadable, match=r"^cannot be read: permission denied$"):
        read(path, "a.py")


def test_ten_megabytes_are_read_and_gigabytes_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"x = 1\n" * 1_700_000)
    assert len(read(path, "a.py").text) == 10_200_000
    with open(path, "r+b") as file:
        file.truncate(3 << 30)
    with pytest.raises(Unreadable, match=r"^3072 MiB exceeds the limit of 64 MiB"):
        read(path, "a.py")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("模型 a+b.py", "模型 a+b.py"),
        ("a\udcb0.py", r"a\xb0.py"),
        ("a\nb\x1b[31m.py", r"a\nb\x1b[31m.py"),
        ("a\u202eb", r"a\u202eb"),
    ],
)
def test_a_name_is_shown_on_one_line(name: str, line: str) -> None:
    assert shown(name) == line
