// What `npumigrate emulate` hands to a program, and its children, in the environment.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace emulator {

constexpr int kMaxDevices = 32;  // torch_npu fails with more

int installed_devices();        // NPUMIGRATE_EMULATOR_DEVICES
int device_count();             // those, less what ASCEND_RT_VISIBLE_DEVICES hides
void use_devices();             // from now on ASCEND_RT_VISIBLE_DEVICES may change without an effect
int physical_device(int device);  // its number without ASCEND_RT_VISIBLE_DEVICES
const char* soc_name();         // NPUMIGRATE_EMULATOR_SOC
enum class Chips { kAtlasA1, kAtlasA2, kAtlas300, kOther };
Chips chips();  // what kind of NPUs that is: Ascend910A and its like, Ascend910B… and Ascend910_93…, Ascend310P…
uint64_t launch_number();       // of the launch that this process belongs to
size_t device_memory();         // NPUMIGRATE_EMULATOR_MEMORY, bytes of each device
double connect_timeout();       // HCCL_CONNECT_TIMEOUT, seconds, as CANN reads it
double execution_timeout();     // HCCL_EXEC_TIMEOUT
double link_timeout();          // of the first call of a collective in a group

// One line on standard error: standard output belongs to the program.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Why the next call of this thread fails, for torch_npu's exception: aclGetRecentErrMsg gives it, once.
void explain(const std::string& text);
// In CANN's own form, so that a program, or its log, is read as one of real NPUs.
void explain_as(const char* code, const std::string& words);
const char* explanation();

}  // namespace emulator
