"""What the site has beside the files of docs/: a hook of MkDocs.

It adds one page for each rule, ``rules/NPU101/``, and for each error, ``errors/EI0006/`` and in Chinese
``zh/errors/EI0006/``, made from their data; tables of them as the pages ``rules/`` and ``errors/``; and the
documents of the repository's root. Links are written for readers of the repository, and
turned here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
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
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# The documents of the root, and the pages that they become.
DOCUMENTS = {
    "README.md": "index.md",
    "README.zh.md": "zh/index.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}
_TITLES = {"en": "Errors", "zh": "错误码"}
_LINK = re.compile(r"\[(?P<text>[^\[\]]*)\]\((?P<path>[^()\s#:]+)(?P<anchor>#[^()\s]*)?\)")
_CODE_WITH_BAR = re.compile(r"`[^`\n]*\\\|[^`\n]*`")  # GitHub wants \| in tables, where MkDocs shows both


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the site the address that findings link to, and a place in the menu to pages that have none."""
    config.site_url = migrator.SITE
    pages = sorted(
        page.relative_to(config.docs_dir).as_posix() for page in Path(config.docs_dir).rglob("*.md")
    )
    others = [page for page in pages if f"'{page}'" not in str(config.nav)]
    if others and config.nav is not None:
        config.nav.append({"More": others})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of rules and the documents of the root."""
    from mkdocs.structure.files import File

    rules = load_all()
    pages = {page: (ROOT / name).read_text(encoding="utf-8") for name, page in DOCUMENTS.items()}
    pages["rules.md"] = tables_as_markdown(rules, "rules/{code}.md")
    for rule in rules:
        pages[f"rules/{rule.code}.md"] = f"{as_markdown(rule)}\n[All rules](../rules.md)\n"
    pages |= dict(_pages_of_errors())
    for page, text in pages.items():
        old = files.get_file_from_path(page)
        if old is not None:
            files.remove(old)
        files.append(File.generated(config, page, content=text))
    return files


def _pages_of_errors() -> Iterator[tuple[str, str]]:
    """A page for each error and a table of them, in each language."""
    spoken = language()
    for tongue, folder in ("en", ""), ("zh", "zh/"):
        choose(tongue)
        rows = ["| | | |", "| --- | --- | --- |"]
        for entry in entries():
            rows.append(f"| [{entry.code}](errors/{entry.code}.md) | {_(entry.name)} | {entry.layer} |")
            examples = "\n".join(entry.examples)
            page = as_page(parts_of_entry(entry))[1:]  # its heading is the page's
            page += f"\n```text\n{examples}\n```\n\n[{_TITLES[tongue]}](../errors.md)\n"
            yield f"{folder}errors/{entry.code}.md", page
        table = "\n".join(rows)
        yield f"{folder}errors.md", f"# {_TITLES[tongue]}\n\n`npumigrate explain LOG`\n\n{table}\n"
    choose(spoken)


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links for readers of the repository into links of the site, and fix code in tables."""
    markdown = _CODE_WITH_BAR.sub(lambda code: code[0].replace("\\|", "|"), markdown)
    name = page.file.src_uri
    if name.startswith(("rules", "errors", "zh/errors")):
        return markdown
    of_root = name in DOCUMENTS.values()
    if of_root:
        markdown = markdown.replace('src="docs/', 'src="../' if "/" in name else 'src="')
    return _LINK.sub(lambda link: _turned(link, name, of_root), markdown)


def _turned(link: re.Match[str], page: str, of_root: bool) -> str:
    """A link on a page; only its text where it leads to a file of the repository that is no page."""
    folder = posixpath.dirname(page)
    target = posixpath.normpath(posixpath.join("" if of_root else f"docs/{folder}", link["path"]))
    place = DOCUMENTS.get(target) or (target[len("docs/") :] if target.startswith("docs/") else "")
    if not place:
        return link["text"]
    return f"[{link['text']}]({posixpath.relpath(place, folder or '.')}{link['anchor'] or ''})"
