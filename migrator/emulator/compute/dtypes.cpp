#include "dtypes.h"

#include <ATen/ExpandUtils.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "aliases.h"
#include "errors.h"
#include "export.h"
#include "tensors.h"

namespace emulator {
namespace {

constexpr size_t kFloatAlways = ~size_t{0};

// Products, with the arguments whose dtypes the results take in op-plugin (`self.options()` and its like). A matrix
// unit multiplies halves, adds in float and rounds once. Tensors of two floating dtypes meet in the wider one, as
// CANN documents for aclnnMm, aclnnAddmm, aclnnBatchMatMul and aclnnConvolution.
const std::unordered_map<std::string, std::vector<size_t>> kResultsAs = {
    {"aten::mm", {0}},           {"aten::bmm", {0}},          {"aten::matmul", {0}},
    {"aten::linear", {0}},       {"aten::addmm", {0}},        {"aten::baddbmm", {0}},
    {"aten::addbmm", {0}},       {"aten::convolution", {0}},  {"aten::_convolution", {0}},
    {"aten::convolution_overrideable", {0}},
    {"aten::convolution_backward", {1, 2, 0}},
    {"aten::convolution_backward_overrideable", {1, 2, 0}},
    // The means and deviations of a norm stay in float.
    {"aten::native_layer_norm", {0, kFloatAlways, kFloatAlways}},
    {"aten::native_layer_norm_backward", {1, 5, 5}},
};

// The CPU rounds halves at each step of these.
const std::unordered_set<std::string> kRoundedOnce = {
    "aten::binary_cross_entropy", "aten::binary_cross_entropy_with_logits", "aten::prod", "aten::upsample_linear1d",
    "aten::upsample_bilinear2d", "aten::upsample_trilinear3d", "aten::grid_sampler_2d", "aten::grid_sampler_3d",
    "aten::grid_sampler_2d_backward", "aten::grid_sampler_3d_backward",
    "aten::index_add", "aten::index_add_", "aten::native_layer_norm", "aten::native_layer_norm_backward",
    "aten::slow_conv_transpose2d", "aten::slow_conv_transpose3d", "aten::upsample_bicubic2d",
    "aten::_adaptive_avg_pool3d", "aten::_adaptive_avg_pool2d_backward", "aten::_adaptive_avg_pool3d_backward",
    "aten::avg_pool2d_backward", "aten::avg_pool3d_backward", "aten::embedding_dense_backward",
    "aten::unfold_backward", "aten::_softmax", "aten::_log_softmax",
};

// The CPU does not go from halves to float, and back, within these; the argument that asks for it.
const std::unordered_map<std::string, size_t> kHalvesToFloat = {
    {"aten::_softmax", 2}, {"aten::_log_softmax", 2},
    {"aten::_softmax_backward_data", 3}, {"aten::_log_softmax_backward_data", 3},
};

// The CPU has these for floating dtypes alone.
const std::unordered_set<std::string> kIntegersInFloat = {"aten::histc"};

struct Listed {
  std::string call;  // of CANN; none where only torch_npu's documents say it
  std::unordered_set<std::string> arguments;  // none is all
  std::unordered_set<std::string> dtypes;
  std::string list;
};

auto& listed() {
  static auto* all = new std::unordered_map<std::string, std::vector<Listed>>;
  return *all;
}

std::unordered_set<std::string> split(const std::string& text) {
  std::unordered_set<std::string> parts;
  std::istringstream from(text);
  for (std::string part; std::getline(from, part, ',');) parts.insert(part);
  return parts;
}

// aclnnBatchMatMul, unlike aclnnMm, wants both of one dtype.
void check_same_dtype(Arguments& arguments) {
  const auto one = arguments[0].toTensor().scalar_type(), other = arguments[1].toTensor().scalar_type();
  TORCH_CHECK(one == other, "bmm: NPU function error: call aclnnBatchMatMul failed, error code is 161002",
              npu_error("ERR00100 PTA call acl api failed."), "\n[PID: ", getpid(),
              "] AclNN_Parameter_Error(EZ1001): mat2's dtype [", cann_name(other), "] and self's dtype [",
              cann_name(one), "] are not equal.");
}

// What CANN's calls check before all else: its documents say it of these, and NPUs of copies and `cat`.
const std::unordered_map<std::string, const char*> kEightDimensions = {
    {"aten::copy_", "aclnnInplaceCopy"}, {"aten::clone", "aclnnInplaceCopy"}, {"aten::cat", "aclnnCat"},
    {"aten::add", "aclnnAdd"},           {"aten::add_", "aclnnInplaceAdd"},   {"aten::log", "aclnnLog"},
    {"aten::log_", "aclnnInplaceLog"},   {"aten::log1p", "aclnnLog1p"},       {"aten::log1p_", "aclnnInplaceLog1p"},
    {"aten::sin", "aclnnSin"},           {"aten::sin_", "aclnnInplaceSin"},   {"aten::ceil", "aclnnCeil"},
    {"aten::ceil_", "aclnnInplaceCeil"},
};

// What lies in one piece goes between the host and an NPU as it is.
bool is_moved(const std::string& name, Arguments& arguments) {
  if (name != "aten::copy_") return false;
  const at::Tensor &to = arguments[0].toTensor(), &from = arguments[1].toTensor();
  return to.device() != from.device() && to.is_contiguous() && from.is_contiguous();
}

void check_dimensions(const std::string& name, Arguments& arguments) {
  constexpr int64_t kMost = 8;
  const char* call = kEightDimensions.at(name);
  for (size_t i = 0; i < arguments.size(); ++i)
    each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (tensor.dim() <= kMost || !on_npu(tensor) || tensor.numel() == 0 || is_moved(name, arguments)) return;
      TORCH_CHECK(false, name.substr(name.find("::") + 2), ": NPU function error: call ", call,
                  " failed, error code is 161002", npu_error("ERR00100 PTA call acl api failed."), "\n[PID: ",
                  getpid(), "] AclNN_Parameter_Error(EZ1001): The ", arguments.name(i),
                  " tensor cannot be larger than ", kMost, " dimensions.");
    });
}

