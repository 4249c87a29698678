#include "aliases.h"

#include <cstring>

namespace emulator {
namespace {

void take_flags(const at::Tensor& from, const at::Tensor& to) {
  if (from.is_conj()) to._set_conj(true);
  if (from.is_neg()) to._set_neg(true);
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) to.unsafeGetTensorImpl()->set_wrapped_number(true);
}

void take_shape(const at::Tensor& from, const at::Tensor& to) {
  to.unsafeGetTensorImpl()->set_sizes_and_strides(from.sizes(), from.strides());
  to.unsafeGetTensorImpl()->set_storage_offset(from.storage_offset());
}

// A sparse tensor of the same form, whose indices and values are what `part` makes of them.
template <class Part>
at::Tensor with_parts(const at::Tensor& sparse, const Part& part) {
  const c10::Layout layout = sparse.layout();
  if (layout == at::kSparse)
    return at::_sparse_coo_tensor_unsafe(part(sparse._indices()), part(sparse._values()), sparse.sizes())
        ._coalesced_(sparse.is_coalesced());
  const bool by_rows = layout == at::kSparseCsr || layout == at::kSparseBsr;
  const at::Tensor values = part(sparse.values());
  return at::_sparse_compressed_tensor_unsafe(part(by_rows ? sparse.crow_indices() : sparse.ccol_indices()),
                                              part(by_rows ? sparse.col_indices() : sparse.row_indices()), values,
                                              sparse.sizes(), values.options().layout(layout));
}

}  // namespace

c10::Storage Aliases::share(const c10::Storage& storage) {
  if (const c10::Storage* known = storages_.cpu_of(storage.unsafeGetStorageImpl())) return *known;
  // The alias may outlive the call (a saved tensor), so it keeps the NPU storage.
  auto* keep = new c10::Storage(storage);
  c10::DataPtr data(const_cast<void*>(storage.data()), keep,
                    [](void* kept) { delete static_cast<c10::Storage*>(kept); }, c10::Device(at::kCPU));
  c10::Storage alias(c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), storage.nbytes(),
                                                           std::move(data), c10::GetAllocator(at::kCPU), true));
  storages_.add(storage.unsafeGetStorageImpl(), storage, alias.unsafeGetStorageImpl(), alias);
  return alias;
}

at::Tensor Aliases::make(const at::Tensor& tensor) {
  if (!device_) device_ = tensor.device();
  if (const at::Tensor* known = tensors_.cpu_of(tensor.unsafeGetTensorImpl())) return *known;
  at::Tensor alias;
  if (tensor.layout() == at::kStrided) {
    alias = at::detail::make_tensor<c10::TensorImpl>(share(tensor.storage()),
                                                     c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
    take_shape(tensor, alias);
    take_flags(tensor, alias);
  } else {
    alias = with_parts(tensor, [&](const at::Tensor& part) { return make(part); });
  }
  tensors_.add(tensor.unsafeGetTensorImpl(), tensor, alias.unsafeGetTensorImpl(), alias);
  return alias;
}

at::Tensor Aliases::to_cpu(const at::Tensor& tensor) { return on_npu(tensor) ? make(tensor) : tensor; }

at::Tensor Aliases::to_cpu_for_writing(const at::Tensor& tensor) {
  if (!on_npu(tensor)) return tensor;
  TORCH_CHECK_NOT_IMPLEMENTED(tensor.layout() == at::kStrided,
                              "npumigrate emulate: this operator does not write to sparse tensors of an NPU here");
  const at::Tensor alias = make(tensor);
  written_.push_back({tensor, alias});
  return alias;
}

at::Tensor Aliases::to_npu(const at::Tensor& result, c10::Device device) {
  if (!result.defined() || !result.device().is_cpu()) return result;
  if (const at::Tensor* known = tensors_.npu_of(result.unsafeGetTensorImpl())) return *known;
  if (result.layout() != at::kStrided)
    return with_parts(result, [&](const at::Tensor& part) { return to_npu(part, device); });
  if (result._is_zerotensor()) return at::zeros(result.sizes(), result.options().device(device));
  at::Tensor moved;
  if (const c10::Storage* shared = storages_.npu_of(result.storage().unsafeGetStorageImpl())) {
    moved = at::empty({0}, result.options().device(device));
    moved.set_(*shared, result.storage_offset(), result.sizes(), result.strides());
  } else {
    moved = at::empty(result.sizes(), result.options().device(device).pinned_memory(false));
    if (result.numel() > 0) {
      if (result.is_contiguous()) {
        std::memcpy(moved.mutable_data_ptr(), result.const_data_ptr(), result.nbytes());
      } else {
        Aliases target;
        target.to_cpu(moved).copy_(result);
      }
    }
  }
  take_flags(result, moved);
  return moved;
}

void Aliases::write_back() {
  for (const auto& [npu, cpu] : written_) {
    if (cpu.storage().data() != npu.storage().data() && cpu.numel() > 0) {  // it had to grow
      npu.resize_(cpu.sizes());
      take_shape(cpu, npu);
      std::memcpy(npu.mutable_data_ptr(), cpu.const_data_ptr(), cpu.nbytes());
    } else if (npu.sizes() != cpu.sizes() || npu.strides() != cpu.strides() ||
               npu.storage_offset() != cpu.storage_offset()) {
      take_shape(cpu, npu);
    }
  }
}

}  // namespace emulator
