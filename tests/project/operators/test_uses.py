"""Where Python builds, loads and calls CUDA operators."""

from __future__ import annotations

import pytest

from tests.project.operators.projects import KERNEL, LAUNCHER, findings

BINDING = (
    "at::Tensor plain(at::Tensor x) { return x; }\n"
    'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale_cuda); m.def("plain", &plain); }\n'
)
PROJECT = {
    "setup.py": "from torch.utils.cpp_extension import CUDAExtension\n"
    'x = CUDAExtension("acme._ext", ["csrc/bind.cpp", "csrc/scale.cu"])\n',
    "csrc/bind.cpp": BINDING,
    "csrc/scale.cu": LAUNCHER,
}


BUILDER = (
    "class ScaleBuilder(CUDAOpBuilder):\n    def sources(self):\n"
    "        return ['csrc/bind.cpp', 'csrc/scale.cu']\n"
)
USES = {
    "of its package": (
        "from acme import _ext\ny = _ext.scale(x)\n",
        {},
        ["acme._ext 1", "acme._ext.scale 2"],
    ),
    "relative": ("from . import _ext\ny = _ext.scale(x)\n", {}, ["acme._ext 1", "acme._ext.scale 2"]),
    "an alias": ("import acme._ext as e\ny = e.scale(x)\n", {}, ["acme._ext 1", "acme._ext.scale 2"]),
    "names": (
        "from acme._ext import scale, plain\ny = scale(plain(x))\n",
        {},
        ["acme._ext 1", "acme._ext.scale 2"],
    ),
    "a loader that takes the name": (
        "from .loader import load_ext\next = load_ext('_ext', ['scale'])\n\ndef f(x):\n"
        "    return ext.scale(ext.plain(x))\n",
        {},
        ["acme._ext.scale 5"],
    ),
    "another module, another object": (
        "from other import _ext\nimport numpy as scale\ny = scale.scale(x) + _ext.scale(x) + self.scale(x)\n",
        {},
        [],
    ),
    "no operator": ("from acme import _ext\ny = _ext.plain(x)\n", {}, ["acme._ext 1"]),
    "torch.ops": (
        "import torch\ny = torch.ops.shop.scale(x)\nz = torch.ops.shop.plain(x) + torch.ops.aten.scale(x)\n",
        {
            "csrc/lib": "",
            "csrc/lib.cu": 'TORCH_LIBRARY_IMPL(shop, CUDA, m) { m.impl("scale", &scale_cuda); }\n',
        },
        ["torch.ops.shop.scale 2"],
    ),
    "load": (
        "from torch.utils.cpp_extension import load\n"
        'acme = load(name="acme", sources=[os.path.join(here, "csrc", "bind.cpp"), "csrc/scale.cu"])\n'
        'plain = load(name="plain", sources=["plain.cpp"])\n'
        "y = acme.scale(acme.plain(plain.scale(x)))\n",
        {"plain.cpp": "int f() { return 1; }"},
        ["torch.utils.cpp_extension.load 2", "acme.scale 4"],
    ),
    "load_inline": (
        "from torch.utils.cpp_extension import load_inline\n"
        f"CUDA = '''{KERNEL}'''\n"
        'm = load_inline("m", cpp_sources="int f(int x);", cuda_sources=CUDA, functions=["f"])\n'
        'c = load_inline("c", cpp_sources="int g(int x) { return x; }", functions=["g"])\n'
        "m.f(1)\nc.g(1)\n",
        {},
        ["torch.utils.cpp_extension.load_inline 4", "m.f 6"],
    ),
    "another load": (
        "import torch\nfrom json import load\ntorch.load('x.cu')\nload('torch.utils.cpp_extension')\n",
        {},
        [],
    ),
    "a builder": (
        "from builders import ScaleBuilder\nm = ScaleBuilder().load()\ny = m.scale(m.plain(x))\n",
        {"builders.py": BUILDER},
        ["ScaleBuilder 2", "ScaleBuilder.scale 3"],
    ),
    "the file of a builder": (BUILDER, {}, ["ScaleBuilder 1"]),
    "a helper that is given CUDA sources": (
        "from .build import get_plugin\n_plugin = None\n\ndef load():\n    global _plugin\n"
        "    _plugin = get_plugin(module_name='scaling', sources=['bind.cpp', 'scale.cu'])\n\n"
        "def f(x):\n    return _plugin.scale(x)\n",
        {"acme/bind": "", "acme/bind.cpp": BINDING},
        ["get_plugin 6", "scaling.scale 9"],
    ),
}


@pytest.mark.parametrize(("text", "more", "expected"), USES.values(), ids=USES)
def test_which_uses_of_operators_are_found(text: str, more: dict[str, str], expected: list[str]) -> None:
    found = findings({**PROJECT, **more, "acme/ops.py": text}, "acme/ops.py")
    assert [f"{each.api} {each.line}" for each in found] == expected


