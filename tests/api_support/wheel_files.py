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
