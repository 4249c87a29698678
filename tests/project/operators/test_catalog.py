"""Which bound functions are CUDA operators, through all files of a project."""

from __future__ import annotations

from tests.project.operators.projects import KERNEL, LAUNCHER, operators


def listed(files: dict[str, str], name: str) -> list[str]:
    return [operator.name for operator in operators(files).in_file.get(name, ())]


BINDING = (
    "at::Tensor scale_cuda(at::Tensor x);\nat::Tensor scale(at::Tensor x) { return scale_cuda(x); }\n"
    "int version() { return CUDA_VERSION; }\nat::Tensor plain(at::Tensor x) { return x + 1; }\n"
    'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); m.def("version", &version);\n'
    '  m.def("plain", &plain); m.def("doubled", [](at::Tensor x) { return scale(scale(x)); }); }\n'
)


def test_only_what_leads_to_cuda_is_an_operator() -> None:
    files = {"src/scale.cu": LAUNCHER, "src/bind.cpp": BINDING}
    assert listed(files, "src/bind.cpp") == ["scale", "doubled"]
    assert listed(files, "src/scale.cu") == ["scale_kernel"]


def test_the_way_is_told() -> None:
    operator = operators({"src/scale.cu": LAUNCHER, "src/bind.cpp": BINDING}).in_file["src/bind.cpp"][0]
    assert operator.reason == "scale_cuda launches scale_kernel (src/scale.cu:2)"


def test_a_declared_function_without_source_is_judged_by_its_name() -> None:
    assert listed({"src/bind.cpp": BINDING, "src/other.cu": KERNEL}, "src/bind.cpp") == ["scale", "doubled"]


def test_each_extension_has_its_own_forward() -> None:
    bind = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward); }\n'
    files = {
        "a/ops.cu": KERNEL + "int forward(int x) { scale_kernel<<<1, 1>>>(x); return x; }\n",
        "a/bind.cpp": "int forward(int x);\n" + bind,
        "b/ops.cpp": "int forward(int x) { return x; }\n",
        "b/bind.cpp": "int forward(int x);\n" + bind,
    }
    assert listed(files, "a/bind.cpp") == ["forward"]
    assert listed(files, "b/bind.cpp") == []


def test_a_registry_of_implementations_by_device() -> None:
    files = {
        "pytorch/nms.cpp": "Tensor nms_impl(Tensor x) { return DISPATCH_DEVICE_IMPL(nms_impl, x); }\n"
        "Tensor nms(Tensor x) { return nms_impl(x); }\nTensor count(Tensor x) { return count_impl(x); }\n"
        "Tensor count_impl(Tensor x) { return DISPATCH_DEVICE_IMPL(count_impl, x); }\n",
        "pytorch/pybind.cpp": "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"
        ' m.def("nms", &nms); m.def("count", &count); }\n',
        "pytorch/cuda/nms.cu": KERNEL + "Tensor nms_cuda(Tensor x) { scale_kernel<<<1, 1>>>(x); return x; }\n"
        "REGISTER_DEVICE_IMPL(nms_impl, CUDA, nms_cuda);\n",
        "pytorch/cpu/count.cpp": "Tensor count_cpu(Tensor x) { return x; }\n"
        "REGISTER_DEVICE_IMPL(count_impl, CPU, count_cpu);\n",
    }
    (operator,) = operators(files).in_file["pytorch/pybind.cpp"]
    assert (operator.name, operator.npu) == ("nms", False)
    files["pytorch/npu/nms.cpp"] = (
        "Tensor nms_npu(Tensor x) { OpCommand cmd; cmd.Run(); return x; }\n"
        "REGISTER_NPU_IMPL(nms_impl, nms_npu);\n"
    )
    (operator,) = operators(files).in_file["pytorch/pybind.cpp"]
    assert (operator.name, operator.npu) == ("nms", True)


def test_torch_library() -> None:
    files = {
        "ops.cu": KERNEL + "Tensor scale_cuda(Tensor x) { scale_kernel<<<1, 1>>>(x); return x; }\n"
        'TORCH_LIBRARY_IMPL(shop, CUDA, m) { m.impl("scale", &scale_cuda); }\n',
        "ops.cpp": "Tensor scale_cpu(Tensor x) { return x; }\nTensor plain(Tensor x) { return x; }\n"
        'TORCH_LIBRARY(shop, m) { m.def("scale(Tensor x) -> Tensor"); m.def("plain", &plain); }\n'
        'TORCH_LIBRARY_IMPL(shop, CPU, m) { m.impl("scale", &scale_cpu); }\n',
    }
    assert set(operators(files).torch_ops) == {"shop.scale"}
    assert listed(files, "ops.cpp") == []


