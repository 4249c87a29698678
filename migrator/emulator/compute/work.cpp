#include "work.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <pthread.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "aliases.h"
#include "arguments.h"
#include "export.h"
#include "insight.h"
#include "memory.h"
#include "phase.h"
#include "shapes.h"
#include "tensors.h"

namespace emulator {
namespace {

struct Amount {
  size_t operators = 0;
  size_t products = 0;       // calls of matrix products, convolutions and their like
  double multiply_adds = 0;  // in those
};

struct Work {
  std::unordered_map<std::string, size_t> calls;  // by operator and overload; only of NPUs
  std::array<Amount, 2> amounts;                  // forward, backward
};

using Values = c10::ArrayRef<const c10::IValue>;
using Measure = double (*)(Values);

std::mutex guard;
std::map<std::string, Work> devices;
thread_local int for_npu = 0;
thread_local const c10::FunctionSchema* whole = nullptr;

// What torch_npu has kernels for, and which of them torch makes of other operators (without overloads).
auto& native() {
  static auto* all = new std::unordered_set<std::string>;
  return *all;
}
auto& wholes() {
  static auto* all = new std::unordered_set<std::string>;
  return *all;
}
bool is_whole(const std::string& name) { return wholes().count(name) > 0; }

const at::Tensor& tensor(Values arguments, size_t index) { return arguments[index].toTensor(); }

// a · b, where `first` is the place of a.
template <size_t first>
double product(Values arguments) {
  const at::Tensor& b = tensor(arguments, first + 1);
  const double columns = b.dim() > 1 ? static_cast<double>(b.size(-1)) : 1.0;
  return static_cast<double>(tensor(arguments, first).numel()) * columns;
}

double linear(Values arguments) {
  const at::Tensor& weight = tensor(arguments, 1);
  return static_cast<double>(tensor(arguments, 0).numel()) * static_cast<double>(weight.size(0));
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, …)
double convolution(Values arguments) {
  const at::Tensor& input = tensor(arguments, 0);
  const at::Tensor& weight = tensor(arguments, 1);
  const auto stride = arguments[3].toIntVector(), padding = arguments[4].toIntVector(),
             dilation = arguments[5].toIntVector();
  const auto at = [](const std::vector<int64_t>& values, size_t i) { return values[values.size() > 1 ? i : 0]; };
  const size_t spatial = static_cast<size_t>(weight.dim()) - 2;
  const size_t first = static_cast<size_t>(input.dim()) - spatial;
  double places = first > 1 ? static_cast<double>(input.size(0)) : 1.0;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t size = input.size(static_cast<int64_t>(first + i));
    const int64_t reach = at(dilation, i) * (weight.size(static_cast<int64_t>(i + 2)) - 1);
    places *= static_cast<double>(
        arguments[6].toBool() ? size : (size + 2 * at(padding, i) - reach - 1) / at(stride, i) + 1);
  }
  return places * static_cast<double>(weight.numel());
}

// convolution_backward(grad_output, input, weight, …): one pass for the input, one for the weight.
double convolution_backward(Values arguments) {
  const at::Tensor& gradient = tensor(arguments, 0);
  const at::Tensor& weight = tensor(arguments, 2);
  const auto channels = static_cast<double>(std::max<int64_t>(1, gradient.dim() > 1 ? gradient.size(1) : 1));
  return 2.0 * static_cast<double>(gradient.numel()) / channels * static_cast<double>(weight.numel());
}

// scaled_dot_product_attention(query, key, …): with the keys, then with the values.
double attention(Values arguments) {
  return 2.0 * static_cast<double>(tensor(arguments, 0).numel()) *
         static_cast<double>(tensor(arguments, 1).size(-2));
}

const std::unordered_map<std::string, Measure> kProducts = {
    {"aten::mm", product<0>},
    {"aten::bmm", product<0>},
    {"aten::mv", product<0>},
    {"aten::addmm", product<1>},
    {"aten::addmm_", product<1>},
    {"aten::addmv", product<1>},
    {"aten::baddbmm", product<1>},
    {"aten::convolution", convolution},
    {"aten::convolution_backward", convolution_backward},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
};
// Made of the above on the CPU, but run as a whole on an NPU.
const std::unordered_map<std::string, Measure> kProductsOfNpu = {
    {"aten::linear", linear},
    {"aten::convolution_overrideable", convolution},
    {"aten::convolution_backward_overrideable", convolution_backward},
};

}  // namespace

std::optional<double> multiply_adds(const std::string& name, Values arguments, bool npu) {
  auto found = kProducts.find(name);
  if (found == kProducts.end()) {
    found = kProductsOfNpu.find(name);
    if (!npu || found == kProductsOfNpu.end()) return std::nullopt;
  }
  try {
    return found->second(arguments);
  } catch (const std::exception&) {
    return 0.0;  // values that the operator itself is about to refuse
  }
}

