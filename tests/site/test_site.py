"""The site: it is built without a warning, has a page for each rule, and findings link to these."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

from migrator.explain.table import entries
from migrator.matchers import packs
from tests.checking import every_rule

ROOT = Path(__file__).parents[2]
BASE = "https://docs.example.org/npumigrate/"


@pytest.fixture(scope="module", params=[50, pytest.param(1, marks=pytest.mark.thorough)])
def every(request: pytest.FixtureRequest) -> int:
    """How many rules, or errors, there are for one that has a page: a page takes 50 ms."""
    return int(request.param)


@pytest.fixture(scope="module")
def site(every: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly: a broken link or anchor, and a page that no menu names, are errors."""
    pytest.importorskip("material", reason="MkDocs Material is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = {**os.environ, "SITE_EVERY": str(every)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return folder


def test_each_rule_has_a_page(site, every) -> None:
    rules = every_rule()[::every]
    for rule in rules:
        for folder, word in ("rules", " fix"), ("zh/rules", "修复"):
            page = (site / folder / rule.code / "index.html").read_text(encoding="utf-8")
            assert f"<title>{rule.code}: {rule.name}" in page
            assert word in page
    table = (site / "rules" / "index.html").read_text(encoding="utf-8")
    assert [rule.code for rule in rules if f'href="{rule.code}/"' not in table] == []


def test_a_page_is_there_in_each_language(site) -> None:
    """In its own words where it is translated, and with the menu, the search and a way back in any case."""
    for page, heading in ("howto/slow", "程序太慢"), ("lint", "Lint"):
        text = (site / "zh" / page / "index.html").read_text(encoding="utf-8")
        assert '<html lang="zh"' in text
        assert heading in text
        assert 'hreflang="en"' in text
        assert "操作指南" in text
    assert "程序太慢" not in (site / "howto" / "slow" / "index.html").read_text(encoding="utf-8")
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert {"en", "zh"} <= set(index["config"]["lang"])
    assert any(entry["location"].startswith("zh/howto/slow") for entry in index["docs"])


def test_each_error_has_a_page(site, every) -> None:
    first, *_ = shown = entries()[::every]
    for entry in shown:
        page = (site / "errors" / entry.code / "index.html").read_text(encoding="utf-8")
        assert f"<title>{entry.code}: " in page
    for folder, cause in ("errors", "Cause"), ("zh/errors", "原因"):
        assert f'href="{first.code}/"' in (site / folder / "index.html").read_text(encoding="utf-8")
        page = (site / folder / first.code / "index.html").read_text(encoding="utf-8")
        assert f"<strong>{cause}</strong>" in page


def test_links_of_pages_lead_to_headings_that_are_there(site) -> None:
    """In both languages: MkDocs itself looks at no anchor where a page has a translation."""
    found: dict[Path, str] = {}

    def text(page: Path) -> str:
        if page not in found:
            found[page] = page.read_text(encoding="utf-8") if page.is_file() else ""
        return found[page]

    pages = [page for page in site.rglob("index.html") if not {"rules", "errors"} & {*page.parts}]
    broken = []
    for page in pages:
        article = text(page).partition("<article")[2].partition("</article>")[0]
        for path, anchor in re.findall(r'href="([^":#]*)#([^"]+)"', article):
            if f'id="{unquote(anchor)}"' not in text((page.parent / path / "index.html").resolve()):
                broken.append(f"{page.relative_to(site)}: {path}#{anchor}")
    assert len(pages) > 100
    assert broken == []


def test_chinese_pages_link_to_chinese_pages() -> None:
    """Readers on GitHub follow the links, too; a page's link back to its English is the only other one."""
    english = []
    for page in (ROOT / "README.zh.md", *(ROOT / "docs").rglob("*.zh.md")):
        text = page.read_text(encoding="utf-8").replace("[English](", "")
        for path in re.findall(r"\]\(([^()\s#:]+)\.md\)", text):
            if (page.parent / f"{path}.zh.md").exists():
                english.append(f"{page.relative_to(ROOT)}: {path}.md")
    assert english == []


def test_pages_load_nothing_from_elsewhere(site) -> None:
    for page in ("index.html", f"rules/{every_rule()[0].code}/index.html", "lint/index.html"):
        text = (site / page).read_text(encoding="utf-8")
        assert re.findall(r"<(?:script|img|link|iframe)[^>]*(?:src|href)=\"(?:https?:)?//[^\"]*", text) == []


@pytest.mark.parametrize("folder", [".", "zh"])
def test_pictures_of_the_readme_are_there(site, folder) -> None:
    text = (site / folder / "index.html").read_text(encoding="utf-8")
    sources = re.findall(r'<img[^>]* src="([^"]+)"', text)
    assert len(sources) == 4
    assert [source for source in sources if not (site / folder / source).is_file()] == []


def test_code_in_tables_is_shown_as_it_is_written(site) -> None:
    assert "device|backend" in (site / "rule_format" / "index.html").read_text(encoding="utf-8")


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the site had an address."""
    monkeypatch.setattr(packs, "SITE", BASE)


def test_findings_link_to_the_pages_of_rules(published, tmp_path, monkeypatch, capsys) -> None:
    from migrator.cli.main import run

    (tmp_path / "own.yaml").write_text(
        "- {code: ACME101, name: gpu, summary: s, kind: name, match: acme.gpu.*, fix: none,"
        " references: https://acme.example.org/gpu}\n"
    )
    (tmp_path / "a.py").write_text("import torch\nimport acme\ntorch.cuda.synchronize()\nacme.gpu.start()\n")
    monkeypatch.chdir(tmp_path)
    common = ["lint", "-v", "2.6", "-n", "-r", "own.yaml", "--exit-zero", "a.py"]
    assert run([*common, "--output-format", "sarif"]) == 0
    rules = json.loads(capsys.readouterr().out)["runs"][0]["tool"]["driver"]["rules"]
    links = {rule["id"]: rule["helpUri"] for rule in rules}
    assert links["NPU101"] == f"{BASE}rules/NPU101/"
    assert links["ACME101"] == "https://acme.example.org/gpu"
    assert run([*common, "--output-format", "json"]) == 0
    found = {item["code"]: item["url"] for item in json.loads(capsys.readouterr().out)}
    assert found["NPU101"] == links["NPU101"]


def test_the_report_links_to_the_pages_of_rules(published, tmp_path) -> None:
    from migrator.cli.main import run

    (tmp_path / "a.py").write_text("import torch\ntorch.cuda.synchronize()\n")
    arguments = ["-i", str(tmp_path / "a.py"), "-o", str(tmp_path), "-v", "2.6", "-q", "--format", "html"]
    assert run(arguments) == 0
    page = (tmp_path / "a_msft" / "migration_report" / "index.html").read_text(encoding="utf-8")
    assert f'<a href="{BASE}rules/NPU101/"' in page


def test_without_an_address_links_are_as_the_rules_have_them() -> None:
    if packs.SITE:
        assert packs.SITE.endswith("/")
        return
    for rule in every_rule():
        assert rule.links == rule.references
