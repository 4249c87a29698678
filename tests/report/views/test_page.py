"""The page in a real browser: it opens, filters, searches, opens what a link names, and trusts no text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from migrator.report.views.page import pages, summary_page
from migrator.report.views.run import read_run
from tests.report.views.conftest import HOSTILE_NAME

WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}


@pytest.fixture
def page(browser: Any, result: Path) -> Iterator[Any]:
    """The result's page; a word in its console, or an attempt to reach a network, is a failure."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: request.url.startswith(("file:", "data:")) or said.append(request.url))
    tab.goto((result / "migration_report/index.html").as_uri())
    yield tab
    assert said == []
    context.close()


def shown(page: Any, what: str) -> list[str]:
    """The names of the files, or the codes of the groups, that are not hidden."""
    return page.evaluate(
        "what => [...document.querySelectorAll(what)].filter(each => !each.hidden)"
        ".map(each => each.dataset.name || each.dataset.rules)",
        what,
    )


def counted(page: Any, words: str) -> None:
    """Wait until the filters have counted what fits."""
    page.locator("#count", has_text=words).wait_for()


def test_it_opens_with_a_verdict_and_all_files(page) -> None:
    assert page.title() == "project: Migration report"
    assert page.text_content(".verdict").startswith("Not ready: 2 blockers")
    assert shown(page, ".file") == [HOSTILE_NAME, "models/net.py", "train.py"]
    assert "3 files" in page.text_content("#count")