def test_autograd_functions_are_called_by_apply() -> None:
    text = (
        "class Scale : public torch::autograd::Function<Scale> {\npublic:\n"
        "  static Tensor forward(AutogradContext* ctx, Tensor x) { return scale_cuda(x); }\n"
        "  static Tensor backward(AutogradContext* ctx, Tensor g) { return g; }\n};\n"
        "Tensor scale(Tensor x) { return Scale::apply(x); }\n"
        "struct Table { void forward(int x) { plain(x); } };\n"
        "Tensor move(Table& table, Tensor x) { table.forward(1); return x; }\n"
        'TORCH_LIBRARY(shop, m) { m.def("scale", &scale); m.def("move", &move); }\n'
    )
    files = {"ops.cu": LAUNCHER, "ops.cpp": text}
    assert set(operators(files).torch_ops) == {"shop.scale"}


def test_a_macro_may_choose_the_function_for_the_device() -> None:
    files = {
        "dispatch.h": "#define DISPATCH(X, F, ...) if (X.is_cuda()) return F##_cuda(__VA_ARGS__); "
        "else return F##_cpu(__VA_ARGS__);\n",
        "scale.cpp": "Tensor scale(Tensor x) { DISPATCH(x, scale, x) }\n"
        "Tensor move(Tensor x) { DISPATCH(x, move, x) }\n"
        'PYBIND11_MODULE(m, m) { m.def("scale", &scale); m.def("move", &move); }\n',
        "scale_cuda.cu": LAUNCHER,
        "move.cpp": "Tensor move_cuda(Tensor x) { return x; }\n",
    }
    assert [operator.name for operator in operators(files).in_file["scale.cpp"]] == ["scale"]


SETUP = """
import glob, os
from setuptools import setup
from torch.utils.cpp_extension import CppExtension, CUDAExtension
here = os.path.dirname(__file__)
name = "acme._ext"
files = glob.glob("./acme/csrc/*.cpp") + glob.glob(os.path.join(here, "acme/csrc/*.cu"))
def make_cuda_ext(name, module, sources):
    return CUDAExtension(name=f"{module}.{name}", sources=sources)
setup(ext_modules=[
    CUDAExtension(name=name, sources=files),
    CppExtension("acme.plain", ["acme/plain.cpp"]),
    make_cuda_ext(name="roi_ext", module="acme.roi", sources=["src/roi.cpp", "src/roi_kernel.cu"]),
])
"""


def test_extensions_of_setup() -> None:
    files = {
        "setup.py": SETUP,
        "acme/csrc/scale.cu": LAUNCHER,
        "acme/csrc/bind.cpp": BINDING,
        "acme/plain.cpp": "int f(int x) { return x; }\n"
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f); }\n',
        "acme/roi/src/roi.cpp": 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("roi", &scale_cuda); }\n',
        "acme/roi/src/roi_kernel.cu": LAUNCHER,
    }
    modules = operators(files).modules
    assert {name: sorted(module.operators or ()) for name, module in modules.items()} == {
        "acme._ext": ["doubled", "scale"],
        "acme.roi.roi_ext": ["roi"],
    }


def test_a_builder_class_and_its_counterpart_for_npus() -> None:
    builder = (
        "class AdamBuilder(CUDAOpBuilder):\n    def sources(self):\n"
        "        return ['csrc/bind.cpp', 'csrc/scale.cu']\n    def nvcc_args(self):\n"
        "        return ['-O3']\n"
    )
    files = {"op_builder/adam.py": builder, "csrc/bind.cpp": BINDING, "csrc/scale.cu": LAUNCHER}
    module = operators(files).builders["AdamBuilder"]
    assert (sorted(module.operators or ()), module.npu) == (["doubled", "scale"], False)
    files["op_builder/npu/adam.py"] = (
        "class AdamBuilder(NPUOpBuilder):\n    def sources(self):\n        return []\n"
    )
    assert operators(files).builders["AdamBuilder"].npu
