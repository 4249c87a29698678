"""``index.html``, and more pages where one would be too large: by the templates in ``reports/page/``."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from migrator.data_folders import data_folder, reports_yaml
from migrator.launch.script import NAME as LAUNCHER
from migrator.report.rows import cell_in
from migrator.report.views.highlight import Spans, as_html, marked, tokens_of
from migrator.report.views.hunks import Line
from migrator.report.views.model import FileView, view_of
from migrator.report.views.run import Run
from migrator.report.views.texts import Texts

if TYPE_CHECKING:
    from migrator.matchers.packs import Rule

INDEX = "index.html"
_LARGEST = 1_300_000  # bytes of the files on a page; what stands around them has room in 2 MB
_CODE = re.compile(r"`([^`\n]+)`")


def pages(run: Run, rules: Mapping[str, Rule], one_page: bool = False) -> Iterator[tuple[str, str]]:
    """The name and the text of each page of a run's report; one, however large, where that is asked for."""
    texts = Texts()
    view = view_of(run, texts, rules)
    environment = page_environment(t=texts, sides=_sides)
    macro = environment.get_template("file.html.j2").module.file_section  # type: ignore[attr-defined]
    sections = [(file, macro(file)) for file in view.files]
    parts = [sections] if one_page else _split(sections)
    names = [INDEX, *(f"files-{number}.html" for number in range(2, len(parts) + 1))]
    launched = run.kind == "migrate" and (run.folder.parent / LAUNCHER).is_file()
    places = {file.name: (name, file.anchor) for name, part in zip(names, parts) for file, _ in part}
    script = (data_folder("reports") / "page" / "script.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = environment.get_template("index.html.j2")
    for number, (name, part) in enumerate(zip(names, parts)):
        yield (
            name,
            template.render(
                view=view,
                run=run,
                sections=part,
                page=number,
                pages=[(each, [file for file, _ in own]) for each, own in zip(names, parts)],
                link=partial(_link, places, name),
                script=Markup(script),  # nosec B704 # our own file
                digest=digest,
                figures=reports_yaml("page/estimates.yaml"),
                launcher=LAUNCHER if launched else "",
            ),
        )


def write_pages(run: Run, rules: Mapping[str, Rule], folder: Path) -> Path:
    """Write the pages into a folder, in place of older ones; gives the first. Raises CannotWrite."""
    from migrator.files.replacing import replace_file

    written = set()
    for name, text in pages(run, rules):
        replace_file(folder / name, text.encode("utf-8", "backslashreplace"))
        written.add(name)
    for old in folder.glob("files-*.html"):
        if old.name not in written and re.fullmatch(r"files-\d+\.html", old.name):
            old.unlink()
    return folder / INDEX


def _link(places: Mapping[str, tuple[str, str]], here: str, file: str, line: int = 0) -> str:
    """The address of a file from one page, or of what is at a line of it, maybe in a notebook's cell."""
    name, cell = cell_in(file)
    page, anchor = places.get(name, (here, ""))
    suffix = "" if cell is None else f":{cell}"
    place = f"{anchor}{suffix}:{line}" if line else anchor
    return f"{'' if page == here else page}#{quote(place)}"


def _split(sections: Sequence[tuple[FileView, str]]) -> list[list[tuple[FileView, str]]]:
    parts: list[list[tuple[FileView, str]]] = [[]]
    size = 0
    for file, text in sections:
        length = len(text.encode("utf-8", "backslashreplace"))
        if parts[-1] and size + length > _LARGEST:
            parts.append([])
            size = 0
        parts[-1].append((file, text))
        size += length
    return parts


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
    environment.filters.update(words=words, query=quote)
    return environment


def words(text: str) -> Markup:
    """A text of a rule: what stands between backquotes is code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # nosec B704 # escaped first


def _sides(name: str, lines: Sequence[Line]) -> Iterator[tuple[Line, Any, Any]]:
    """Each line with its two sides as HTML, None where a side has none, and marks where they differ."""
    sides = [[line.before for line in lines], [line.after for line in lines]]
    tokens = [iter(tokens_of(name, [text for text in side if text is not None])) for side in sides]
    for line in lines:
        marks: tuple[Spans, Spans] = ([], [])
        if line.changed and line.before is not None and line.after is not None:
            marks = marked(line.before, line.after)
        before, after = (  # escaped there
            None if text is None else Markup(as_html(next(side), spans))  # nosec B704
            for text, side, spans in zip((line.before, line.after), tokens, marks)
        )
        yield line, before, after
