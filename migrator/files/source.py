"""One file: from bytes to text, and back to the same bytes; byte offsets as lines and columns."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
import tokenize
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from migrator.files.errors import Unreadable, unreadable
from migrator.language import N_, _
from migrator.light import NamedTuple

# Above this a "Python file" is data, and parsing it takes gigabytes.
LARGEST = 64 << 20

# Files of settings are smaller; and above this, what reads YAML takes minutes.
LARGEST_SETTINGS = 16 << 20
_LARGE_TEXT = 1 << 20

# What ends a line for Python: fewer things than str.splitlines takes.
LINE_END = re.compile(r"\r\n|\r|\n")

# A cookie counts on the first two lines only. Python looks for it after turning every newline
# into \n, which tokenize.detect_encoding does not do: so lines are cut here.
_HEAD = re.compile(rb"[^\r\n]*(?:\r\n?|\n)?[^\r\n]*")

# Python finds a cookie below or beside text in the declared encoding ("# <gbk bytes>" on line 1).
# detect_encoding wants those lines to be UTF-8; the cookie itself is ASCII, so nothing is lost.
_ASCII_ONLY = bytes(byte if byte < 0x80 else 0x3F for byte in range(256))

_UTF16_OR_32 = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # begins as the UTF-16 mark does: has to come first
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


class Source(NamedTuple):
    """A file as text.

    ``name`` is its path relative to the input, with ``/``. ``text`` has no byte
    order mark and the file's own newlines. ``encoding`` and ``bom`` are what
    ``encode`` needs to write it back. ``type`` is empty for Python, else as ``document.file_type`` says.
    """

    name: str
    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    type: str = ""


def read(path: str | os.PathLike[str], name: str) -> Source:
    """The file at ``path``. Raises Unreadable, as ``decode`` does."""
    return decode(read_bytes(path), name)


def text_below(folder: Path, name: str) -> str | None:
    """The text of a file in a folder; None where it is none that can be read."""
    with suppress(Unreadable):
        return read(folder / name, name).text if (folder / name).is_file() else None
    return None


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of the file at ``path``. Raises Unreadable."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # opening a named pipe would wait for ever
            raise Unreadable("cannot be read: it is not a file")
        if status.st_size > LARGEST:
            raise Unreadable(
                "{st_size} MiB exceeds the limit of {largest} MiB for a Python file: move data to "
                "another file type",
                st_size=status.st_size >> 20,
                largest=LARGEST >> 20,
            )
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError as error:
        raise unreadable(error) from error


def read_settings(path: str | os.PathLike[str], largest: int = LARGEST_SETTINGS) -> bytes:
    """The content of a file that says what to do: settings, rules, a baseline, a table, a manifest.

    Never waits and never reads without end: raises Unreadable for a pipe and a device, as for what is
    larger than ``largest`` or cannot be read.
    """
    try:
        # Without waiting: a named pipe's other end may never come.
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            mode = os.fstat(number).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not stat.S_ISREG(mode):
                raise Unreadable("cannot be read: it is a pipe or a device, not a file: save it as one")
            data = b""  # one call may give less than all
            while len(data) <= largest and (piece := os.read(number, largest + 1 - len(data))):
                data += piece
        finally:
            os.close(number)
    except OSError as error:
        raise unreadable(error) from error
    if len(data) > largest:
        raise Unreadable("cannot be read: it is larger than {largest} MiB", largest=largest >> 20)
    return data


def decode(data: bytes, name: str) -> Source:
    """``data`` as Python would read it (PEP 263), except that newlines stay as they are.

    Raises Unreadable where Python would not run the file for its encoding, and
    where its text could not be written back to exactly these bytes.
    """
    for mark, form in _UTF16_OR_32:
        if data.startswith(mark):
            raise Unreadable("{form} text, which Python does not read: save it as UTF-8", form=form)
    if b"\0" in data:
        if max(data[0::2].count(0), data[1::2].count(0)) > len(data) // 4:
            raise Unreadable(
                "UTF-16 text without a byte order mark, which Python does not read: save it as UTF-8"
            )
        line = _line_of(data, data.index(0))
        raise Unreadable("NUL byte at line {data}, which Python does not read: remove it", data=line)
    encoding = _declared(data)
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    body = data[len(bom) :] if bom else data
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        raise Unreadable(_why_undecodable(data, len(bom) + error.start, encoding)) from error
    except (LookupError, ValueError) as error:  # "rot13", "undefined", "idna": not for text files
        raise Unreadable(
            "declares {encoding}, which cannot be read: save it as UTF-8", encoding=encoding
        ) from error
    # UTF-8 has one spelling for each text; other codecs may have several (escapes, shifts).
    if encoding != "utf-8" and not _comes_back(text, body, encoding):
        raise Unreadable(
            "its {encoding} text cannot be written back byte for byte: save it as UTF-8", encoding=encoding
        )
    return Source(name, text, encoding, bom)


def decode_other(data: bytes, name: str, of_type: str) -> Source:
    """A file other than Python as text: UTF-8, or else the GB 18030 of many Chinese systems.

    Raises Unreadable where it is neither, as its text could not be written back.
    """
    for mark, form in _UTF16_OR_32:
        if data.startswith(mark):
            raise Unreadable("{form} text: save it as UTF-8", form=form)
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    for encoding in ("utf-8", "gb18030"):
        with suppress(UnicodeDecodeError):
            text = data[len(bom) :].decode(encoding)
            if "\0" not in text and bom + text.encode(encoding) == data:
                return Source(name, text, encoding, bom, of_type)
    raise Unreadable("not UTF-8 text: save it as UTF-8")


def encode(source: Source, text: str) -> bytes:
    """``text``, a new version of ``source.text``, in the file's encoding and with its byte order mark.

    Raises Unreadable where the encoding has no bytes for it, and where Python
    would read the result in another encoding, because the cookie moved.
    """
    try:
        data = source.bom + text.encode(source.encoding)
    except UnicodeEncodeError as error:
        line = len(line_starts(text[: error.start].encode("utf-8", "surrogatepass")))
        what = _("U+{text:04X} at line {line}", text=ord(text[error.start]), line=line)
        said = N_("{encoding} has no {what} of the migrated text: save it as UTF-8")
        raise Unreadable(said, encoding=source.encoding, what=what) from error
    if not source.type and _declared(data) != source.encoding:
        raise Unreadable(
            "the change would move the coding cookie ({encoding}): save it as UTF-8", encoding=source.encoding
        )
    return data


def newline_of(text: str) -> str:
    """The more common of ``\\n`` and ``\\r\\n`` in ``text``, and ``\\r`` where it is the only one.

    Elsewhere an inserted ``\\r`` could come before a ``\\n``, and make one end of two.
    """
    feeds = text.count("\n")
    if not feeds:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if 2 * text.count("\r\n") > feeds else "\n"


def lines_of(text: str) -> list[str]:
    """The lines of a text, without their ends."""
    return LINE_END.split(text) if "\r" in text else text.split("\n")


def whole_lines(text: str) -> list[str]:
    """The lines of a text as Python counts them, with their ends; nothing behind the last end."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def line_starts(data: bytes) -> Sequence[int]:
    """The offset of each line of ``data``; those of a large one in little memory.

    Lines end at ``\\n``, ``\\r\\n`` and ``\\r`` only, as they do for Python's
    tokenizer. After a final newline comes one more, empty line.
    """
    lines = data.splitlines(keepends=True)  # for bytes, unlike str, these three are the only ones
    starts = list(accumulate(map(len, lines), initial=0))
    if lines and not lines[-1].endswith((b"\n", b"\r")):
        starts.pop()
    if len(data) <= _LARGE_TEXT:
        return starts
    from array import array

    return array("Q", starts)