def test_the_class_that_calls_is_named() -> None:
    text = (
        "from . import _ext\nclass Scale(Function):\n    def forward(ctx, x):\n        return _ext.scale(x)\n"
    )
    (_, call) = findings({**PROJECT, "acme/ops.py": text}, "acme/ops.py")
    assert call.message == "acme._ext.scale is a CUDA operator (csrc/bind.cpp:2), used in Scale"
    assert call.severity == "error"


@pytest.mark.parametrize(("bound", "severity"), [("plain", "info"), ("scale_cuda", "warning")])
def test_a_loader_of_what_it_does_not_name(bound: str, severity: str) -> None:
    loader = (
        "from torch.utils.cpp_extension import load\n"
        "def build(op):\n    return load(name=op.name, sources=op.sources())\n"
    )
    binding = (
        f'at::Tensor plain(at::Tensor x) {{ return x; }}\nPYBIND11_MODULE(m, m) {{ m.def("f", &{bound}); }}\n'
    )
    more = {"csrc/scale.cu": LAUNCHER} if bound == "scale_cuda" else {}
    found = findings({"loader.py": loader, "csrc/bind.cpp": binding, **more}, "loader.py")
    assert [(finding.line, finding.severity) for finding in found] == [(3, severity)]


def test_kernels_in_python() -> None:
    text = (
        "import triton\nfrom numba import cuda, jit\n@triton.autotune(configs=[])\n@triton.jit\n"
        "def add(x):\n    pass\n"
        "@cuda.jit()\ndef mul(x):\n    pass\n@jit\ndef plain(x):\n    pass\n"
    )
    found = findings({"a.py": text}, "a.py")
    assert [(f.code, f.api, f.line) for f in found] == [("NPU654", "add", 4), ("NPU655", "mul", 7)]


def test_a_kernel_that_a_call_compiles() -> None:
    text = (
        "import triton\ndef add(x):\n    pass\ndef plain(x):\n    pass\n"
        "add = triton.jit(add)\ny = triton.cdiv(plain, 2)\n"
    )
    assert [(f.code, f.api, f.line) for f in findings({"a.py": text}, "a.py")] == [("NPU654", "add", 6)]


def test_kernels_that_are_made_for_npus() -> None:
    kernels = [f"@triton.jit\ndef {name}(x):\n    pass\n" for name in ("add_kernel", "add_kernel_npu")]
    text = "import triton\n" + "".join(kernels)
    for name, severities in (
        ("ops/add.py", ["warning", "info"]),
        ("ops/triton_ascend/add.py", ["info", "info"]),
    ):
        found = [finding for finding in findings({name: text}, name) if finding.api.startswith("add_kernel")]
        assert [finding.severity for finding in found] == severities, name


def test_decorators_beside_kernels_are_walked() -> None:
    text = "import triton\nfrom functools import cache\n@cache\ndef plain():\n    return triton.cdiv(3, 2)\n"
    assert findings({"a.py": text}, "a.py") == []


def test_an_implementation_for_npus_makes_it_no_error() -> None:
    both = LAUNCHER + "at::Tensor scale_npu(at::Tensor x) { EXEC_NPU_CMD(aclnnScale, x); return x; }\n"
    bind = (
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale",'
        " [](at::Tensor x) { return x.is_cuda() ? scale_cuda(x) : scale_npu(x); }); }\n"
    )
    files = {
        **PROJECT,
        "csrc/scale.cu": both,
        "csrc/bind.cpp": bind,
        "a.py": "from acme import _ext\n_ext.scale(x)\n",
    }
    assert {finding.severity for finding in findings(files, "a.py")} == {"info"}


def test_decorators_on_lines_that_are_not_looked_at() -> None:
    text = (
        "import triton\nfrom tools import plain\n@plain\ndef first(x):\n    pass\n@triton.jit\ndef add(x):\n"
        "    pass\n"
    )
    assert [(f.code, f.line) for f in findings({"a.py": text}, "a.py")] == [("NPU654", 6)]


@pytest.mark.parametrize(
    "setup",
    [
        "ext = CppExtension\nif CUDA_HOME:\n    ext = CUDAExtension\nx = [ext('acme._ext', FILES)]\n",
        "ext = CUDAExtension if CUDA_HOME else CppExtension\nx = [ext(name='acme._ext', sources=FILES)]\n",
    ],
)
def test_an_extension_through_another_name(setup: str) -> None:
    head = "from torch.utils.cpp_extension import *\nFILES = ['csrc/bind.cpp']\nFILES += ['csrc/scale.cu']\n"
    files = {**PROJECT, "setup.py": head + setup, "ops.py": "from acme import _ext\ny = _ext.scale(x)\n"}
    assert [each.api for each in findings(files, "ops.py")] == ["acme._ext", "acme._ext.scale"]


def test_an_operator_that_an_npu_does_not_come_to() -> None:
    text = (
        "import torch\nfrom acme import _ext\n\ndef f(x):\n    if x.is_cuda:\n        return _ext.scale(x)\n"
        "    return x * 2\n\ndef g(x):\n    return _ext.scale(x.cuda())\n"
    )
    files = {**PROJECT, "ops.py": text}
    found = {(each.line, each.severity) for each in findings(files, "ops.py", "NPU")}
    assert {(5, "info"), (6, "info"), (10, "error")} <= found
