"""Reading a wheel without unpacking it: nothing is run, nothing is written, and nothing gets too large."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path

# The largest of the files that are read has 0.4 MB, and all of them together have 12 MB.
_LARGEST = 16 << 20
_TOGETHER = 128 << 20
_ENTRIES = 200_000
# Compiled parts are only looked through for their strings.
_LARGEST_COMPILED = 512 << 20
_LONGEST_NAME = 80
_NAME = re.compile(rb"[A-Za-z_]\w{0,79}")


class WheelError(ValueError):
    """A file that is no wheel of torch, torchvision or torch_npu, or a damaged one, in one line."""


_DAMAGED = (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, zlib.error)


class Archive:
    """The files of a wheel, by name. Every method raises WheelError for a damaged or hostile one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read = 0
        try:
            self._zip = zipfile.ZipFile(path)
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no zip archive"
            raise WheelError(f"{path.name} cannot be read: {reason}") from None
        self.entries = sorted(set(self._zip.namelist()))
        if len(self.entries) > _ENTRIES:
            raise WheelError(f"{path.name} has more than {_ENTRIES:,} files: that is no such wheel")

    def text(self, entry: str) -> str:
        """The text of a file in the archive."""
        try:
            with self._zip.open(entry) as file:
                # One byte more than allowed: the size that the archive gives may be a lie.
                content = file.read(_LARGEST + 1)
        except KeyError:
            raise WheelError(f"{self.path.name} has no {entry}: it is no complete wheel") from None
        except _DAMAGED:
            raise WheelError(f"{self.path.name} is damaged: {_shown(entry)} cannot be read") from None
        self._read += len(content)
        if len(content) > _LARGEST or self._read > _TOGETHER:
            raise WheelError(f"{self.path.name} is not read: {_shown(entry)} is too large")
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            raise WheelError(f"{self.path.name} is damaged: {_shown(entry)} is no UTF-8 text") from None

    def words(self, entry: str) -> frozenset[str]:
        """The strings of a compiled file that are names: each stands between two zero bytes."""
        found: set[str] = set()
        rest, size = b"", 0
        try:
            with self._zip.open(entry) as file:
                while size <= _LARGEST_COMPILED and (piece := file.read(1 << 20)):
                    size += len(piece)
                    *texts, rest = (rest + piece).split(b"\0")
                    rest = rest[-_LONGEST_NAME:]
                    found.update(text.decode() for text in texts if _NAME.fullmatch(text))
        except _DAMAGED:
            raise WheelError(f"{self.path.name} is damaged: {_shown(entry)} cannot be read") from None
        if size > _LARGEST_COMPILED:
            raise WheelError(f"{self.path.name} is not read: {_shown(entry)} is too large")
        return frozenset(found)

    def package_and_release(self) -> tuple[str, str]:
        """What its METADATA says that it is: the package, ``-`` as ``_``, and the version."""
        head = self._metadata()
        name = re.search(r"(?m)^Name: *([\w.-]+) *$", head)
        version = re.search(r"(?m)^Version: *(\S+) *$", head)
        if not name or not version:
            raise WheelError(f"{self.path.name} is no wheel: its METADATA lacks the name or the version")
        return name.group(1).replace("-", "_").lower(), version.group(1)

    def needed_torch(self) -> str:
        """The torch version to which its METADATA pins it."""
        found = re.search(r"(?m)^Requires-Dist: *torch *\(?== *(\d+\.\d+\.\d+)\b", self._metadata())
        if not found:
            raise WheelError(f"{self.path.name} does not say which torch it belongs to")
        return found.group(1)

    def _metadata(self) -> str:
        found = [entry for entry in self.entries if re.fullmatch(r"[^/]+\.dist-info/METADATA", entry)]
        if len(found) != 1:
            raise WheelError(f"{self.path.name} is no wheel: it has no METADATA")
        return self.text(found[0]).partition("\n\n")[0].replace("\r", "")

    def close(self) -> None:
        """Close the file."""
        self._zip.close()


def _shown(entry: str) -> str:
    return ascii(entry[:100])[1:-1]
