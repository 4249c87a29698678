// For torch_npu's profiler: when an operator begins and ends.
#pragma once

#include <cstdint>
#include <string>

#include "arguments.h"

namespace emulator {

class Profiled {
 public:
  explicit Profiled(Arguments& arguments);
  void done(const std::string& name) const;

 private:
  uint64_t start_ = 0;  // 0 where no profile is made
  std::string shapes_, types_;
};

}  // namespace emulator
