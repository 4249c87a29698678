// Puts the kernels in the dispatcher, in the places that the Python side names.
#include <torch/library.h>

#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>

#include "export.h"
#include "kernel.h"

namespace {

// Registrations last as long as these objects. Never destroyed: at exit the dispatcher may already be gone.
auto& registrations() {
  static auto* all = new std::vector<std::unique_ptr<torch::Library>>;
  return *all;
}

using Kernel = void(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack*);

template <Kernel* kernel>
int register_as(const char* library, c10::DispatchKey key, const char* names) {
  auto registration =
      std::unique_ptr<torch::Library>(new torch::Library(torch::Library::IMPL, library, {key}, __FILE__, __LINE__));
  std::istringstream lines(names);
  int count = 0;
  for (std::string name; std::getline(lines, name); ++count)
    registration->impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<kernel>());
  registrations().push_back(std::move(registration));
  return count;
}

}  // namespace

// `names`: operators without their library, one a line.
EXPORT int emulator_register_cpu(const char* library, const char* names) {
  return register_as<&emulator::run_on_cpu>(library, c10::DispatchKey::PrivateUse1, names);
}
EXPORT int emulator_register_composite(const char* library, const char* names) {
  return register_as<&emulator::run_composite>(library, c10::DispatchKey::PrivateUse1, names);
}
EXPORT int emulator_register_autograd(const char* library, const char* names) {
  return register_as<&emulator::run_autograd>(library, c10::DispatchKey::AutogradPrivateUse1, names);
}
EXPORT int emulator_register_lacking(const char* library, const char* names) {
  return register_as<&emulator::raise_lacking>(library, c10::DispatchKey::PrivateUse1, names);
}

// Ranks of one host share its cores: without this each would start a thread on every core.
EXPORT void emulator_share_cores(int ranks) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  at::set_num_threads(std::max(1, std::min(at::get_num_threads(), cores / std::max(1, ranks))));
}
