// For the report: which operators ran on which NPU.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Device.h>

namespace emulator {

bool counting();  // NPUMIGRATE_EMULATOR_REPORT is set
void count_operator(const c10::OperatorHandle& op, c10::Device device);

}  // namespace emulator
