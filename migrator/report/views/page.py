"""``index.html``, and more pages where one would be too large: by the templates in ``reports/page/``."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache, partial
from html import escape as escaped
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pygments import lex
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Literal, Name, Number, Operator, String
from pygments.util import ClassNotFound

from migrator.data_folders import data_folder, reports_yaml
from migrator.launch.target import NAME as LAUNCHER
from migrator.matchers.packs import Rule
from migrator.report.csv_tables import cell_in
from migrator.report.log_file import LastRun, last_run
from migrator.report.views.hunks import Line
from migrator.report.views.model import Texts, counts_of, readiness, view_of
from migrator.report.views.run import Run

INDEX = "index.html"
_LARGEST = 1_300_000  # bytes of the files on a page; what stands around them has room in 2 MB
_CODE = re.compile(r"`([^`\n]+)`")
# The kinds of tokens that have a colour, the most special first; a class each in style.css.
_CLASSES = {Comment: "c", String.Doc: "c", String: "s", Number: "n", Literal: "n", Operator.Word: "k"}
_CLASSES |= {Keyword: "k", Name.Decorator: "d", Name.Function: "f", Name.Class: "f", Name.Builtin: "b"}
_WORDS = re.compile(r"\w+|\s+|.", re.S)
Spans = list[tuple[int, int]]


def pages(
    run: Run, rules: Mapping[str, Rule], one_page: bool = False, tables: Sequence[str] = ()
) -> Iterator[tuple[str, str]]:
    """The name and the text of each page of a run's report; one, however large, where that is asked for.

    ``tables`` are files beside the page, which offers them.
    """
    texts = Texts()
    view = view_of(run, texts, rules)
    environment = page_environment(t=texts, sides=_sides, reviewed=run.reviewed)
    macro = environment.get_template("file.html.j2").module.file_section  # type: ignore[attr-defined]
    parts: list[list[tuple[dict[str, Any], str]]] = [[]]
    size = 0
    for file, text in ((file, macro(file)) for file in view["files"]):
        length = len(text.encode("utf-8", "backslashreplace"))
        if parts[-1] and size + length > _LARGEST and not one_page:
            parts.append([])
            size = 0
        parts[-1].append((file, text))
        size += length
    names = [INDEX, *(f"files-{number}.html" for number in range(2, len(parts) + 1))]
    launched = run.kind == "migrate" and (run.folder.parent / LAUNCHER).is_file()
    places = {file["name"]: (name, file["anchor"]) for name, part in zip(names, parts) for file, _ in part}
    script = (data_folder("reports") / "page" / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment.get_template("index.html.j2")
    known = {
        "view": view,
        "run": run,
        "digest": digest,
        "script": Markup(script),  # nosec B704 # our own file
        "figures": reports_yaml("page/estimates.yaml"),
        "tables": tables,
        "last": last_run(run.folder) if run.tables else LastRun(),
        "launcher": LAUNCHER if launched else "",
        "pages": [(name, [file for file, _ in part]) for name, part in zip(names, parts)],
    }
    for number, (name, part) in enumerate(zip(names, parts)):
        yield name, template.render(known, sections=part, page=number, link=partial(_link, places, name))


def write_pages(run: Run, rules: Mapping[str, Rule], folder: Path) -> Path:
    """Write the pages into a folder, in place of older ones; gives the first. Raises CannotWrite."""
    from migrator.files.replacing import replace_file

    written = set()
    beside = sorted(file.name for pattern in ("*.csv", "*.xlsx") for file in folder.glob(pattern))
    for name, text in pages(run, rules, tables=beside):
        replace_file(folder / name, text.encode("utf-8", "backslashreplace"))
        written.add(name)
    for old in folder.glob("files-*.html"):
        if old.name not in written and re.fullmatch(r"files-\d+\.html", old.name):
            old.unlink()
    return folder / INDEX


def summary_page(run: Run, rules: Mapping[str, Rule]) -> str:
    """A run on one sheet of A4, for who decides."""
    texts = Texts()
    template = page_environment(t=texts, sides=_sides).get_template("summary.html.j2")
    return template.render(run=run, view=view_of(run, texts, rules), last=last_run(run.folder))


def difference_page(runs: tuple[Run, Run], new: Any, gone: Any, same: int) -> str:
    """What ``difference`` has found between two runs."""
    rows = {"new": new.to_dict("records"), "gone": gone.to_dict("records"), "same": same}
    ready = [readiness(counts_of(run))[0] for run in runs]
    last = [last_run(run.folder) for run in runs]
    template = page_environment(t=Texts(), sides=_sides).get_template("diff.html.j2")
    return template.render(runs=runs, ready=ready, last=last, **rows)


def _link(places: Mapping[str, tuple[str, str]], here: str, file: str, line: int = 0) -> str:
    """The address of a file from one page, or of what is at a line of it, maybe in a notebook's cell."""
    name, cell = cell_in(file)
    page, anchor = places.get(name, (here, ""))
    suffix = "" if cell is None else f":{cell}"
    place = f"{anchor}{suffix}:{line}" if line else anchor
    return f"{'' if page == here else page}#{quote(place)}"


