#include "random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "graphs.h"

namespace emulator {
namespace {

std::recursive_mutex drawing;

// An NPU generator counts the random values that were drawn; an operator takes a multiple of four.
constexpr uint64_t kStep = 12;

// Seeds that differ by one shall not give numbers that look alike (SplitMix64).
uint64_t mix(uint64_t seed, uint64_t offset) {
  uint64_t value = seed + 0x9E3779B97F4A7C15ULL * (offset + 1);
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

}  // namespace

bool random_from_cpu() {
  static const char* from = std::getenv("NPUMIGRATE_EMULATOR_RANDOM");
  return from != nullptr && std::strcmp(from, "cpu") == 0;
}

at::Generator generator_of(c10::Device npu) {
  // torch_npu 2.6 does not tell torch of its generators.
  using OfDevice = const at::Generator& (*)(c10::DeviceIndex);
  static const auto of_device = [] {
    void* library = dlopen("libtorch_npu.so", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<OfDevice>(
        library == nullptr ? nullptr : dlsym(library, "_ZN6at_npu6detail22getDefaultNPUGeneratorEa"));
  }();
  return of_device != nullptr && npu.has_index() ? of_device(npu.index()) : at::globalContext().defaultGenerator(npu);
}

at::Generator draw(at::Generator npu) {
  // While a stream is captured the generator may not be asked; what is drawn then is nobody's.
  if (capturing()) return at::detail::createCPUGenerator(0);
  const std::lock_guard<std::mutex> lock(npu.mutex());
  const uint64_t offset = npu.get_offset();
  npu.set_offset(offset + kStep);
  return at::detail::createCPUGenerator(mix(npu.current_seed(), offset));
}

DefaultGenerator::DefaultGenerator(const at::Generator& generator) : one_at_a_time_(drawing) {
  auto cpu = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(cpu.mutex());
  before_ = cpu.get_state();
  cpu.set_state(generator.get_state());
}

DefaultGenerator::~DefaultGenerator() {
  auto cpu = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(cpu.mutex());
  cpu.set_state(before_);
}

}  // namespace emulator
