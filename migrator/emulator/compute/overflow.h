// Whether an operator's result left the numbers of its dtype, for NPUs that have no infinities (saturation mode).
#pragma once

#include "arguments.h"

namespace emulator {

// Watches one call, where the device is in that mode: begun before its kernel runs.
class Overflow {
 public:
  explicit Overflow(Arguments& arguments);
  // Notes an overflow of the results, which are on the stack from `first` on.
  void look(const torch::jit::Stack& stack, size_t first) const;

 private:
  bool watching_;
};

}  // namespace emulator
