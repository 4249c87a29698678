#include "graphs.h"

#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <vector>

#include "aliases.h"
#include "export.h"
#include "kernel.h"
#include "tensors.h"

namespace emulator {
namespace {

struct Recorded {
  c10::OperatorHandle op;
  torch::jit::Stack arguments;
  torch::jit::Stack results;
};
using Calls = std::vector<Recorded>;
// In parts, as the calls of a group of tasks can be replaced.
struct Graph {
  std::vector<std::unique_ptr<Calls>> parts;
  Calls* add() { return parts.emplace_back(std::make_unique<Calls>()).get(); }
};

Graph* graph_now = nullptr;
std::atomic<Calls*> captured{nullptr};  // where calls go

void copy_values(const at::Tensor& to, const at::Tensor& from) {
  if (!on_npu(to) || to.is_same(from)) return;
  Aliases target, source;
  target.to_cpu(to).copy_(source.to_cpu(from));
}

// Results keep their places: what comes behind in the graph, and the program, read them there.
void copy_result(const c10::IValue& to, const c10::IValue& from) {
  if (to.isTensor()) {
    if (to.toTensor().defined() && from.toTensor().defined()) copy_values(to.toTensor(), from.toTensor());
  } else if (to.isTensorList()) {
    const auto old = to.toTensorVector(), now = from.toTensorVector();
    for (size_t i = 0; i < old.size() && i < now.size(); ++i) copy_values(old[i], now[i]);
  }
}

void* begin() {
  graph_now = new Graph;
  captured = graph_now->add();
  return graph_now;
}
void end() {
  captured = nullptr;
  graph_now = nullptr;
}

void begin_group() {
  if (graph_now != nullptr) captured = graph_now->add();
}
void* end_group() {
  Calls* group = captured;
  if (graph_now != nullptr) captured = graph_now->add();
  return group;
}
void begin_update(void* group) {
  static_cast<Calls*>(group)->clear();
  captured = static_cast<Calls*>(group);
}
void end_update() { captured = nullptr; }

bool repeat(void* graph) {
  const c10::impl::ExcludeDispatchKeyGuard no_autograd(c10::autograd_dispatch_keyset);
  try {
    for (const auto& part : static_cast<Graph*>(graph)->parts)
      for (Recorded& each : *part) {
        torch::jit::Stack stack = each.arguments;
        run_on_cpu(each.op, {}, &stack);
        for (size_t i = 0; i < each.results.size() && i < stack.size(); ++i) copy_result(each.results[i], stack[i]);
      }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "npumigrate emulate: a graph cannot be replayed: %s\n", error.what());
    return false;
  }
  return true;
}

void forget(void* graph) {
  const std::unique_ptr<Graph> gone(static_cast<Graph*>(graph));
  if (gone.get() == graph_now) end();
  for (const auto& part : gone->parts)
    if (part.get() == captured) captured = nullptr;  // an update of it was not ended
}

}  // namespace

bool capturing() { return captured != nullptr; }

Captured::Captured(const c10::OperatorHandle& op, Arguments& arguments, const torch::jit::Stack& stack)
    : op_(op), arguments_(stack.end() - static_cast<std::ptrdiff_t>(arguments.size()), stack.end()) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments.written(i)) continue;
    each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      if (!on_npu(tensor)) return;
      Aliases alias;
      held_.emplace_back(tensor, alias.to_cpu(tensor).clone());
    });
  }
}

void Captured::done(const torch::jit::Stack& stack) {
  const auto results = static_cast<std::ptrdiff_t>(op_.schema().returns().size());
  for (const auto& [tensor, before] : held_) {
    if (tensor.sizes() != before.sizes()) continue;  // the operator gave it its size
    Aliases alias;
    alias.to_cpu(tensor).copy_(before);
  }
  captured.load()->push_back({op_, std::move(arguments_), {stack.end() - results, stack.end()}});
}

}  // namespace emulator

EXPORT void emulator_record_graphs(
    void (*on_graphs)(void* (*)(), void (*)(), bool (*)(void*), void (*)(void*), void (*)(), void* (*)(),
                      void (*)(void*), void (*)())) {
  on_graphs(&emulator::begin, &emulator::end, &emulator::repeat, &emulator::forget, &emulator::begin_group,
            &emulator::end_group, &emulator::begin_update, &emulator::end_update);
}
