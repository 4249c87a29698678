"""The kernels that a source starts and the libraries that it uses, each once with its first line."""

from __future__ import annotations

from migrator.native.inventory import inventory
from tests.timing import grows_evenly

SOURCE = """\
#include <cublas_v2.h>
#include "thrust/sort.h"
#include <torch/extension.h>
// cudnnCreate(&handle); cub::Sum
/* nccl
   ncclAllReduce(a); */
void f(float* x) {
  const char* words = "cufftExec(1)";
  cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
  cublasSgemm(handle);
  cublasSgemm(handle);
  scale<float><<<1, 256, 0, stream>>>(x);
  scale<float><<<2, 256>>>(x);
  add_kernel <<<1, 1>>>(x);
  fused<float, Pack<4>, true> <<<2, 2>>>(x);
  int a = b << 3;
}
"""


def test_what_a_source_uses() -> None:
    assert [(use.name, use.line, use.count) for use in inventory(SOURCE)] == [
        ("cuBLAS", 1, 3),
        ("Thrust", 2, 1),
        ("torch for CUDA", 9, 1),
        ("scale", 12, 2),
        ("add_kernel", 14, 1),
        ("fused", 15, 1),
    ]
    assert all(bool(use.route) != (use.name in ("scale", "add_kernel", "fused")) for use in inventory(SOURCE))


def test_plain_code_has_none() -> None:
    assert inventory("#include <vector>\nint cub = 1; void cubic() { ncclish(x); }\n") == []


def test_long_lines_take_no_time() -> None:
    for part in ("a<", "/*", '"', "cuda", "x <<", "#include <", "a<b> "):
        assert grows_evenly(inventory, part.__mul__, 200_000 // len(part)), part
