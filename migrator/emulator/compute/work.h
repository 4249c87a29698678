// For the report: which operators ran where, how much they computed, and how much of it for derivatives.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>

namespace emulator {

bool noting();  // NPUMIGRATE_EMULATOR_REPORT is set

// Notes an operator that is about to run on an NPU; its arguments are the last ones on the stack.
void note_work(const c10::OperatorHandle& op, c10::Device device, const torch::jit::Stack& stack);

// While it lives, what this thread runs on the CPU is an NPU's work, and is not noted.
class ForNpu {
 public:
  ForNpu();
  ~ForNpu();
  ForNpu(const ForNpu&) = delete;
  ForNpu& operator=(const ForNpu&) = delete;
};

}  // namespace emulator
