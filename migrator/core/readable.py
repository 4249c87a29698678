"""What Python does not run, or reads in another way than it is written: such files are left as they are."""

from __future__ import annotations

import ast
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress

from migrator.core.rules import Rules
from migrator.files.source import Lines
from migrator.findings.finding import Edit
from migrator.language import _
from migrator.names.large import LARGE, in_pieces

_WORD = re.compile(r"\w+")
_ODD = r"[^\W\x00-\x7f]"  # a letter that is none of ASCII's
_ASYNC_METHODS = frozenset({"cuda", "to", "copy_", "type"})

# Of these statements of a module it matters what is above them.
_OF_THE_WHOLE = r"(?m)^(?:global\b|from\s+__future__\b)"


class OddNameError(SyntaxError):
    """A name that Python takes for another one."""


def check_compiles(text: str, cell_mark: str = "", tree: ast.Module | None = None) -> None:
    """Raises SyntaxError for what does not parse, or only for ``ast``: ``return`` outside a function.

    Of a notebook each cell is compiled by itself, as IPython does: it may begin with ``from __future__``.
    ``cell_mark`` is what its text has below each cell, ``tree`` that of the text where it is known.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell_mark:
            row = 0
            for cell in re.split(rf"^{re.escape(cell_mark)} \d+$", text, flags=re.M):
                _compiled("\n" * row + cell, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)  # rows count in the whole text
                row += cell.count("\n")
            return
        if tree is not None:
            with suppress(RecursionError):  # of a deep tree, which the text itself need not meet
                compile(tree, "<unknown>", "exec", dont_inherit=True)
                return
        if len(text) > LARGE and not re.search(_OF_THE_WHOLE, text):
            with suppress(SyntaxError):  # its place is that in the text where all of it is compiled
                for _each in in_pieces(text, _compiled):
                    pass
                return
        _compiled(text)


def _compiled(text: str, flags: int = 0) -> None:
    compile(text, "<unknown>", "exec", flags, dont_inherit=True)


def check_names(text: str, rules: Rules) -> None:
    """Raises OddNameError for a name that a rule is about and that is spelt with other letters.

    Python reads ``torch.𝐜uda`` as ``torch.cuda`` (NFKC): the places of a text and its words are no longer
    those of its tree.
    """
    if text.isascii() or not re.search(_ODD, text):
        return
    import tokenize
    from unicodedata import normalize

    meant_by = ((word, normalize("NFKC", word)) for word in set(_WORD.findall(text)) if not word.isascii())
    plain = ((word, meant) for word, meant in meant_by if meant.isascii())
    odd = {word: meant for word, meant in plain if meant.startswith("torch") or rules.asks_for(meant)}
    if not odd:
        return
    with suppress(tokenize.TokenError):  # it cannot be parsed either: who does says why
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and token.string in odd:
                name, meant = token.string, odd[token.string]
                said = _("{string} is {meant} to Python: spell it in plain letters", string=name, meant=meant)
                raise OddNameError(said, (None, *token.start, token.line))


def async_arguments(lines: Lines, text: str) -> Iterator[Edit]:
    """The edits that give methods of tensors ``non_blocking``, which torch 0.3 called ``async``.

    Python 3.7 made that a keyword: the text has no tree.
    """
    import tokenize

    called: list[str] = []  # what each open bracket calls
    before, place = ("", ""), (1, 0)
    with suppress(tokenize.TokenError, IndentationError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            word = token.string
            if token.type == tokenize.OP and word in "([{":
                called.append(before[1] if before[0] == "." else "")
            elif token.type == tokenize.OP and word in ")]}" and called:
                called.pop()
            elif word == "=" and before[1] == "async" and called and called[-1] in _ASYNC_METHODS:
                start = lines.offset(place[0], place[1] + 1)
                yield Edit(start, start + len("async"), "non_blocking")
            if token.type not in (tokenize.NL, tokenize.COMMENT):
                before = (before[1], word)
                place = token.start