class Lines:
    """The lines of a text. Offsets are those of its UTF-8 bytes, ``data``; lines and columns are 1-based."""

    def __init__(self, text: str, data: bytes | None = None) -> None:
        self.data = text.encode("utf-8") if data is None else data
        self.starts = line_starts(self.data)

    def line_of(self, offset: int) -> int:
        """The line of an offset."""
        return bisect_right(self.starts, offset)

    def column_of(self, offset: int) -> int:
        """The column, in characters, of an offset."""
        return self.place(offset)[1]

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column, in characters, of an offset."""
        line = self.line_of(offset)
        return line, len(self.data[self.starts[line - 1] : offset].decode("utf-8", "replace")) + 1

    def ends(self, span: tuple[int, int]) -> tuple[int, int, int, int]:
        """Line and column of a span's first byte, and of what is behind its last one."""
        (line, column), (end_line, end_column) = self.place(span[0]), self.place(span[1])
        # One number for both, as thousands of findings are kept.
        return line, column, line if line == end_line else end_line, end_column

    def offset(self, line: int, column: int) -> int:
        """The offset of a line and column."""
        start, end = self.span(line, line)
        before = self.data[start:end].decode("utf-8")[: column - 1]
        return start + len(before.encode("utf-8"))

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The bytes of the lines ``first`` to ``last``, their line ends included."""
        end = self.starts[last] if last < len(self.starts) else len(self.data)
        return self.starts[first - 1], end

    def beside(self, span: tuple[int, int]) -> tuple[bytes, bytes]:
        """What stands before a span on its first line, and behind it on its last one, with the line end."""
        start, end = span
        begin, _ = self.span(self.line_of(start), self.line_of(start))
        last = self.line_of(max(end - 1, start))
        return self.data[begin:start], self.data[end : self.span(last, last)[1]]

    def content_end(self, line: int) -> int:
        """The offset behind a line's last character, before its line end."""
        start, end = self.span(line, line)
        return start + len(self.data[start:end].rstrip(b"\r\n"))


