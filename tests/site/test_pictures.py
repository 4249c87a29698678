"""The README's pictures show what the commands print today: python tools/pictures.py makes them anew."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tools import pictures

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the pictures are made with bash")


def compare(picture: str, folder: Path) -> None:
    shown = pictures.words((pictures.IMAGES / f"{picture}.svg").read_text(encoding="utf-8"))
    assert len(shown) > 50
    assert shown == pictures.words(pictures.recorded(picture, folder)), f"python tools/pictures.py {picture}"


@pytest.mark.parametrize("picture", ["migrate", "migrate.zh"])
def test_the_migration_in_a_terminal(picture, tmp_path) -> None:
    compare(picture, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("picture", ["verify", "verify.zh"])
def test_the_run_on_an_emulated_npu(picture, tmp_path) -> None:
    if find_spec("torch_npu") is None:  # importing it wants CANN
        pytest.skip("torch_npu is not installed")
    compare(picture, tmp_path)


def test_pictures_load_nothing_and_are_small() -> None:
    for picture in (f"{name}{end}" for name in ("migrate", "verify", "speed") for end in ("", ".zh")):
        text = (pictures.IMAGES / f"{picture}.svg").read_text(encoding="utf-8")
        assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace(
            "https://www.textualize.io", ""
        )
    for picture in ("report.png", "report.zh.png"):
        report = (pictures.IMAGES / picture).read_bytes()
        assert report.startswith(b"\x89PNG")
        assert len(report) < 200_000


def test_the_report_can_be_photographed(tmp_path) -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if pictures.chromium() is None:
        pytest.skip("no Chromium: install chromium, or name one in the variable CHROMIUM")
    picture = tmp_path / "report.png"
    pictures.photographed(tmp_path, picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert 20_000 < picture.stat().st_size < 200_000
