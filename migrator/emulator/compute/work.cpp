#include "work.h"

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "counts.h"

namespace torch::autograd {
int get_current_graph_task_id();  // -1 outside of a backward pass
}

namespace emulator {
namespace {

struct Amount {
  size_t operators = 0;
  size_t products = 0;       // calls of matrix products, convolutions and their like
  double multiply_adds = 0;  // in those
};

using Values = c10::ArrayRef<const c10::IValue>;
using Measure = double (*)(Values);

std::mutex guard;
std::map<std::string, std::array<Amount, 2>> amounts;  // by device: forward, backward
thread_local int for_npu = 0;

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

void add(const std::string& device, const std::string& name, Values arguments, bool npu) {
  auto found = kProducts.find(name);
  bool measured = found != kProducts.end();
  if (!measured && npu) {
    found = kProductsOfNpu.find(name);
    measured = found != kProductsOfNpu.end();
  }
  double multiply_adds = 0;
  if (measured) {
    try {
      multiply_adds = found->second(arguments);
    } catch (const std::exception&) {
      // Values that the operator itself is about to refuse.
    }
  }
  const size_t backward = torch::autograd::get_current_graph_task_id() == -1 ? 0 : 1;
  const std::lock_guard<std::mutex> lock(guard);
  Amount& amount = amounts[device][backward];
  ++amount.operators;
  if (measured) ++amount.products;
  amount.multiply_adds += multiply_adds;
}

std::unique_ptr<at::ObserverContext> note_on_cpu(const at::RecordFunction& function) {
  if (for_npu > 0) return nullptr;
  const Values arguments = function.inputs();
  for (const c10::IValue& value : arguments) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    if (value.toTensor().device().is_cpu()) add("cpu", function.name(), arguments, false);
    break;
  }
  return nullptr;
}

}  // namespace

void note_work(const c10::OperatorHandle& op, c10::Device device, const torch::jit::Stack& stack) {
  const size_t count = op.schema().arguments().size();
  add(std::to_string(device.index()), op.schema().name(), Values(stack.data() + stack.size() - count, count), true);
}

ForNpu::ForNpu() { ++for_npu; }
ForNpu::~ForNpu() { --for_npu; }

}  // namespace emulator

#define WORK_EXPORT extern "C" __attribute__((visibility("default")))

// From now on, note what runs on the CPU as well.
WORK_EXPORT void emulator_note_cpu() {
  at::addGlobalCallback(at::RecordFunctionCallback(&emulator::note_on_cpu)
                            .needsInputs(true)
                            .scopes({at::RecordScope::FUNCTION}));
}

// {"cpu": {"forward": {"operators": …, "products": …, "multiply_adds": …}, "backward": …}, "0": …} into `text`.
// Returns the room that it takes, with the final zero.
WORK_EXPORT size_t emulator_work(char* text, size_t room) {
  const std::lock_guard<std::mutex> lock(emulator::guard);
  std::string json = "{";
  for (const auto& [device, both] : emulator::amounts) {
    if (json.size() > 1) json += ", ";
    json += "\"" + device + "\": {";
    for (size_t i = 0; i < 2; ++i) {
      char line[160];
      std::snprintf(line, sizeof line, "%s\"%s\": {\"operators\": %zu, \"products\": %zu, \"multiply_adds\": %.0f}",
                    i ? ", " : "", i ? "backward" : "forward", both[i].operators, both[i].products,
                    both[i].multiply_adds);
      json += line;
    }
    json += "}";
  }
  json += "}";
  std::snprintf(text, room, "%s", json.c_str());
  return json.size() + 1;
}
