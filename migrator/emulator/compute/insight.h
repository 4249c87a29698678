// For `--insight`: what each place of the program has the NPUs do.
//
// One record for each place, operator, kind of arguments and phase: a program has few of them, however long it runs.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

namespace emulator {

bool insight();  // NPUMIGRATE_EMULATOR_INSIGHT is set

struct Record;

// One call of an operator.
class NotedCall {
 public:
  // The arguments are the last ones on the stack, as the program gave them.
  NotedCall(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  // And the results: they lie on `device`.
  void done(const c10::OperatorHandle& op, c10::Device device, const torch::jit::Stack& stack);

 private:
  Record* record_ = nullptr;
  uint64_t arguments_ = 0;  // their shapes
  double bytes_ = 0;
  double multiply_adds_ = 0;
  std::vector<uint64_t> shapes_;
  std::vector<const void*> written_;
};

// A number that the host asks an NPU for: torch_npu answers, and no kernel of ours.
void note_number(c10::Device device, double bytes);

}  // namespace emulator
