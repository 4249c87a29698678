// What is noted of a task of an emulated NPU while torch_npu's profiler is on.
#pragma once
#include <cstdint>

namespace emulator {

uint64_t profile_time();  // 0 where it is off

// A task that ends now: its name, its inputs as CANN writes them, and its `profile_time()`.
void profile_task(const char* name, const char* shapes, const char* types, uint64_t start);

}  // namespace emulator