// aclnnInplaceLerp and aclnnInplaceLerps look at the shapes themselves, where op-plugin leaves it to them.
void check_shapes(Arguments& arguments) {
  const at::Tensor& self = arguments[0].toTensor();
  auto shape = at::infer_size(self.sizes(), arguments[1].toTensor().sizes());
  const bool scalar = !arguments[2].isTensor();
  if (!scalar) shape = at::infer_size(shape, arguments[2].toTensor().sizes());
  TORCH_CHECK(self.sizes() == shape, "lerp_: NPU function error: call aclnnInplaceLerp", scalar ? "s" : "",
              " failed, error code is 161002", npu_error("ERR00100 PTA call acl api failed."), "\n[PID: ", getpid(),
              "] AclNN_Parameter_Error(EZ1001): CheckShape failed: output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", at::IntArrayRef(shape), ".");
}

}  // namespace

const char* cann_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat: return "DT_FLOAT";
    case at::kHalf: return "DT_FLOAT16";
    case at::kBFloat16: return "DT_BFLOAT16";
    case at::kDouble: return "DT_DOUBLE";
    case at::kChar: return "DT_INT8";
    case at::kByte: return "DT_UINT8";
    case at::kShort: return "DT_INT16";
    case at::kInt: return "DT_INT32";
    case at::kLong: return "DT_INT64";
    case at::kBool: return "DT_BOOL";
    case at::kComplexHalf: return "DT_COMPLEX32";
    case at::kComplexFloat: return "DT_COMPLEX64";
    case at::kComplexDouble: return "DT_COMPLEX128";
    case at::kUInt16: return "DT_UINT16";
    case at::kUInt32: return "DT_UINT32";
    case at::kUInt64: return "DT_UINT64";
    default: return c10::toString(dtype);
  }
}

bool is_half(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16);
}

namespace {

struct Checks {
  bool of_dtypes, of_shapes, of_dimensions, of_casts;
  const std::vector<Listed>* listed;
};

Checks checks(const std::string& name) {
  const auto found = listed().find(name);
  return {name == "aten::bmm", name == "aten::lerp_", kEightDimensions.count(name) > 0, name == "aten::copy_",
          found == listed().end() ? nullptr : &found->second};
}

struct Floats {
  const std::vector<size_t>* product;  // whose dtypes the results of one take
  bool once, integers;
  const size_t* asked;  // which argument wants halves to become float, or float halves
};

Floats floats(const std::string& name) {
  const auto found = kResultsAs.find(name);
  const auto between = kHalvesToFloat.find(name);
  return {found == kResultsAs.end() ? nullptr : &found->second, kRoundedOnce.count(name) > 0,
          kIntegersInFloat.count(name) > 0, between == kHalvesToFloat.end() ? nullptr : &between->second};
}

}  // namespace

namespace {

// What has one dtype on both sides is moved, whatever that is; what is cast between host and NPU, the host casts.
bool is_cast_on_npu(Arguments& arguments) {
  const at::Tensor &to = arguments[0].toTensor(), &from = arguments[1].toTensor();
  return to.scalar_type() != from.scalar_type() && on_npu(to) && on_npu(from);
}

void check_listed(const std::string& name, Arguments& arguments, const Listed& can) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    if (!value.isTensor() || !on_npu(value.toTensor())) continue;
    if (!can.arguments.empty() && can.arguments.count(arguments.name(i)) == 0) continue;
    const std::string dtype = cann_name(value.toTensor().scalar_type());
    if (can.dtypes.count(dtype) > 0) continue;
    TORCH_CHECK(!can.call.empty(), "npumigrate emulate --strict: torch_npu's documents do not list ", dtype, " for ",
                name, ", only [", can.list, ",]");
    TORCH_CHECK(false, name.substr(name.find("::") + 2), ": NPU function error: call ", can.call,
                " failed, error code is 161002", npu_error("ERR00100 PTA call acl api failed."), "\n[PID: ", getpid(),
                "] AclNN_Parameter_Error(EZ1001): Tensor ", arguments.name(i), " not implemented for ", dtype,
                ", should be in dtype support list [", can.list, ",].");
  }
}

}  // namespace

