// For the report: the shapes with which each operator runs.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>

namespace emulator {

// Tells the report where an operator has not met these shapes before. The caller holds no lock.
void note_shapes(const std::string& name, c10::ArrayRef<const c10::IValue> arguments);

}  // namespace emulator
