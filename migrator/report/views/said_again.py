"""The texts of an English run in the language of this one: tables hold them with their fields filled in."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from itertools import chain
from string import Formatter
from typing import NamedTuple

from migrator.language import catalogue
from migrator.report.csv_tables import with_advice

# What only fits into the field of a name; anything else fits into any.
_FIELDS = {"n": r"[\d,]+", "version": r"\d+(?:\.\w+)*"}
_WORD = re.compile(r"(?<!\S)[^\W\d]{2,}(?!\S)")
_STOP = re.compile(r"(?<!^)(?:[.;:] | \()")
_NOUNS = ("noun",)  # fields that hold a word of the catalogue: in others a single word is a name of the code
# What is longer, or has more parts, stays: a table may be anybody's, and a part is read many times.
_LONGEST, _MOST_STOPS = 3_000, 16


class _Template(NamedTuple):
    """An English text with fields as an expression, how long it is without them, and the translation.

    ``said`` has text at even places and the group of a field at odd ones, ``groups`` the fields by these.
    """

    pattern: re.Pattern[str]
    length: int
    groups: dict[str, str]
    said: tuple[str, ...]


def said_again(text: str) -> str:
    """A text of an English run in the language of this one; as it is where no text of the catalogue fits."""
    ours = catalogue() and len(text) <= _LONGEST and len(_STOP.findall(text)) <= _MOST_STOPS
    return _again(text)[1] if ours else text


@cache
def _again(text: str) -> tuple[int, str]:
    """How many characters of a text are the catalogue's, read so that most of them are, and what that gives.

    What its fields were filled with is translated, too. A text may be two: a message with its advice.
    """
    known = catalogue()
    if text in known:
        return len(text), known[text]
    best = 0, text
    by_word = _templates()
    for template in chain.from_iterable(by_word.get(word, ()) for word in {*_WORD.findall(text)}):
        if found := template.pattern.fullmatch(text):
            filled = {group: _filled(found[group], field) for group, field in template.groups.items()}
            covered = template.length + sum(each for each, _said in filled.values())
            # Of two readings the likelier one begins with another text: "{where}, named like a {noun}".
            if (covered, text.startswith(found["f0"])) > (best[0], False):
                parts = (filled[each][1] if n % 2 else each for n, each in enumerate(template.said))
                best = covered, "".join(parts)
    for stop in _STOP.finditer(text):
        # "A message. Its advice", "a message; its reason"; or the second text begins with "; " or " (".
        end, behind, sentence = stop.start(), stop.end(), stop[0] == ". "
        for first, rest in ((end + sentence, behind), (end, behind if sentence else end)):
            (covered, said), (more, other) = _again(text[:first]), _again(text[rest:])
            if covered + more > best[0]:
                best = covered + more, with_advice(said, other) if sentence else said + text[end:rest] + other
    return best


def _filled(text: str, field: str) -> tuple[int, str]:
    return (0, text) if text.isidentifier() and field not in _NOUNS else _again(text)


@cache
def _templates() -> dict[str, list[_Template]]:
    """The texts of the catalogue that have fields, by the longest word in each."""
    found: dict[str, list[_Template]] = {}
    for english, said in catalogue().items():
        texts, fields = _parts(english)
        # A word that a field touches may be longer in a text.
        word = max(_WORD.findall("{}".join(texts)), key=len, default="")
        if fields and word:
            groups = {field: f"f{place}" for place, field in enumerate(dict.fromkeys(fields))}
            expression, opened = re.escape(texts[0]), set[str]()
            for field, text in zip(fields, texts[1:]):
                group = groups[field]
                # What ends another text may be empty: "on NPUs{differ}", "for torch {version}{left}".
                anything = ".*?" if expression[-1:].isalpha() or expression[-1:] == ")" else ".+?"
                held = f"(?P={group})" if group in opened else f"(?P<{group}>{_FIELDS.get(field, anything)})"
                expression += held + re.escape(text)
                opened.add(group)
            others, names = _parts(said)
            whole = [*others[:1], *(part for pair in zip(names, others[1:]) for part in pair)]
            whole[1::2] = [groups.get(name, "") for name in names]
            if "" not in whole[1::2]:
                pattern, length = re.compile(expression, re.DOTALL), sum(map(len, texts))
                by_group = {group: field for field, group in groups.items()}
                template = _Template(pattern, length, by_group, tuple(whole))
                found.setdefault(word, []).append(template)
    return found


def _parts(text: str) -> tuple[list[str], list[str]]:
    """What stands around the fields of a text, one more than there are fields; and the fields' names."""
    texts, fields = [""], []
    with suppress(ValueError):  # a text with braces of its own
        for before, field, _spec, _conversion in Formatter().parse(text):
            texts[-1] += before
            if field is not None:
                fields.append(field)
                texts.append("")
    return texts, fields
