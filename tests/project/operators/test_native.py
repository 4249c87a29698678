"""C++ and CUDA text: what is a function, a kernel, a binding, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.native.functions import scan_native
from migrator.native.inventory import tokens


def kernels(text: str) -> list[tuple[str, int]]:
    return [(kernel.name, kernel.line) for kernel in scan_native("a.cu", text).kernels]


def test_comments_strings_and_raw_strings_hold_no_tokens() -> None:
    text = (
        "// __global__ void a() {}\n/* __global__ void b() {} */\n"
        'const char* s = "__global__ void c() {}";\n'
        'const char* r = R"x(__global__ void d() {} )" )x";\n'
        "// goes on \\\n__global__ void e() {}\n"
        "char quote = '\"'; __global__ void f() {}\n"
    )
    assert kernels(text) == [("f", 7)]


def test_tokens_keep_their_offsets() -> None:
    text = "int a = 1'000'000; m.def(\"x\", &f); k<<<1, 2>>>(y);"
    found, _ = tokens(text)
    assert [text[t.offset : t.offset + len(t.text)] for t in found] == [t.text for t in found]
    assert "<<<" in {t.text for t in found}


@pytest.mark.parametrize(
    "head",
    [
        "__global__ void",
        "static __global__ void",
        "template <typename T, int N = (1 < 2)>\n__global__ void",
        "__global__ void __launch_bounds__(256)",
        "__global__ static void __launch_bounds__(256, 2)",
        'extern "C" __global__ void',
        "template <typename T> __attribute__((unused)) __global__ void",
        "__launch_bounds__(1024) __global__ void",
    ],
)
def test_heads_of_kernels(head: str) -> None:
    assert [
        name for name, _ in kernels(f"namespace n {{\n{head} run(float* x) {{ if (x) {{ }} }}\n}}\n")
    ] == ["run"]


def test_functions_behind_specializations_and_operators() -> None:
    text = (
        "template <typename T> __device__ T act(T x);\n"
        "template <> __device__ float act<float>(float x) { return tanhf(x); }\n"
        "template <> __global__ void first<float, 2>(float* x) { act(x); }\n"
        "struct Pair { int a; bool operator>(const Pair& other) const { return f(a) > other.a; } };\n"
        "__device__ bool operator<(Pair a, Pair b) { return g(a) < g(b); }\n"
        "__global__ void second(float* x) { act(x); }\n"
    )
    assert kernels(text) == [("first", 3), ("second", 6)]
    assert {"act", "first", "second"} <= {each.name for each in scan_native("a.cu", text).functions}


def test_a_declared_kernel_is_defined_elsewhere() -> None:
    assert kernels("__global__ void run(float* x);\n") == []


def test_a_macro_declares_the_kernel_that_is_its_first_argument() -> None:
    text = (
        "#define KERNEL(name, ...) \\\n"
        "template <typename T, __VA_ARGS__> \\\n"
        "__global__ void name(Params params)\n"
        "#define CASE(name, ...) case name\n"
        "KERNEL(scale_kernel, bool causal) { use(params); }\n"
        "Tensor run(Tensor x) { return x; }\n"
    )
    assert kernels(text) == [("scale_kernel", 5)]


def test_kernels_in_ascend_c_are_no_cuda_kernels() -> None:
    text = (
        'extern "C" __global__ __aicore__ void scale(GM_ADDR x) { Scale op; op.Process(); }\n'
        "void scale_do(uint32_t cores, void* stream, uint8_t* x) { scale<<<cores, nullptr, stream>>>(x); }\n"
    )
    found = scan_native("scale.cpp", text)
    assert (found.kernels, found.uses, found.cuda) == ([], (), False)
    assert [(each.name, each.npu) for each in found.functions] == [("scale", False), ("scale_do", True)]


def test_functions_and_what_they_mention() -> None:
    text = (
        "namespace a { namespace b {\n"
        "struct Op : Base { int n{3}; Op(int x) : n{x}, m_(x) { setup(); } void go() { run(); } };\n"
        "static const int table[] = {1, 2};\nenum Kind { One };\n"
        "auto later = [](int x) { return inner(x); };\n"
        "Tensor work(const Tensor& x, int n = f(2)) noexcept { return helper(x).data(); }\n}}\n"
    )
    functions = {function.name: function for function in scan_native("a.cpp", text).functions}
    assert set(functions) >= {"work", "go", "Op"}
    assert functions["go"].owner == "Op"
    assert "helper" in functions["work"].mentions
    assert "data" not in functions["work"].mentions, "a method of something"
    assert functions["work"].line == 6


def test_both_branches_of_a_condition_may_open_a_brace() -> None:
    text = (
        "#ifdef A\nvoid f(int a) {\n#else\nvoid f(float a) {\n#endif\n  use();\n}\n"
        "__global__ void after() {}\n"
    )
    assert kernels(text) == [("after", 8)]


@pytest.mark.parametrize(
    ("body", "touches"),
    [
        ("k<<<1, 2>>>(x);", True),
        ("cudaMalloc(&p, 3);", True),
        ("at::cuda::CUDAGuard guard(x.device());", True),
        ("auto o = torch::TensorOptions().device(torch::kCUDA);", True),
        ("cublasSgemm(h);", True),
        ("int at = blockIdx.x * blockDim.x;", True),
        ("int blockIdx = 3; blocks[blockIdx] = x;", False),
        ("return x.is_cuda();", False),
        ("return x.device().type() == torch::kCUDA;", False),
        ("return CUDART_VERSION;", False),
        ("// cudaMalloc\n return 1 << 3 >> 2;", False),
        ('TORCH_CHECK(x, "cudaMalloc failed");', False),
    ],
)
def test_what_touches_cuda(body: str, touches: bool) -> None:
    (function,) = scan_native("a.cpp", f"int f(Tensor x) {{ {body} }}").functions
    assert (function.cuda is not None) is touches


def test_bindings() -> None:
    text = (
        '#define OP "x"\n'
        'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n  m.doc() = "m.def(\\"no\\")";\n  m.def("one", &one);\n'
        '  m.def("two", [](int x) { return inner(x); }, py::arg("x"));\n  // m.def("three", &three);\n}\n'
        'TORCH_LIBRARY(shop, m) { m.def("four(Tensor x) -> Tensor"); }\n'
        'TORCH_LIBRARY_IMPL(shop, CUDA, m) { m.impl("four", TORCH_FN(four_cuda)); }\n'
        "static auto r = torch::RegisterOperators()"
        '.op("old::five(Tensor x) -> Tensor", &five).op("old::six", &six);\n'
        'STABLE_TORCH_LIBRARY_IMPL(shop, CUDA, m) { m.impl("four", TORCH_BOX(&four_stable)); }\n'
        'TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) { ops.def("nine(Tensor x) -> Tensor"); }\n'
        'void init(py::module& m) { m.def("seven", &seven); }\n'
        'void other(Table& m) { m.def("eight", &eight); }\n'
    )
    found = [(b.kind, b.module, b.name, b.key, b.target.line) for b in scan_native("a.cpp", text).bindings]
    assert found == [
        ("pybind", "TORCH_EXTENSION_NAME", "one", "", 4),
        ("pybind", "TORCH_EXTENSION_NAME", "two", "", 5),
        ("torch", "shop", "four", "", 8),
        ("torch", "shop", "four", "CUDA", 9),
        ("torch", "old", "five", "", 10),
        ("torch", "old", "six", "", 10),
        ("torch", "shop", "four", "CUDA", 11),
        ("torch", "TORCH_EXTENSION_NAME", "nine", "", 12),
        ("pybind", "", "seven", "", 13),
    ]


@given(st.text(alphabet="{}()<>;:\"'#/\\* \nR a1_=&,.", max_size=200))
def test_no_text_stops_it(text: str) -> None:
    scan_native("a.cu", text)
    scan_native("a.cu", "__global__ void k() {" + text)
