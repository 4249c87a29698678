// Dtypes for which an NPU does otherwise than the CPU: those that it refuses, and those that it computes in float.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "arguments.h"

namespace emulator {

bool is_half(const at::Tensor& tensor);
const char* cann_name(at::ScalarType dtype);  // DT_FLOAT

// Raises CANN's error where an argument has a dtype, or a shape, that CANN's call does not take.
void check_arguments(const std::string& name, Arguments& arguments);

// Arguments of one call, converted to float; its results get the dtypes that op-plugin gives them.
class InFloat {
 public:
  // Converts the arguments where an NPU computes the operator in float and rounds once.
  InFloat(const std::string& name, Arguments& arguments);
  // Converts them whatever the operator, for one that the CPU has for float alone; returns whether it did.
  bool convert(Arguments& arguments);
  // Rounds a result.
  at::Tensor round(const at::Tensor& result, size_t index) const;
  // Rounds what was written to.
  void write_back() const;
  explicit operator bool() const { return !results_.empty(); }

 private:
  // Converts the arguments where one asks for halves that become float, or for float that becomes halves.
  bool between_halves_and_float(Arguments& arguments, c10::IValue& asked);
  void to_float(Arguments& arguments, bool integers);

  std::vector<at::ScalarType> results_;
  std::vector<std::pair<at::Tensor, at::Tensor>> written_;  // as it was given, in float
};

}  // namespace emulator
