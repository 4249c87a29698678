#include "overflow.h"

#include <ATen/ops/isfinite.h>

#include <atomic>
#include <cmath>

#include "export.h"
#include "tensors.h"

namespace emulator {
namespace {

using Saturates = bool (*)();

Saturates saturates = [] { return false; };
std::atomic<bool> overflowed{false};

bool is_finite(const c10::IValue& value) {
  if (value.isDouble()) return std::isfinite(value.toDouble());
  bool finite = true;
  each_tensor(value, [&](const at::Tensor& tensor) {
    if (tensor.is_floating_point() && tensor.layout() == at::kStrided)
      finite = finite && at::isfinite(tensor).all().item<bool>();
  });
  return finite;
}

}  // namespace

// What comes of an infinity that was given, or only moves one, is no overflow.
Overflow::Overflow(Arguments& arguments) : watching_(saturates()) {
  for (size_t i = 0; watching_ && i < arguments.size(); ++i)
    watching_ = arguments.name(i) == "out" || is_finite(arguments[i]);
}

void Overflow::look(const torch::jit::Stack& stack, size_t first) const {
  for (size_t i = first; watching_ && i < stack.size(); ++i)
    if (!is_finite(stack[i])) overflowed = true;
}

}  // namespace emulator

// `ask` says whether the device is in saturation mode.
EXPORT void emulator_watch_overflow(emulator::Saturates ask) { emulator::saturates = ask; }
EXPORT bool emulator_overflowed() { return emulator::overflowed; }
EXPORT void emulator_forget_overflow() { emulator::overflowed = false; }
