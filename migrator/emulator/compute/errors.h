// Errors as torch_npu words them.
#pragma once

#include <string>

namespace emulator {

// What torch_npu puts behind the text of an error: time, process, device, rank, and its number and kind.
std::string npu_error(const char* kind);

}  // namespace emulator