def _declared(data: bytes) -> str:
    """The codec that byte order mark and cookie name, UTF-8 without them. Raises Unreadable."""
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    match = _HEAD.match(data, len(bom))
    head = match.group() if match else b""
    if b"coding" not in head:
        return "utf-8"
    lines = iter((bom + head.translate(_ASCII_ONLY)).splitlines(keepends=True))
    try:
        found, _lines = tokenize.detect_encoding(lambda: next(lines))
    except SyntaxError as error:
        if bom and "unknown" not in str(error):
            raise Unreadable(
                "its coding cookie is not utf-8 but it starts with a UTF-8 byte order mark: remove one"
            ) from error
        raise Unreadable("{error}: correct its coding cookie", error=error) from error
    return "utf-8" if found == "utf-8-sig" else codecs.lookup(found).name


def _comes_back(text: str, body: bytes, encoding: str) -> bool:
    # UTF-16 or EBCDIC under an ASCII cookie turn into nonsense, without an error: the cookie
    # must be there in the text too.
    match = _HEAD.match(body)
    if "coding" not in text[: len(match.group()) if match else 0]:
        return False
    try:
        return text.encode(encoding) == body
    except UnicodeError:
        return False


def _why_undecodable(data: bytes, offset: int, encoding: str) -> str:
    place = _("byte 0x{data:02x} at line {data2}", data=data[offset], data2=_line_of(data, offset))
    match = _HEAD.match(data)
    if encoding != "utf-8":
        why = N_("{place} is not {encoding}, which the file declares: correct its coding cookie")
    elif data.startswith(codecs.BOM_UTF8) or (match and b"coding" in match.group()):
        why = N_(
            "{place} is not UTF-8, which the file declares: correct its coding cookie or save it as UTF-8"
        )
    else:
        why = N_(
            "{place} is not UTF-8 and the file declares no encoding: add a coding cookie or save it as UTF-8"
        )
    return _(why, place=place, encoding=encoding)


def _line_of(data: bytes, offset: int) -> int:
    return bisect_right(line_starts(data), offset)
