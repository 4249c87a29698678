"""Reader of makefiles: variables, and recipes, which are shell.

A recipe is handed to the shell's reader in a copy of the file, of the same length, in which all else is blank
and what only make understands is written as a shell would: ``$(NAME)`` as ``${NAME}``. No grammar for
makefiles knows shell as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from migrator.files.lines import Lines
from migrator.other_files.index import Content, Setting
from migrator.other_files.shell import read_shell

_RECIPE = re.compile(rb"^\t[@+-]*((?:[^\\\n]|\\.|\\\n)*)", re.MULTILINE | re.DOTALL)
_ASSIGNED = re.compile(
    rb"^(?:(?:export|override)[ ]+)*([A-Za-z_][\w.-]*)[ \t]*"
    rb"(?::{1,3}|[?+!])?=[ \t]*([^\n#]*?)[ \t]*(?=\r?$|#)",
    re.MULTILINE,
)
_EXPORTED = re.compile(rb"^(?:un)?export[ ]+([A-Za-z_]\w*)[ \t]*\r?$", re.MULTILINE)
_COMMENT = re.compile(rb"^[^\t\n#]*?(#[^\n]*)", re.MULTILINE)
_VARIABLE = re.compile(rb"\$\((\w+)\)")
_USED = re.compile(rb"\$\(([A-Za-z_][\w.-]*)\)")
_FUNCTION = re.compile(rb"\$\((?=[\w-]+ )[\w-]+")
_HANDED = re.compile(rb"""[= \t]["']?\$\((\w+)\)["']?(?=\s|$)""")


def read(lines: Lines) -> Content:
    """What a makefile says."""
    data = lines.data
    shell = read_shell(bytes(_recipes(data)))
    own = list(_variables(data))
    values = {setting.name: setting for setting in own if setting.value}
    used = Counter(found[1].decode("ascii") for found in _USED.finditer(data))
    flows = [
        setting._replace(value=found.value, value_span=found.value_span)
        for setting in shell.settings
        if setting.kind in ("option", "key") and setting.value is None and setting.value_span is None
        for found in [values.get(_handed(data, setting))]
        if found is not None and used[found.name] == 1
    ]
    comments = tuple(found.span(1) for found in _COMMENT.finditer(data))
    written = (_as_written(setting, data) for setting in shell.settings)
    settings = sorted([*written, *own, *flows], key=lambda item: item.name_span)
    return shell._replace(settings=tuple(settings), comments=(*shell.comments, *comments))


def _recipes(data: bytes) -> bytearray:
    """The file with its recipes alone, as a shell reads them."""
    blank = bytearray(re.sub(rb"[^\n]", b" ", data))
    for found in _RECIPE.finditer(data):
        start, end = found.span(1)
        recipe = _VARIABLE.sub(rb"${\1}", data[start:end])
        recipe = _FUNCTION.sub(lambda match: b"$(" + b" " * (len(match.group()) - 2), recipe)
        recipe = recipe.replace(b"$$", b"_$").replace(b"$<", b"$_").replace(b"$^", b"$_")
        blank[start:end] = recipe.replace(b"\\\n\t", b"\\\n ")
    return blank


def _variables(data: bytes) -> Iterator[Setting]:
    for found in _ASSIGNED.finditer(data):
        value = found[2].decode("utf-8", "replace")
        known = "$" not in value and not value.endswith("\\")
        span = found.span(2) if known else None
        name = found[1].decode("ascii")
        yield Setting("variable", name, found.span(1), value if known else None, span)
    for found in _EXPORTED.finditer(data):
        yield Setting("variable", found[1].decode("ascii"), found.span(1), reads=True)


def _as_written(setting: Setting, data: bytes) -> Setting:
    """A setting of a recipe without a value that only stands in the copy."""
    there = data[slice(*setting.value_span)] if setting.value_span is not None else b""
    if there == (setting.value or setting.begins).encode("utf-8"):
        return setting
    return setting._replace(value=None, value_span=None, begins="")


def _handed(data: bytes, setting: Setting) -> str:
    """The variable of make that stands behind an option; empty for anything else."""
    found = _HANDED.match(data, setting.name_span[1])
    return found[1].decode("ascii") if found else ""
