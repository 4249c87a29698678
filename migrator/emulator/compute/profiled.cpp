#include "profiled.h"

#include "dtypes.h"
#include "export.h"
#include "tensors.h"

namespace emulator {
namespace {

using Time = uint64_t (*)();
using Task = void (*)(const char*, const char*, const char*, uint64_t);
Time profile_time = nullptr;
Task profile_task = nullptr;

}  // namespace

Profiled::Profiled(Arguments& arguments) {
  if (profile_time == nullptr || profile_time() == 0) return;
  const auto add = [this](const at::Tensor& tensor) {
    std::string shape;
    for (const int64_t size : tensor.sizes()) shape += (shape.empty() ? "" : ",") + std::to_string(size);
    shapes_ += (types_.empty() ? "" : ";") + shape;
    types_ += (types_.empty() ? "" : ";") + std::string(cann_name(tensor.scalar_type()));
  };
  for (size_t i = 0; i < arguments.size(); ++i) each_tensor(arguments[i], add);
  start_ = profile_time();
}

void Profiled::done(const std::string& name) const {
  if (start_ != 0) profile_task(name.c_str(), shapes_.c_str(), types_.c_str(), start_);
}

}  // namespace emulator

EXPORT void emulator_profile(uint64_t (*time)(), void (*task)(const char*, const char*, const char*, uint64_t)) {
  emulator::profile_time = time;
  emulator::profile_task = task;
}
