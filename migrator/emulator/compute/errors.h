// Errors as torch_npu words them.
#pragma once

#include <string>

namespace emulator {

// What torch_npu puts behind the text of an operator's error: time, process, device, rank and a number.
std::string wrong_type();

}  // namespace emulator