namespace {

// Needs the lock.
void add(Work& work, std::optional<double> measured) {
  Amount& amount = work.amounts[torch::autograd::get_current_graph_task_id() == -1 ? 0 : 1];
  ++amount.operators;
  if (!measured) return;
  ++amount.products;
  amount.multiply_adds += *measured;
}

std::unique_ptr<at::ObserverContext> note_on_cpu(const at::RecordFunction& function) {
  if (for_npu > 0) return nullptr;
  if (insight()) watch_memory();
  const Values arguments = function.inputs();
  for (const c10::IValue& value : arguments) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor& tensor = value.toTensor();
    if (insight() && on_npu(tensor) && std::strcmp(function.name(), "aten::_local_scalar_dense") == 0)
      note_number(tensor.device(), static_cast<double>(tensor.itemsize()));
    if (tensor.device().is_cpu()) {
      const auto measured = multiply_adds(function.name(), arguments, false);
      const std::lock_guard<std::mutex> lock(guard);
      add(devices["cpu"], measured);
    }
    break;
  }
  return nullptr;
}

}  // namespace

bool noting() {
  static const bool wanted = std::getenv("NPUMIGRATE_EMULATOR_REPORT") != nullptr;
  return wanted;
}

void note_work(const c10::OperatorHandle& op, c10::Device device, const torch::jit::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  const Values arguments(stack.data() + stack.size() - count, count);
  const auto measured = multiply_adds(op.schema().name(), arguments, true);
  const std::string name = noted_name(op.schema());
  note_shapes(name, arguments);
  const std::lock_guard<std::mutex> lock(guard);
  Work& work = devices[std::to_string(device.index())];
  ++work.calls[name];
  add(work, measured);
}

std::string noted_name(const c10::FunctionSchema& schema) {
  const std::string name = full_name(schema);
  return whole == nullptr || native().count(name) > 0 ? name : full_name(*whole);
}

Whole::Whole(const c10::FunctionSchema& schema) : before_(whole) {
  if (known<is_whole>(schema.name())) whole = &schema;
}
Whole::~Whole() { whole = before_; }
const c10::FunctionSchema* Whole::now() { return whole; }

ForNpu::ForNpu() { ++for_npu; }
ForNpu::~ForNpu() { --for_npu; }

}  // namespace emulator

// `kernels`: what torch_npu has kernels for, one a line; `wholes`: those that torch makes of others.
EXPORT void emulator_name_kernels(const char* kernels, const char* wholes) {
  std::istringstream kernel_lines(kernels), whole_lines(wholes);
  for (std::string name; std::getline(kernel_lines, name);) emulator::native().insert(name);
  for (std::string name; std::getline(whole_lines, name);) emulator::wholes().insert(name.substr(0, name.find('.')));
}

// From now on, note what runs on the CPU as well. A forked process begins anew.
EXPORT void emulator_note_cpu() {
  pthread_atfork([] { emulator::guard.lock(); }, [] { emulator::guard.unlock(); },
                 [] {
                   emulator::devices.clear();
                   emulator::guard.unlock();
                 });
  at::addGlobalCallback(at::RecordFunctionCallback(&emulator::note_on_cpu)
                            .needsInputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
}

// {"0": {"operators": {"aten::mm": 3, …}, "forward": {"operators": …, "products": …, "multiply_adds": …},
// "backward": …}, "cpu": …} into `text`. Returns the room that it takes, with the final zero.
EXPORT size_t emulator_work(char* text, size_t room) {
  const std::lock_guard<std::mutex> lock(emulator::guard);
  std::string json = "{";
  for (const auto& [device, work] : emulator::devices) {
    json += (json.size() > 1 ? ", \"" : "\"") + device + "\": {\"operators\": {";
    const char* between = "";
    for (const auto& [name, count] : work.calls) {
      json += between + ("\"" + name + "\": ") + std::to_string(count);
      between = ", ";
    }
    json += "}";
    for (size_t i = 0; i < 2; ++i) {
      const emulator::Amount& amount = work.amounts[i];
      char line[160];
      std::snprintf(line, sizeof line, ", \"%s\": {\"operators\": %zu, \"products\": %zu, \"multiply_adds\": %.0f}",
                    i ? "backward" : "forward", amount.operators, amount.products, amount.multiply_adds);
      json += line;
    }
    json += "}";
  }
  json += "}";
  std::snprintf(text, room, "%s", json.c_str());
  return json.size() + 1;
}
