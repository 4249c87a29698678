"""Errors and warnings about well known projects that a person has read and judged, each against the source.

``real_projects.yaml`` has them: for each file the lines of each rule. ``right`` ones are true and a user has
to act; of ``harmless`` ones a user may do nothing. One that is not there fails: read the source, and judge
it, or mend what makes it wrong. One that is gone fails, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from benchmarks.projects import PROJECTS, Project, fetch
from migrator.core.check import no_fix
from migrator.core.settings import Settings
from migrator.files.discover import discover
from migrator.run.loading import load_project
from migrator.run.project_files import check_files

JUDGED = yaml.safe_load(Path(__file__).with_name("real_projects.yaml").read_text(encoding="utf-8"))
ARCHIVES = {
    "TTS-0.22.0": "b91119da7ff2ae7b3dae7328edf9af4db3b48c40eb4ce15d11ed8f5ee9bd7086",
    "fschat-0.2.36": "ac724458bb105cb5b3b9ec852150345dfa7f61fd7c275d6635d66fa1ed904d90",
    "gfpgan-1.3.8": "21618b06ce8ea6230448cb526b012004f23a9ab956b55c833f69b9fc8a60c4f9",
    "llamafactory-0.9.5": "1702c0bfb864e80577a59521d2edcacd2aab05ec6aee06188fcba335a589681f",
    "openai-whisper-20240930": "b7178e9c1615576807a300024f4daa6353f7e1a815dac5e38c33f1ef055dd2d2",
    "realesrgan-0.3.0": "0d36da96ab9f447071606e91f502ccdfb08f80cc82ee4f8caf720c7745ccec7e",
    "segment_anything-1.0": "ed0c9f6fb07bbef9c6238a7028a13c8272f1ba6b6305ca73e3e064266503736b",
    "yolov5-7.0.14": "ba1b5012fc191b1252d4c532bd2ba9da9dd53207bbed2dc2387740e18d8815e6",
}
CHOSEN = [
    *(Project(*name.rsplit("-", 1), f"{name}.tar.gz", sha) for name, sha in ARCHIVES.items()),
    *(each for each in PROJECTS if each.name == "ultralytics"),
]
Lines = dict[str, dict[str, str]]  # of each file, by rule


def reported(root: Path) -> Lines:
    """The lines of the errors and warnings about a project."""
    entries = list(discover(root))
    project = load_project(entries, jobs=1)[0]
    found: dict[str, dict[str, list[int]]] = {}
    for entry, one in check_files(entries, Settings("2.13.0"), project, 1, lambda *_: None, no_fix):
        for item in one.result.findings:
            if item.severity != "info":
                found.setdefault(entry.name, {}).setdefault(item.code, []).append(item.line)
    return {
        file: {code: " ".join(map(str, sorted(lines))) for code, lines in codes.items()}
        for file, codes in found.items()
    }


def both(judged: dict[str, Lines]) -> Lines:
    """The lines that were judged, right or harmless."""
    merged: Lines = {}
    for lines in judged.values():
        for file, codes in lines.items():
            merged.setdefault(file, {}).update(codes)
    return merged


@pytest.mark.parametrize("project", CHOSEN, ids=lambda project: project.name)
def test_each_error_and_warning_is_judged(project: Project) -> None:
    assert reported(fetch(project)) == both(JUDGED[project.folder])
