// What the program is about: forward, backward or the optimizer's step.
#pragma once

#include <atomic>

namespace torch::autograd {
int get_current_graph_task_id();  // -1 outside of a backward pass
}

namespace emulator {

inline std::atomic<bool> optimizing{false};

inline int phase_now() {
  if (torch::autograd::get_current_graph_task_id() != -1) return 1;
  return optimizing ? 2 : 0;
}

}  // namespace emulator
