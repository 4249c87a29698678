"""What the site has beside the files of docs/: a hook of MkDocs.

It adds a page for each rule, ``rules/NPU101/``, and for each error, ``errors/EI0006/``, made from their
data; tables of them as the pages ``rules/`` and ``errors/``; and the documents of the repository's root. In
Chinese they are below ``zh/``, as all pages are. Links are written for readers of the repository, and turned
here.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import migrator
from migrator.explain.show import as_markdown as as_page
from migrator.explain.show import parts_of_entry
from migrator.explain.table import entries
from migrator.language import _, choose, language
from migrator.matchers.packs import load_all
from migrator.report.rule_text import as_markdown, tables_as_markdown

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# The documents of the root, and the pages that they become.
DOCUMENTS = {
    "README.md": "index.md",
    "README.zh.md": "index.zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
_EVERY = int(os.environ.get("SITE_EVERY", "1"))
_ALL_RULES = {"en": "All rules", "zh": "所有规则"}
_ERRORS = {"en": "Errors", "zh": "错误码"}
_ENDS = {"en": ".md", "zh": ".zh.md"}
# The line with the other language below a heading: on the site its header has that.
_OTHER_LANGUAGE = re.compile(
    r"^(?:\*\*English\*\* · )?\[(?:English|中文)\]\([^()]+\)(?: · \*\*中文\*\*)?\n", re.M
)
_folder = TemporaryDirectory()  # of the pages: the plugin for languages knows files only
_LINK = re.compile(r"\[(?P<text>[^\[\]]*)\]\((?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?\)")
_PICTURE = re.compile(r'(src="images/\w+)\.zh(?=\.)')
_BREAK = re.compile(r"(?<=[\u3001-\u9fff\uff01-\uff60])\n *(?=[\u3008-\u9fff\uff01-\uff60])")
_CODE_WITH_BAR = re.compile(r"`[^`\n]*\\\|[^`\n]*`")  # GitHub wants \| in tables, where MkDocs shows both


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the site its address, its own folder of pages, and a place in the menu to pages that have none."""
    if config.docs_dir == _folder.name:  # the second language
        return config
    config.site_url = migrator.SITE
    shutil.rmtree(_folder.name)
    shutil.copytree(config.docs_dir, _folder.name)
    config.docs_dir = _folder.name
    pages = sorted(page.relative_to(_folder.name).as_posix() for page in Path(_folder.name).rglob("*.md"))
    others = [page for page in pages if f"'{page}'" not in str(config.nav) and not page.endswith(_ENDS["zh"])]
    if others and config.nav is not None:
        config.nav.append({"More": others})
    for name, text in _pages():
        page = Path(_folder.name, name)
        page.parent.mkdir(exist_ok=True)
        page.write_text(text, encoding="utf-8")
    return config


def _pages() -> Iterator[tuple[str, str]]:
    """The documents of the root, and the pages of rules and errors in each language."""
    for name, page in DOCUMENTS.items():
        yield page, (ROOT / name).read_text(encoding="utf-8")
    spoken = language()
    for tongue in _ENDS:
        choose(tongue)
        yield from _pages_of_rules(tongue)
        yield from _pages_of_errors(tongue)
    choose(spoken)


def _pages_of_rules(tongue: str) -> Iterator[tuple[str, str]]:
    """A page for each rule and the tables of them, in the language that is spoken."""
    rules, end = load_all()[::_EVERY], _ENDS[tongue]
    yield f"rules{end}", tables_as_markdown(rules, "rules/{code}.md")
    for rule in rules:
        yield f"rules/{rule.code}{end}", f"{as_markdown(rule)}\n[{_ALL_RULES[tongue]}](../rules.md)\n"


def _pages_of_errors(tongue: str) -> Iterator[tuple[str, str]]:
    """A page for each error and a table of them, in the language that is spoken."""
    title, end = _ERRORS[tongue], _ENDS[tongue]
    rows = ["| | | |", "| --- | --- | --- |"]
    for entry in entries()[::_EVERY]:
        rows.append(f"| [{entry.code}](errors/{entry.code}.md) | {_(entry.name)} | {entry.layer} |")
        examples = "\n".join(entry.examples)
        page = as_page(parts_of_entry(entry))[1:]  # its heading is the page's
        yield f"errors/{entry.code}{end}", f"{page}\n```text\n{examples}\n```\n\n[{title}](../errors.md)\n"
    table = "\n".join(rows)
    yield f"errors{end}", f"# {title}\n\n`npumigrate explain LOG`\n\n{table}\n"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links for readers of the repository into links of the site, and fix code in tables."""
    markdown = _CODE_WITH_BAR.sub(lambda code: code[0].replace("\\|", "|"), markdown)
    markdown = _OTHER_LANGUAGE.sub("", markdown)
    name = page.file.src_uri
    if name.startswith(("rules", "errors")):
        return markdown
    of_root = name in DOCUMENTS.values()
    if of_root:
        markdown = markdown.replace(
            'src="docs/', 'src="'
        )  # in zh/ the plugin takes .zh out of a picture's name
        markdown = _PICTURE.sub(r"\1", markdown) if name.endswith(_ENDS["zh"]) else markdown
    if name.endswith(_ENDS["zh"]):
        markdown = "".join(map(_joined, re.split(r"(^```.*?^```)", markdown, flags=re.M | re.S)))
    return _LINK.sub(lambda link: _turned(link, page, of_root), markdown)


def _joined(text: str) -> str:
    """A Chinese text without the blanks that a browser shows for line breaks between its characters."""
    return text if text.startswith("```") else _BREAK.sub("", text)


def _turned(link: re.Match[str], page: Page, of_root: bool) -> str:
    """A link on a page; only its text where it leads to a file of the repository that is no page.

    From a Chinese page, a heading of an English page that has a translation is one of the English page.
    """
    folder = posixpath.dirname(page.file.src_uri)
    target = posixpath.normpath(posixpath.join("" if of_root else f"docs/{folder}", link["path"]))
    place = DOCUMENTS.get(target) or (target[len("docs/") :] if target.startswith("docs/") else "")
    if not place:
        return link["text"]
    translated = Path(_folder.name, place).with_suffix(_ENDS["zh"])
    if link["anchor"] and page.file.url.startswith("zh/") and translated.exists():
        address = posixpath.relpath(place.removesuffix(".md"), page.file.url)
        return f'<a href="{address}/{link["anchor"]}">{link["text"]}</a>'
    place = posixpath.relpath(place.replace(_ENDS["zh"], _ENDS["en"]), folder or ".")  # in its language
    return f"[{link['text']}]({place}{link['anchor'] or ''})"
