#include <torch/extension.h>

torch::Tensor scan_cuda(torch::Tensor x, double decay);

torch::Tensor scan(torch::Tensor x, double decay) {
  TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
  return scan_cuda(x, decay);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scan", &scan, "decayed sums"); }
