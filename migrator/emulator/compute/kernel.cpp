#include "kernel.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <string>
#include <unordered_set>

#include "aliases.h"
#include "arguments.h"
#include "dtypes.h"
#include "errors.h"
#include "graphs.h"
#include "insight.h"
#include "late.h"
#include "overflow.h"
#include "profiled.h"
#include "random.h"
#include "tensors.h"
#include "work.h"

namespace emulator {
namespace {

using Names = std::unordered_set<std::string>;

// Operators that take tensors of several devices by design.
const Names kAnyDevice = {
    "aten::copy_",           "aten::_foreach_copy_",  "aten::_copy_from",         "aten::index",
    "aten::index_put",       "aten::index_put_",      "aten::_index_put_impl_",   "aten::_unsafe_index",
    "aten::_unsafe_index_put", "aten::resize_as_",    "aten::_pack_padded_sequence", "aten::_ctc_loss",
    "aten::_ctc_loss_backward", "aten::ctc_loss",     "aten::is_set_to",
};

// The CPU takes class numbers in int64 alone; an NPU takes them in int32 (op-plugin converts to that).
const Names kClassNumbers = {
    "aten::nll_loss_forward",  "aten::nll_loss_backward",   "aten::nll_loss2d_forward",
    "aten::nll_loss2d_backward", "aten::nll_loss", "aten::nll_loss2d", "aten::cross_entropy_loss",
};

// Of an evaluation op-plugin makes the statistics with their size, and leaves them as they are; the CPU makes none.
const Names kWithStatistics = {"aten::native_batch_norm", "aten::_native_batch_norm_legit"};

bool any_device(const std::string& name) { return kAnyDevice.count(name) > 0; }
bool has_class_numbers(const std::string& name) { return kClassNumbers.count(name) > 0; }

bool has_statistics(const std::string& name) { return kWithStatistics.count(name) > 0; }

at::Tensor statistics(const c10::OperatorHandle& op, Arguments& arguments) {
  if (!known<has_statistics>(op.schema().name()) || !op.schema().overload_name().empty()) return {};
  const at::Tensor& input = arguments[0].toTensor();
  return input.dim() > 1 ? at::empty({input.size(1)}, input.options()) : at::Tensor();
}

// As on the NPU: one device for all tensors; only a number (a CPU tensor without dimensions) may come from the host.
void check_devices(const std::string& name, Arguments& arguments) {
  if (known<any_device>(name)) return;
  std::optional<c10::Device> npu;
  bool host = false;
  const auto look = [&](const at::Tensor& tensor) {
    if (tensor.device().is_cpu() && tensor.dim() > 0) host = true;
    if (!on_npu(tensor)) return;
    TORCH_CHECK(!npu || *npu == tensor.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ", *npu, " and ",
                tensor.device(), "!");
    npu = tensor.device();
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments.name(i) == "scalars") continue;  // of _foreach_addcmul and its like: numbers of the host
    each_tensor(arguments[i], look);
  }
  TORCH_CHECK(!(host && npu),
              "Expected all tensors to be on the same device. Expected NPU tensor, please check whether the input "
              "tensor device is correct.",
              npu_error("ERR01002 OPS invalid type"));
}

// As on the NPU: what works on lists takes each tensor by itself where the lists hold tensors of the host, too.
bool takes_each(const std::string& name, Arguments& arguments) {
  if (name.rfind("aten::_foreach_", 0) != 0) return false;
  bool host = false, npu = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isTensorList()) continue;
    for (const at::Tensor& tensor : arguments[i].toTensorVector()) (on_npu(tensor) ? npu : host) = true;
  }
  return host && npu;
}

struct Request {
  bool for_cpu = false;                    // a device argument asks for a result on the CPU
  std::optional<c10::Device> npu;          // or on this NPU
  std::optional<at::Generator> generator;  // of an NPU
};

c10::IValue on_cpu(Aliases& aliases, const c10::IValue& value, bool written, Request& request) {
  const auto alias = [&](const at::Tensor& tensor) {
    return written ? aliases.to_cpu_for_writing(tensor) : aliases.to_cpu(tensor);
  };
  if (value.isTensor()) return alias(value.toTensor());
  if (value.isTensorList()) {
    auto tensors = value.toTensorVector();
    for (at::Tensor& tensor : tensors) tensor = alias(tensor);
    return tensors;
  }
  if (value.isOptionalTensorList()) {
    auto tensors = value.toOptionalTensorList().copy();  // before torch 2.4 of an optional of its own
    for (size_t i = 0; i < tensors.size(); ++i)
      if (const auto tensor = tensors.get(i)) tensors.set(i, alias(*tensor));
    return tensors;
  }
  if (value.isDevice()) {
    const c10::Device device = value.toDevice();
    if (device.type() == kNPU) {
      request.npu = device;
      return c10::Device(at::kCPU);
    }
    request.for_cpu = request.for_cpu || device.is_cpu();
  }
  if (value.isGenerator() && value.toGenerator().device().type() == kNPU) {
    request.generator = value.toGenerator();
    return {};
  }
  return value;
}