def page_environment(**known: Any) -> Environment:
    """The templates of ``reports/page/``, with our style and what is ``known`` in them."""
    environment = Environment(
        loader=FileSystemLoader(data_folder("reports") / "page"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    style = (data_folder("reports") / "page" / "style.css").read_text(encoding="utf-8")
    environment.globals.update(known, style=Markup(style))  # nosec B704 # our own file
    environment.filters.update(words=words, query=partial(quote, safe="/:"))
    return environment


def words(text: str) -> Markup:
    """A text of a rule: what stands between backquotes is code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # nosec B704 # escaped first


def _sides(name: str, lines: Sequence[Line]) -> Iterator[tuple[Line, Any, Any]]:
    """Each line with its two sides as HTML, None where a side has none, and marks where they differ."""
    sides = [[line.before for line in lines], [line.after for line in lines]]
    tokens = [iter(_tokens(name, [text for text in side if text is not None])) for side in sides]
    for line in lines:
        marks: tuple[Spans, Spans] = ([], [])
        if line.changed and line.before is not None and line.after is not None:
            marks = _marked(line.before, line.after)
        before, after = (  # escaped there
            None if text is None else Markup(_as_html(next(side), spans))  # nosec B704
            for text, side, spans in zip((line.before, line.after), tokens, marks)
        )
        yield line, before, after


# -- source lines ----------------------------------------------------------------------


@lru_cache(maxsize=64)
def _lexer(name: str) -> Any:
    name = name.rpartition("/")[2]
    if name.endswith(".ipynb"):
        name = "cell.py"
    try:
        return get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return TextLexer(stripnl=False, ensurenl=False)


def _tokens(name: str, lines: Sequence[str]) -> list[list[tuple[str, str]]]:
    """The parts of lines that follow one another, with the class of each, empty where it has none."""
    found: list[list[tuple[str, str]]] = [[]]
    for kind, text in lex("\n".join(lines), _lexer(name)):
        style = next((name for each, name in _CLASSES.items() if kind in each), "")
        first, *others = text.split("\n")
        found[-1].append((style, first))
        found.extend([(style, each)] for each in others)
    lengths = [sum(len(text) for _, text in parts) for parts in found]
    return found if [len(line) for line in lines] == lengths else [[("", line)] for line in lines]


def _marked(before: str, after: str) -> tuple[Spans, Spans]:
    """What of two lines is not in the other one: first and last character; nothing where little is common."""
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.quick_ratio() < 0.4:
        return [], []
    changed = [codes[1:] for codes in matcher.get_opcodes() if codes[0] != "equal"]
    ends = [[0, *accumulate(map(len, words))] for words in (old, new)]
    return (
        [(ends[0][first], ends[0][last]) for first, last, _, _ in changed if first < last],
        [(ends[1][start], ends[1][end]) for _, _, start, end in changed if start < end],
    )


def _as_html(tokens: Iterable[tuple[str, str]], marks: Spans) -> str:
    """A line as HTML; ``marks`` are what differs. Everything of the line is escaped."""
    parts = []
    offset = 0
    for style, alike in groupby(tokens, itemgetter(0)):
        text, inner, at = "".join(part for _, part in alike), "", 0
        for first, last in marks:
            start, end = max(first - offset, at), min(last - offset, len(text))
            if start < end:
                inner += f"{escaped(text[at:start])}<mark>{escaped(text[start:end])}</mark>"
                at = end
        inner += escaped(text[at:])
        parts.append(f"<i class={style}>{inner}</i>" if style and not text.isspace() else inner)
        offset += len(text)
    return "".join(parts)
