// Random numbers of an NPU: a generator for each device, with a seed and an offset, as torch_npu keeps them.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <mutex>
#include <optional>

namespace emulator {

// Whether NPU operators draw from the CPU's generator, so that a program gives the numbers of its CPU run
// (NPUMIGRATE_EMULATOR_RANDOM=cpu).
bool random_from_cpu();

// The default generator of an NPU.
at::Generator generator_of(c10::Device npu);

// A CPU generator that stands where `npu` stands, which is moved on as by one operator.
at::Generator draw(at::Generator npu);

// While it lives, operators without a generator argument draw from `generator`.
class DefaultGenerator {
 public:
  explicit DefaultGenerator(const at::Generator& generator);
  ~DefaultGenerator();
  DefaultGenerator(const DefaultGenerator&) = delete;
  DefaultGenerator& operator=(const DefaultGenerator&) = delete;

 private:
  std::lock_guard<std::recursive_mutex> one_at_a_time_;
  at::Tensor before_;
};

}  // namespace emulator
