"""One project, however it is loaded: in processes, or from the cache."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.field_types import from_json, to_json
from migrator.files.discover import Entry, discover
from migrator.native.functions import scan_native
from migrator.native.model import NativeFile
from migrator.project.facts import FileFacts, scan_file
from migrator.project.operators import Catalog
from migrator.project.project import Project
from migrator.run import loading
from migrator.run.cache import Cache, digest
from migrator.run.loading import Loader, PythonFile, load_project
from tests.project.operators.projects import LAUNCHER, operators

PYTHON = """
from torch.utils.cpp_extension import CUDAExtension, load_inline

class Box(Base):
    def cuda(self):
        return self.x.to("cuda")

ext = CUDAExtension("scale_ext", ["scale.cu"])
inline = load_inline("inline_ext", cuda_sources="__global__ void f() {}", functions=["f"])
"""
NATIVE = LAUNCHER + 'PYBIND11_MODULE(scale_ext, m) { m.def("scale", &scale_cuda); }\n'
FILES = {
    "setup.py": PYTHON,
    "pkg/__init__.py": "",
    "train.py": "import horovod.torch as hvd\n\nif __name__ == '__main__':\n    loss.backward()\n",
    "scale.cu": NATIVE,
    "broken.py": "def cuda(:\n",
    os.fsdecode(b"odd-\xff.py"): "class Odd:\n    def cuda(self): ...\n",
}


@pytest.fixture
def entries(tmp_path: Path) -> Sequence[Entry]:
    for name, text in FILES.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text)
    return list(discover(tmp_path / "project"))


def known(entries: Sequence[Entry], cache: Cache) -> Project:
    native = [(entry.name, entry.path) for entry in entries if entry.kind == "file"]
    loader = Loader(cache, native, 1)
    for entry in entries:
        if entry.holds_python:
            data = entry.path.read_bytes()
            loader.add(PythonFile(entry.name, entry.path), data, digest(data))
    assert loader.key() == loader.key()
    cache.flush()
    return loader.project


def test_the_cache_gives_what_the_files_give(entries, tmp_path, monkeypatch) -> None:
    plain, size = load_project(entries, 1)
    assert size == sum(len(text) for name, text in FILES.items() if name.endswith(".py"))
    assert [facts.name for facts in plain.classes] == ["Odd", "Box"]
    assert plain.packages == {
        "pkg",
        *(name[:-3] for name in FILES if "/" not in name and name.endswith(".py")),
    }
    first = known(entries, Cache(tmp_path / "cache", "tool"))
    monkeypatch.setattr(loading, "spread", None)
    monkeypatch.setattr(loading, "read_native", None)
    assert known(entries, Cache(tmp_path / "cache", "tool")) == first
    assert (first.classes, first.packages) == (plain.classes, plain.packages)
    assert replace(first.operators, extensions={}) == replace(plain.operators, in_file={}, extensions={})


def test_processes_give_the_same_project(entries) -> None:
    assert load_project(entries, 2, starts=True) == load_project(entries, 1, starts=True)


def test_how_programs_are_started_is_told_where_it_is_asked(entries) -> None:
    assert load_project(entries, 1)[0].starts == ()
    (start,) = load_project(entries, 1, starts=True)[0].starts
    assert start.name == "train.py"


def again(kind: type, value: object) -> object:
    return from_json(kind, json.loads(json.dumps(to_json(value))))


def test_a_files_facts() -> None:
    facts = scan_file("setup.py", PYTHON)
    assert facts.classes
    assert len(facts.extensions) == 2
    assert again(FileFacts, facts) == facts
    assert again(FileFacts, FileFacts()) == FileFacts()


def test_a_native_file() -> None:
    native = scan_native("scale.cu", NATIVE)
    assert native.bindings
    assert again(NativeFile, native) == native


def test_operators() -> None:
    catalog = operators({"setup.py": PYTHON, "scale.cu": NATIVE})
    assert catalog.modules
    assert catalog.variables
    assert again(Catalog, catalog) == catalog
