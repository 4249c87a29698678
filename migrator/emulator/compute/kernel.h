// The kernels that take the place of torch_npu's own.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace emulator {

// Runs the CPU's kernel of `op` on the memory of the NPU tensors.
void run_on_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Runs what torch itself makes the operator of, as for a device that has no kernel for it.
void run_composite(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Runs torch's own derivative, in place of torch_npu's.
void run_autograd(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

// Raises: the operator is one of torch_npu's own and has no reference implementation here.
void raise_lacking(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace emulator
