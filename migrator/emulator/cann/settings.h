// What `npumigrate emulate` hands to a program, and its children, in the environment.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulator {

constexpr int kMaxDevices = 32;  // torch_npu fails with more

int device_count();             // NPUMIGRATE_EMULATOR_DEVICES, less what ASCEND_RT_VISIBLE_DEVICES hides
int physical_device(int device);  // its number without ASCEND_RT_VISIBLE_DEVICES
const char* soc_name();         // NPUMIGRATE_EMULATOR_SOC
uint64_t launch_number();       // of the launch that this process belongs to
size_t device_memory();         // NPUMIGRATE_EMULATOR_MEMORY, bytes of each device
double connect_timeout();       // HCCL_CONNECT_TIMEOUT, seconds, as CANN reads it
double execution_timeout();     // HCCL_EXEC_TIMEOUT

// One line on standard error: standard output belongs to the program.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Why the next call of this thread fails, for torch_npu's exception: aclGetRecentErrMsg gives it, once.
void explain(const std::string& text);
const char* explanation();

}  // namespace emulator
