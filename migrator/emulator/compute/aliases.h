// NPU tensors seen as CPU tensors, without a copy: the memory of an emulated NPU is memory of the host.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <unordered_map>
#include <vector>

namespace emulator {

constexpr auto kNPU = c10::DeviceType::PrivateUse1;

inline bool on_npu(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kNPU; }

// The aliases made for one operator call.
class Aliases {
 public:
  // The same tensor always gives the same alias, and tensors that share memory give aliases that share it.
  // Of a sparse tensor the indices and the values are aliased.
  at::Tensor to_cpu(const at::Tensor& tensor);
  // As above, for a tensor that the operator may resize. Where that took other memory, `write_back` moves it to
  // the NPU.
  at::Tensor to_cpu_for_writing(const at::Tensor& tensor);
  // The NPU tensor that a result stands for. A result with memory of its own is copied to `device`, contiguous,
  // as op-plugin makes its results (apply_tensor_without_format).
  at::Tensor to_npu(const at::Tensor& result, c10::Device device);
  // Sizes, strides and memory that the operator gave to tensors that it wrote to.
  void write_back();
  const std::optional<c10::Device>& device() const { return device_; }

 private:
  at::Tensor make(const at::Tensor& tensor);
  c10::Storage share(const c10::Storage& storage);

  struct Written {
    at::Tensor npu;
    at::Tensor cpu;
  };
  std::vector<Written> written_;
  std::unordered_map<const c10::StorageImpl*, c10::Storage> cpu_storage_;  // by NPU storage
  std::unordered_map<const c10::StorageImpl*, c10::Storage> npu_storage_;  // by CPU storage
  std::unordered_map<const c10::TensorImpl*, at::Tensor> cpu_tensor_;      // by NPU tensor
  std::unordered_map<const c10::TensorImpl*, at::Tensor> npu_tensor_;      // by CPU tensor
  std::optional<c10::Device> device_;
};

}  // namespace emulator