void check_arguments(const std::string& name, Arguments& arguments) {
  const Checks& wanted = known<checks>(name);
  if (wanted.of_dtypes) check_same_dtype(arguments);
  if (wanted.of_shapes) check_shapes(arguments);
  if (wanted.of_dimensions) check_dimensions(name, arguments);
  if (wanted.listed == nullptr || (wanted.of_casts && !is_cast_on_npu(arguments))) return;
  for (const Listed& can : *wanted.listed) check_listed(name, arguments, can);
}

namespace {

// The dtype that a call asks for, as `prod(…, dtype=torch.float32)` does.
std::optional<at::ScalarType> asked_dtype(Arguments& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments.name(i) == "dtype" && arguments[i].isInt()) return arguments[i].toScalarType();
  return {};
}

}  // namespace

InFloat::InFloat(const std::string& name, Arguments& arguments) {
  const auto& [product, once, integers, asked] = known<floats>(name);
  if (asked != nullptr && between_halves_and_float(arguments, arguments[*asked])) return;
  if (product == nullptr && !once && !integers) return;
  bool half = false;
  bool seen[3] = {false, false, false};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    if (!value.isTensor() || !value.toTensor().defined() || arguments.written(i)) continue;
    const at::ScalarType dtype = value.toTensor().scalar_type();
    half = half || dtype == at::kHalf || (once && dtype == at::kBFloat16) || (integers && at::isIntegralType(dtype, true));
    seen[0] = seen[0] || dtype == at::kHalf;
    seen[1] = seen[1] || dtype == at::kBFloat16;
    seen[2] = seen[2] || dtype == at::kFloat;
  }
  if (!half && seen[0] + seen[1] + seen[2] < 2) return;
  const std::vector<size_t> first = {0};
  const auto dtype_of = [&](size_t index) {
    if (index == kFloatAlways) return at::kFloat;
    const c10::IValue& value = arguments[index];
    return value.isTensor() && value.toTensor().defined() ? value.toTensor().scalar_type() : at::kFloat;
  };
  for (const size_t index : product == nullptr ? first : *product)
    results_.push_back(asked_dtype(arguments).value_or(dtype_of(index)));
  to_float(arguments, integers);
}

bool InFloat::between_halves_and_float(Arguments& arguments, c10::IValue& asked) {
  const at::ScalarType given = arguments[0].toTensor().scalar_type();
  if (asked.isBool() ? !asked.toBool() : asked.toScalarType() == given) return false;
  results_.push_back(asked.isBool() ? at::kFloat : asked.toScalarType());
  asked = asked.isBool() ? c10::IValue(false) : c10::IValue(given);
  to_float(arguments, false);
  return true;
}

bool InFloat::convert(Arguments& arguments) {
  for (size_t i = 0; i < arguments.size() && results_.empty(); ++i) {
    const c10::IValue& value = arguments[i];
    if (value.isTensor() && is_half(value.toTensor()))
      results_.push_back(asked_dtype(arguments).value_or(value.toTensor().scalar_type()));
  }
  if (results_.empty()) return false;
  to_float(arguments, false);
  return true;
}

void InFloat::to_float(Arguments& arguments, bool integers) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = arguments[i];
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor narrow = value.toTensor();
    if (!is_half(narrow) && !(integers && at::isIntegralType(narrow.scalar_type(), true))) continue;
    const at::Tensor wide = narrow.to(at::kFloat);
    if (arguments.written(i)) {
      TORCH_CHECK(narrow.scalar_type() == results_.front(), "expected dtype ", results_.front(), " but got dtype ",
                  narrow.scalar_type(), npu_error("ERR01002 OPS invalid type"));
      written_.emplace_back(narrow, wide);
    }
    value = wide;
  }
}

at::Tensor InFloat::round(const at::Tensor& result, size_t index) const {
  if (results_.empty() || !result.defined()) return result;
  for (const auto& [narrow, wide] : written_)
    if (result.is_same(wide)) return narrow;
  return result.scalar_type() == at::kFloat ? result.to(results_[std::min(index, results_.size() - 1)]) : result;
}

void InFloat::write_back() const {
  for (const auto& [narrow, wide] : written_) {
    if (narrow.sizes() != wide.sizes()) narrow.resize_(wide.sizes());
    narrow.copy_(wide);
  }
}

}  // namespace emulator

// `name`: an operator with its library. `call` of CANN takes these `dtypes`, each with a comma between, for those of
// the `arguments` that are named; for all where none is.
EXPORT void emulator_list_dtypes(const char* name, const char* call, const char* arguments, const char* dtypes) {
  emulator::listed()[name].push_back({call, emulator::split(arguments), emulator::split(dtypes), dtypes});
}
