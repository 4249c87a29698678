// NPU tensors seen as CPU tensors, without a copy: the memory of an emulated NPU is memory of the host.
#pragma once

#include <ATen/ATen.h>
#include <c10/util/SmallVector.h>

#include <optional>
#include <unordered_map>
#include <vector>

namespace emulator {

constexpr auto kNPU = c10::DeviceType::PrivateUse1;

inline bool on_npu(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kNPU; }

// Pairs of an NPU's object and the CPU's, either found by the other; most calls have a few.
template <class Object>
class Pairs {
 public:
  void add(const void* npu, const Object& of_npu, const void* cpu, const Object& of_cpu) {
    pairs_.push_back({npu, cpu, of_npu, of_cpu});
    if (pairs_.size() <= kFew) return;
    for (size_t i = places_.empty() ? 0 : pairs_.size() - 1; i < pairs_.size(); ++i) index(i);
  }
  const Object* cpu_of(const void* npu) const {
    const Pair* found = find(npu, &Pair::npu);
    return found == nullptr ? nullptr : &found->of_cpu;
  }
  const Object* npu_of(const void* cpu) const {
    const Pair* found = find(cpu, &Pair::cpu);
    return found == nullptr ? nullptr : &found->of_npu;
  }

 private:
  struct Pair {
    const void* npu;
    const void* cpu;
    Object of_npu, of_cpu;
  };
  static constexpr size_t kFew = 16;

  void index(size_t place) {
    places_.emplace(pairs_[place].npu, place);
    places_.emplace(pairs_[place].cpu, place);
  }
  const Pair* find(const void* wanted, const void* Pair::*side) const {
    if (!places_.empty()) {
      const auto found = places_.find(wanted);
      return found == places_.end() ? nullptr : &pairs_[found->second];
    }
    for (const Pair& pair : pairs_)
      if (pair.*side == wanted) return &pair;
    return nullptr;
  }

  c10::SmallVector<Pair, 4> pairs_;
  std::unordered_map<const void*, size_t> places_;  // by both sides, where there are many
};

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
  Pairs<c10::Storage> storages_;
  Pairs<at::Tensor> tensors_;
  std::optional<c10::Device> device_;
};

}  // namespace emulator
