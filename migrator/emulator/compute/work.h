// For the report: which operators ran where, how much they computed, and how much of it for derivatives.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <optional>
#include <string>

namespace emulator {

bool noting();  // NPUMIGRATE_EMULATOR_REPORT is set

// Notes an operator that is about to run on an NPU; its arguments are the last ones on the stack.
void note_work(const c10::OperatorHandle& op, c10::Device device, const torch::jit::Stack& stack);

// The multiplications of an operator; none where it is not made of them.
std::optional<double> multiply_adds(const std::string& name, c10::ArrayRef<const c10::IValue> arguments, bool npu);

// The name under which an operator is noted: of a part that an NPU has no kernel for, that of the function which
// torch_npu has a kernel for as a whole, and which torch makes of such parts.
std::string noted_name(const c10::FunctionSchema& schema);

// While it lives, this thread runs such a function.
class Whole {
 public:
  explicit Whole(const c10::FunctionSchema& schema);
  ~Whole();
  Whole(const Whole&) = delete;
  Whole& operator=(const Whole&) = delete;
  static const c10::FunctionSchema* now();

 private:
  const c10::FunctionSchema* before_;
};

// While it lives, what this thread runs on the CPU is an NPU's work, and is not noted.
class ForNpu {
 public:
  ForNpu();
  ~ForNpu();
  ForNpu(const ForNpu&) = delete;
  ForNpu& operator=(const ForNpu&) = delete;
};

}  // namespace emulator
