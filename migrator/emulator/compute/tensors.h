// Operators' names, and the tensors among their arguments and results.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>

namespace emulator {

template <class Look>
void each_tensor(const c10::IValue& value, Look look) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) look(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector())
      if (tensor.defined()) look(tensor);
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector())
      if (tensor && tensor->defined()) look(*tensor);
  }
}

// "8x3x224x224 64x3x7x7"
inline void append_shape(std::string& text, const at::Tensor& tensor) {
  if (!text.empty()) text += ' ';
  const size_t start = text.size();
  for (const int64_t size : tensor.sizes()) text += (text.size() > start ? "x" : "") + std::to_string(size);
  if (text.size() == start) text += "()";
}

inline std::string full_name(const c10::FunctionSchema& schema) {
  return schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
}

}  // namespace emulator
