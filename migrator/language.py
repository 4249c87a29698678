"""The language in which people are spoken to: English, or that of catalogues, such as ``reports/zh.po``.

``_`` is around every text that people read. The language is asked for once, by the first of them; an English
run reads no catalogue, and another only those that it needs. What programs read stays English: see
``english_for_programs``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Optional

LANGUAGES = ("en", "zh")
VARIABLE = "NPUMIGRATE_LANG"
# In the order in which they count: ours, then as GNU gettext reads them.
_VARIABLES = (VARIABLE, "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")

_catalogue: Optional[dict[str, str]] = None  # not asked for yet; empty for English
_files = {("reports", "zh.po"): None}


def _(text: str, /, **values: object) -> str:
    """A text of npumigrate in the language of the run; with ``values``, its ``{fields}`` are filled in."""
    said = (catalogue() if _catalogue is None else _catalogue).get(text, text)
    return said.format(**values) if values else said


def ngettext(one: str, other: str, n: int, **values: object) -> str:
    """A text for one, or for another number of things, which is its field ``{n}``."""
    return _(one if n == 1 else other, n=n, **values)


def N_(text: str, /) -> str:  # noqa: N802 (the custom of gettext)
    """A text that ``_`` gets later, as it is: this only marks it for the catalogue."""
    return text


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """What may be meant by a misspelt name, as the end of a message."""
    from difflib import get_close_matches

    near = get_close_matches(str(name), known, n=1)
    return _("; did you mean {near!r}?", near=near[0]) if near else ""


class UserError(Exception):
    """An error whose text is the user's line, in the language of the run; ``values`` are those of its fields.

    Where nothing catches it, it ends the command with that line, and its exit code.
    """

    code = 2

    def __init__(self, text: str, /, **values: object) -> None:
        super().__init__(_(text, **values))


class MessageError(UserError, ValueError):
    """Such an error about what the user has given."""


def language() -> str:
    """The language that the environment asks for: the first variable that says something decides."""
    said = next(filter(None, map(os.environ.get, _VARIABLES)), "")
    return "zh" if said.lower().startswith("zh") else "en"


def choose(language: str) -> None:
    """Speak a language from now on, here and in the processes that are started."""
    global _catalogue
    os.environ[VARIABLE] = language
    _catalogue = None


def also_read(folder: str, name: str) -> None:
    """Have the texts of another catalogue, too: that in a file of a data folder."""
    global _catalogue
    if (folder, name) not in _files:
        _files[folder, name] = None
        _catalogue = None


def english_for_programs() -> None:
    """Speak English: the output of this run is for programs, whatever language its user reads."""
    choose("en")


def catalogue() -> Mapping[str, str]:
    """The texts with their translations into the language of the run; empty for English."""
    global _catalogue
    if _catalogue is not None:
        return _catalogue
    _catalogue = {}
    if language() != "en":
        from migrator.data_folders import data_folder

        for folder, name in _files:
            _catalogue |= entries((data_folder(folder) / name).read_text(encoding="utf-8"))
    return _catalogue


def entries(catalogue: str) -> dict[str, str]:
    """The texts of a catalogue in the format of gettext, with their translations where they have one."""
    from json import loads

    found: dict[str, str] = {}
    text, said, in_text = "", "", False

    def keep() -> None:
        if text and said:
            found[text] = said

    for line in catalogue.splitlines():
        key, quote, rest = line.partition('"')
        if not quote or line.startswith("#"):
            continue
        value = loads(quote + rest)  # the escapes are those of JSON
        if key == "msgid ":
            keep()
            text, said, in_text = value, "", True
        elif key == "msgstr ":
            said, in_text = value, False
        elif in_text:
            text += value
        else:
            said += value
    keep()
    return found