void widen_class_numbers(const std::string& name, Arguments& arguments) {
  if (!known<has_class_numbers>(name)) return;
  for (size_t i = 0; i < arguments.size(); ++i) {
    c10::IValue& value = arguments[i];
    if (arguments.name(i) == "target" && value.isTensor() && value.toTensor().scalar_type() == at::kInt)
      value = value.toTensor().to(at::kLong);
  }
}

// The stack as it is, where an argument is a half; else nothing. A call that fails may leave it without its values.
torch::jit::Stack halves(const torch::jit::Stack& stack, Arguments& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isTensor() && is_half(arguments[i].toTensor())) return stack;
  }
  return {};
}

bool lacks_halves(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return text.find("not implemented for 'Half'") != std::string::npos ||
         text.find("not implemented for 'BFloat16'") != std::string::npos;
}

void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

// Draws from the generator of the device, and not from the CPU's.
void call_random(const c10::OperatorHandle& op, torch::jit::Stack* stack, Request& request, c10::Device device) {
  const at::Generator npu = request.generator ? *request.generator : generator_of(device);
  const at::Generator generator = draw(npu);
  Arguments arguments(op, stack);
  const auto& expected = op.schema().arguments();
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].name() == "generator") {
      arguments[i] = generator;
      return call(op, stack);
    }
  }
  const DefaultGenerator swapped(generator);
  call(op, stack);
}

c10::Device chosen(const std::optional<c10::Device>& asked, const std::optional<c10::Device>& seen) {
  const c10::Device device = asked ? *asked : seen.value_or(c10::Device(kNPU));
  return device.has_index() ? device : c10::impl::VirtualGuardImpl(kNPU).getDevice();
}

}  // namespace

void run_on_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const c10::impl::ExcludeDispatchKeyGuard no_inplace(c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView));
  const std::string& name = op.schema().name();
  Arguments arguments(op, stack);
  if (takes_each(name, arguments) && op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd))
    return op.callBoxedForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd, *stack);
  check_devices(name, arguments);
  surface_if_waiting(name, arguments);
  try {
    check_arguments(name, arguments);
  } catch (const c10::Error& error) {
    if (!keep_for_later(error)) throw;
  }
  std::optional<Captured> captured_call;
  if (capturing()) captured_call.emplace(op, arguments, *stack);
  std::optional<NotedCall> noted;
  if (insight()) noted.emplace(op, *stack);

  Aliases aliases;
  Request request;
  for (size_t i = 0; i < arguments.size(); ++i)
    arguments[i] = on_cpu(aliases, arguments[i], arguments.written(i), request);
  const c10::Device device = chosen(request.npu, aliases.device());
  if (noting()) note_work(op, device, *stack);
  const ForNpu for_npu;

  widen_class_numbers(name, arguments);
  const Overflow overflow(arguments);
  const at::Tensor sized = statistics(op, arguments);
  InFloat in_float(name, arguments);
  const bool random = op.hasTag(at::Tag::nondeterministic_seeded) && !random_from_cpu();
  const auto compute = [&] {
    try {
      random ? call_random(op, stack, request, device) : call(op, stack);
    } catch (const c10::Error&) {
      surface();  // the CPU cannot do it either
      throw;
    }
  };
  const Profiled profiled(arguments);
  const auto before = in_float ? torch::jit::Stack() : halves(*stack, arguments);
  if (before.empty()) {
    compute();
  } else {
    try {
      compute();
    } catch (const c10::Error& error) {
      *stack = before;
      Arguments again(op, stack);
      if (!lacks_halves(error) || !in_float.convert(again)) throw;
      compute();
    }
  }

  const c10::DeviceGuard current(device);
  profiled.done(name);
  in_float.write_back();
  aliases.write_back();
  if (request.for_cpu && !request.npu && !aliases.device()) return;
  const size_t first = stack->size() - op.schema().returns().size();
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (value.isTensor()) value = in_float.round(value.toTensor(), i - first);
    if (sized.defined() && i > first && value.toTensor().numel() == 0) value = at::empty_like(sized);
  }
  overflow.look(*stack, first);
  for (size_t i = first; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (value.isTensor()) {
      value = aliases.to_npu(value.toTensor(), device);
    } else if (value.isTensorList()) {
      auto results = value.toTensorVector();
      for (at::Tensor& result : results) result = aliases.to_npu(result, device);
      value = results;
    }
  }
  if (captured_call) captured_call->done(*stack);
  if (noted) noted->done(op, device, *stack);
}

void run_composite(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  op.callBoxedForDispatchKey(op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd)
                                 ? c10::DispatchKey::CompositeExplicitAutograd
                                 : c10::DispatchKey::CompositeImplicitAutograd,
                             *stack);
}

void run_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const Whole whole(op.schema());
  if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
    op.callBoxedForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd, *stack);
  } else if (op.hasKernelForDispatchKey(c10::DispatchKey::Autograd)) {
    op.callBoxedForDispatchKey(c10::DispatchKey::Autograd, *stack);
  } else {
    op.redispatchBoxed(keys & c10::after_autograd_keyset, stack);
  }
}

void raise_lacking(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "npumigrate emulate: the emulator lacks ", op.schema().name(),
                              ", an operator of torch_npu's own; an NPU may have it");
}

}  // namespace emulator
