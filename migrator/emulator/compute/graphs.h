// NPU graphs: operators that are recorded while a stream is captured, and run again when the graph is replayed.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <utility>
#include <vector>

#include "arguments.h"

namespace emulator {

bool capturing();

// One operator that runs while a stream is captured. On an NPU it would not run: what it writes to is given back what
// it held before.
class Captured {
 public:
  Captured(const c10::OperatorHandle& op, Arguments& arguments, const torch::jit::Stack& stack);
  // Records it; the results are the last values on the stack.
  void done(const torch::jit::Stack& stack);

 private:
  const c10::OperatorHandle& op_;
  torch::jit::Stack arguments_;
  std::vector<std::pair<at::Tensor, at::Tensor>> held_;  // written to, with a copy on the CPU of what it held
};

}  // namespace emulator
