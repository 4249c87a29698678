"""What the cache keeps of dataclasses comes back as it was."""

from __future__ import annotations

import json

from migrator.native.functions import scan_native
from migrator.native.model import NativeFile
from migrator.project.facts import FileFacts, scan_file
from migrator.project.operators import Catalog
from migrator.run.json_form import from_json, to_json
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
