// For insight: what lies in the memory of each NPU, and where it was made.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace emulator {

// Names what was allocated since without a place, and is not free yet.
void name_memory(const void* data, int place, const char* what);
inline std::atomic<bool> memory_wanted{false};
// Watches the allocator as soon as there is one: torch_npu makes it when the program first uses an NPU.
void watch_memory();
// A step has ended: what lies there now stays from step to step.
void memory_step();
std::string memory_as_json();
void forget_memory_in_children();

}  // namespace emulator
