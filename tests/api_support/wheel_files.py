"""Small wheels to read."""

from __future__ import annotations

import zipfile
from pathlib import Path

CODEGEN = """\
backend: NPU
supported:
- func: abs(Tensor self) -> Tensor
- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
custom:
- func: npu_magic(Tensor self) -> Tensor
"""
NATIVE = """\
supported:
  - contiguous
  - func: clone
    op_api: True
custom:
autograd:
"""
PARSER = """\
inline at::Device toDevice(PyObject* obj) {
  return at::Device(at::DeviceType::CUDA, 0);
}
"""
NPU = "def set_device(): ...\nclass Stream:\n    def wait(self): ...\n"


def npu_wheel(folder: Path, release: str = "2.15.0", **changed: str | bytes | None) -> Path:
    """A torch_npu wheel; ``changed`` replaces its files, None leaves one out."""
    info = f"torch_npu-{release}.dist-info/METADATA"
    files: dict[str, str | bytes | None] = {
        "torch_npu/__init__.py": "raise SystemExit('a wheel is read, not run')\n",
        "torch_npu/npu/__init__.py": NPU,
        "torch_npu/csrc/aten/npu_native_functions.yaml": NATIVE,
        "torch_npu/csrc/aten/npu_native_functions_by_codegen.yaml": CODEGEN,
        info: f"Metadata-Version: 2.1\nName: torch_npu\nVersion: {release}\n\nVersion: 9\n",
    }
    names = {"native": 2, "codegen": 3, "metadata": 4, "npu": 1}
    for key, text in changed.items():
        files[list(files)[names[key]] if key in names else key] = text
    path = folder / f"torch_npu-{release}-cp311-cp311-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            if content is not None:
                archive.writestr(name, content)
    return path


def torch_wheel(folder: Path, release: str, words: bytes = b"", **files: str) -> Path:
    """A torch wheel with these files beside what every one has, by their paths in it."""
    content: dict[str, str | bytes] = {
        "torch/__init__.py": "",
        "torch/cuda/__init__.py": "",
        "torch/include/torch/csrc/utils/python_arg_parser.h": PARSER,
        "torch/lib/libtorch_python.dylib": words,
        f"torch-{release}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {release}\n",
    }
    content.update(files)
    return _written(folder / f"torch-{release}-cp311-none-macosx_11_0_arm64.whl", content)


def torchvision_wheel(folder: Path, release: str, torch: str, **files: str) -> Path:
    """A torchvision wheel for a torch release."""
    metadata = f"Name: torchvision\nVersion: {release}\nRequires-Dist: torch (=={torch})\n"
    content: dict[str, str | bytes] = {"torchvision/__init__.py": "", **files}
    content[f"torchvision-{release}.dist-info/METADATA"] = metadata
    return _written(folder / f"torchvision-{release}-cp311-cp311-macosx_11_0_arm64.whl", content)


def _written(path: Path, content: dict[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in content.items():
            archive.writestr(name, text)
    return path
