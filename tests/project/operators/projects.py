"""Small projects as dictionaries of files, for tests."""

from __future__ import annotations

from collections.abc import Mapping

from migrator.core.rules import Rules
from migrator.core.settings import Settings
from migrator.findings.finding import Finding
from migrator.names.index import ModuleIndex
from migrator.native.functions import scan_native
from migrator.native.model import NativeFile, is_native
from migrator.project.extensions import Extension, scan_extensions
from migrator.project.facts import scan_file
from migrator.project.operators import Catalog, catalog
from migrator.project.project import Project, merge_facts
from tests.checking import inspect_text, load_pack

KERNEL = "__global__ void scale_kernel(float* x) { x[0] = 2; }\n"
LAUNCHER = (
    KERNEL
    + "at::Tensor scale_cuda(at::Tensor x) { scale_kernel<<<1, 32>>>(x.data_ptr<float>()); return x; }\n"
)

# A library ``lib`` with one operator for CUDA.
NATIVE = {
    "setup.py": "from torch.utils.cpp_extension import CUDAExtension\n"
    'x = CUDAExtension("lib._ext", ["bind.cpp", "s.cu"])\n',
    "bind.cpp": 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale_cuda); }\n',
    "s.cu": LAUNCHER,
}


def native(files: Mapping[str, str]) -> list[NativeFile]:
    return [scan_native(name, text) for name, text in files.items() if is_native(name)]


def extensions(files: Mapping[str, str]) -> list[Extension]:
    python = {name: text for name, text in files.items() if name.endswith(".py")}
    return [
        extension
        for name, text in python.items()
        for extension in scan_extensions(name, ModuleIndex(text, ()))
    ]


def operators(files: Mapping[str, str]) -> Catalog:
    return catalog(native(files), extensions(files))


def project(files: Mapping[str, str]) -> Project:
    facts = [scan_file(name, text) for name, text in files.items() if name.endswith(".py")]
    return merge_facts(facts, native(files))


def findings(files: Mapping[str, str], name: str, code: str = "NPU65") -> list[Finding]:
    """What the rules whose codes begin so find in one Python file of a project."""
    engine = Rules(Settings(version="2.6.0"), load_pack)
    result = inspect_text(engine, name, files[name], project(files))
    assert result.skipped == ""
    return [finding for finding in result.findings if finding.code.startswith(code)]
