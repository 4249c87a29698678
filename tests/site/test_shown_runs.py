"""What the tutorials show is what the commands print: python tools/shown_runs.py PAGE writes it anew."""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.emulator.conftest import cache
from tests.warm import warm
from tools import shown_runs

__all__ = ["cache"]

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the pages are for bash")


def compare(page: str, folder: Path, until: str | None = None) -> None:
    """Of the whole page, or of what comes before its heading ``until``."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if until is not None:
        text, heading, _ = text.partition(until)
        assert heading, f"{page} has no heading {until.strip()}"
    assert shown_runs.with_output(text, folder) == text, f"python tools/shown_runs.py {page}"


def test_all_tutorials_are_there() -> None:
    tutorials = {str(page.relative_to(ROOT)) for page in (ROOT / "docs" / "tutorials").glob("*.md")}
    assert len(tutorials) >= 5
    assert tutorials <= set(shown_runs.pages())


# The Chinese pages run the commands of the English ones: one of them is enough for every day.
DAILY = {page for page in shown_runs.pages() if not page.endswith(".zh.md")} | {
    "docs/tutorials/lint_gate.zh.md"
}


@pytest.mark.parametrize(
    "page",
    [
        page if page in DAILY else pytest.param(page, marks=pytest.mark.thorough)
        for page in shown_runs.pages()
        if page not in shown_runs.LONG
    ],
)
def test_a_page_shows_what_its_commands_print(page, tmp_path, cache, monkeypatch) -> None:
    of_a_reader = shown_runs._environment

    def environment(folder: Path) -> dict[str, str]:
        env = {**of_a_reader(folder), "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT)}
        return warm(env) if "npumigrate record" in (ROOT / page).read_text(encoding="utf-8") else env

    monkeypatch.setattr(shown_runs, "_environment", environment)
    compare(page, tmp_path)


def test_the_migration_of_yolov5(tmp_path) -> None:
    """The tutorial's commands before the training run, on the real project without its libraries."""
    page = "docs/tutorials/yolov5.md"
    compare(page, tmp_path, until=shown_runs.LONG[page])


def test_the_chinese_page_of_yolov5_has_the_figures_of_the_english_one() -> None:
    """Rules, counts, locations and percentages; the commands differ only where they look for words."""

    def figures(page: str) -> list[str]:
        shown = re.findall(r"^```console\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.M | re.S)
        return sorted(re.findall(r"NPU\d{3}|[\w./]+\.py(?::\d+)?|\d+(?:\.\d+)*", "".join(shown)))

    english, chinese = map(figures, shown_runs.LONG)
    assert len(english) > 80
    assert chinese == english


@pytest.mark.thorough
@pytest.mark.skipif(shown_runs.LIBRARIES not in os.environ, reason=f"{shown_runs.LIBRARIES} is not set")
@pytest.mark.parametrize("page", shown_runs.LONG)
def test_yolov5(page, tmp_path) -> None:
    """Takes minutes and the network.

    SHOWN_RUNS_LIBRARIES names a folder with yolov5's libraries: pip install --target, as the page says.
    """
    if find_spec("torch_npu") is None:  # importing it wants CANN
        pytest.skip("torch_npu is not installed")
    compare(page, tmp_path)


def test_files_commands_and_the_folder(tmp_path) -> None:
    page = """\
```text title="a.txt"
one
```

```console
$ mkdir b
$ cd b
$ cat ../a.txt
old output
$ export WORD=two
$ echo $WORD
$ false
$ echo $?
```

```sh
not run
```
"""
    made = shown_runs.with_output(page, tmp_path)
    assert made == page.replace("old output\n", "one\n").replace("$WORD\n", "$WORD\ntwo\n").replace(
        "$ echo $?\n", "$ echo $?\n1\n"
    )
    assert (tmp_path / "samples").is_dir()


def test_a_command_that_fails_is_an_error(tmp_path) -> None:
    with pytest.raises(shown_runs.FailedError, match="exit code 3"):
        shown_runs.with_output("```console\n$ exit 3\n```\n", tmp_path)


def test_commands_of_the_tutorials_are_run_or_say_what_they_need() -> None:
    """What is not run: installing, a wheel that is not there yet, a real NPU."""
    allowed = re.compile(
        r"pip install|python -m tools\.releases|npumigrate db diff|bash out/\S+/run_distributed_npu\.sh"
    )
    for page in (ROOT / "docs" / "tutorials").glob("*.md"):
        for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
            assert all(allowed.match(line) for line in block.splitlines()), (page.name, block)


def test_the_interpreter_of_the_tests_is_the_one_that_runs_the_pages(tmp_path) -> None:
    made = shown_runs.with_output(
        "```console\n$ python -c 'import sys; print(sys.version_info[:2])'\n```\n", tmp_path
    )
    assert str(tuple(sys.version_info[:2])) in made