def test_a_search_looks_into_names_and_code(page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("return x")
    counted(page, "2 of 3 files")
    assert shown(page, ".file") == ["models/net.py", "train.py"]
    page.keyboard.press("Escape")
    counted(page, "3 files")


def test_filters_go_together_and_stand_in_the_address(page) -> None:
    page.select_option("#rule", "NPU101")
    counted(page, "of 3 files")
    assert shown(page, ".file") == [HOSTILE_NAME, "train.py"]
    page.fill("#q", "train.py")
    counted(page, "1 of 3 files")
    address = page.url
    assert address.endswith("#files?q=train.py&rule=NPU101")
    page.goto("about:blank")
    page.goto(address)
    assert shown(page, ".file") == ["train.py"]
    page.click("#clear")
    assert len(shown(page, ".file")) == 3


def test_a_severity_leaves_what_has_it(page) -> None:
    page.select_option("#severity", "info")
    counted(page, "of 3 files")
    assert shown(page, ".group") == ["NPU513"]
    assert shown(page, ".file") == ["train.py"]


def test_a_chart_s_row_sets_the_filter(page) -> None:
    page.click(".chart a >> text=NPU111")
    counted(page, "of 3 files")
    assert shown(page, ".file") == ["models/net.py", "train.py"]


def test_every_bar_and_link_shows_as_many_locations_as_it_promises(page) -> None:
    links = page.evaluate(
        """[...document.querySelectorAll('#overview a[href*="#files?"]')].map(link => [
            link.getAttribute('href'),
            parseInt((link.closest('li')?.querySelector('.number') ?? link).innerText)])"""
    )
    assert {"severity", "folder", "rule"} <= {href.split("?")[1].split("=")[0] for href, _ in links}
    for href, promised in links:
        page.evaluate("href => { location.hash = href; }", href)
        counted(page, f" {promised} of ")
        assert len(page.evaluate("[...document.querySelectorAll('.notes > li:not([hidden])')]")) == promised


def test_the_figures_of_a_page_agree(page) -> None:
    def numbers(what: str) -> list[int]:
        texts = page.locator(what).all_inner_texts()
        return [int(re.sub(r"\D", "", text)) for text in texts]

    changes, review = (
        numbers(f".figures dt:text-is('{name}') + dd")[0] for name in ("Changes", "Manual review")
    )
    assert sum(numbers(".chart[aria-labelledby=chart-severity] .number")) == review
    assert sum(numbers("#review .group .numbers > span:first-child")) == review
    assert sum(numbers(".chart[aria-labelledby=chart-folder] .number")) == changes + review
    assert sum(numbers("#rules .numbers > span")) == changes + review
    *parts, total = page.locator("#effort > table td:nth-child(3)").all_inner_texts()
    assert sum(round(10 * float(part.split()[0])) for part in parts) == round(10 * float(total.split()[0]))
    assert numbers("#effort > table .total td:nth-child(2)") == [changes + review]


def test_a_link_opens_its_file_at_its_line(page, result) -> None:
    page.click("#review .group >> nth=0")
    page.click("#review .places a >> text=train.py:19")
    assert page.evaluate("document.querySelector('[data-name=\"train.py\"]').open")
    assert "train.py" in page.evaluate("document.querySelector('.here').closest('.file').dataset.name")
    page.goto((result / "migration_report/index.html").as_uri() + "#file-models/net.py:5")
    page.reload()
    assert page.evaluate("document.querySelector('[data-name=\"models/net.py\"]').open")
    assert page.is_visible("text=return x.npu()")


def test_every_link_inside_leads_somewhere(page) -> None:
    dead = page.evaluate(
        """() => [...document.querySelectorAll("a[href^='#']")].map(a => decodeURIComponent(a.hash.slice(1)))
            .filter(name => !name.startsWith("files?") && !document.getElementById(name))"""
    )
    assert dead == []


def test_each_change_has_both_sides_colours_and_its_rule(page) -> None:
    page.click("[data-name='models/net.py'] summary")
    hunk = page.locator("[data-name='models/net.py'] .hunk").last
    assert hunk.locator("td.old").inner_text() == "    return x.cuda()"
    assert hunk.locator("td.new").last.inner_text() == "    return x.npu()"
    assert hunk.locator("td.old mark").inner_text() == "cuda"
    assert hunk.locator("td.old i.k").inner_text() == "return"
    hunk.locator(".code", has_text="NPU111").click()
    assert page.evaluate("document.getElementById('rule-NPU111').open")


def test_the_keyboard_goes_through_rows(page) -> None:
    page.keyboard.press("j")
    before = page.evaluate("document.activeElement.parentElement.open")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.id").startswith("review-")
    assert page.evaluate("document.activeElement.parentElement.open") is not before
    page.keyboard.press("e")
    assert page.evaluate("[...document.querySelectorAll('.file')].every(e => e.open)")
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    assert not page.is_visible("#keys")


def test_a_key_copies_where_a_location_is(page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("e")
    page.focus(".file[data-name='models/net.py'] .notes .line >> nth=-1")
    page.keyboard.press("y")
    assert page.evaluate("navigator.clipboard.readText()") == "models/net.py:5"
    page.focus("#review .places a >> nth=0")
    page.keyboard.press("y")
    assert re.fullmatch(r".+\.py:\d+", page.evaluate("navigator.clipboard.readText()"))


def test_what_was_reviewed_is_counted_filtered_and_saved(page, result) -> None:
    page.click("[data-name='models/net.py'] summary")
    page.check("[data-name='models/net.py'] .mark >> nth=0")
    counted(page, "1 reviewed")
    page.select_option("#kind", "reviewed")
    counted(page, "1 of 3 files, 1 of")
    assert shown(page, ".file") == ["models/net.py"]
    with page.expect_download() as saving:
        page.click("#save")
    assert saving.value.suggested_filename == "reviewed.json"
    content = json.loads(Path(saving.value.path()).read_text())
    assert list(content) == ["schema", "reviewed"]
    run = replace(read_run(result), reviewed=frozenset(content["reviewed"]))
    assert [text.count(" checked>") for _name, text in pages(run, {})] == [1]


def test_a_location_leads_to_the_editor_and_can_be_copied(page, result) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("[data-name='models/net.py'] summary")
    last = page.locator("[data-name='models/net.py'] .notes > li").last
    # The result has a line more, the import of torch_npu.
    assert last.locator(".more a").get_attribute("href") == f"vscode://file{result}/models/net.py:6"
    last.locator(".more button").click()
    assert page.evaluate("navigator.clipboard.readText()") == "models/net.py:6"


def test_the_summary_fits_a_sheet_of_paper(browser, result) -> None:
    tab = browser.new_page()
    tab.set_content(summary_page(read_run(result), {}))
    assert len(re.findall(rb"/Type\s*/Page\b", tab.pdf(prefer_css_page_size=True))) == 1
    assert tab.text_content(".verdict").startswith("Not ready")
    tab.close()


def test_dark_and_light(page) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.keyboard.press("t")
    assert page.evaluate(colour) != light
    page.keyboard.press("t")
    assert page.evaluate(colour) == light


def test_no_text_of_the_project_is_markup(page) -> None:
    page.keyboard.press("e")
    assert page.is_visible(f"text={HOSTILE_NAME}")
    assert (
        page.evaluate("document.querySelectorAll('img, main script, [onerror], [onmouseover]').length") == 0
    )
    assert page.title() == "project: Migration report"


def test_before_printing_all_is_open_and_paper_is_white(page) -> None:
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    page.keyboard.press("t")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.querySelectorAll('.file[open]').length") == 0


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        *(("desktop", "light"), ("phone", "dark")),
        *(
            pytest.param(*each, marks=pytest.mark.thorough)
            for each in (("desktop", "dark"), ("phone", "light"))
        ),
    ],
)
def test_axe_finds_no_serious_fault_and_nothing_is_wider_than_the_page(
    browser, result, width, scheme, tmp_path_factory
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    size = dict(zip(("width", "height"), WIDTHS[width]))
    # The page's rule against scripts that are not its own would stop the tester's, too.
    context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True)
    tab = context.new_page()
    tab.goto((result / "migration_report/index.html").as_uri())
    tab.keyboard.press("e")
    found = axe.Axe().run(tab).response["violations"]
    faults = [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]
    assert faults == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= size["width"]
    pictures = Path(os.environ.get("SCREENSHOTS") or tmp_path_factory.getbasetemp() / "screenshots")
    pictures.mkdir(exist_ok=True, parents=True)
    tab.screenshot(path=pictures / f"{width}-{scheme}.png", full_page=True)
    context.close()


def test_a_page_needs_nothing_from_elsewhere(result) -> None:
    text = (result / "migration_report/index.html").read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(?!data:)", text)
    assert "default-src 'none'" in text


def test_a_large_project_has_several_pages_each_below_two_megabytes(tmp_path, result, monkeypatch) -> None:
    monkeypatch.setattr("migrator.report.views.page._LARGEST", 3000)
    run = read_run(result)
    written = dict(pages(run, {}))
    assert list(written) == ["index.html", "files-2.html", "files-3.html"]
    assert 'href="files-3.html#file-train.py' in written["index.html"]
    assert 'data-name="train.py"' in written["files-3.html"]
    assert 'data-name="train.py"' not in written["index.html"]
