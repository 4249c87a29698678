// The arguments of one call of an operator, where they lie on the stack.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <unordered_map>

namespace emulator {

class Arguments {
 public:
  Arguments(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : schema_(op.schema()), stack_(*stack), first_(stack->size() - schema_.arguments().size()) {}

  size_t size() const { return schema_.arguments().size(); }
  c10::IValue& operator[](size_t index) { return stack_[first_ + index]; }
  const std::string& name(size_t index) const { return schema_.arguments()[index].name(); }
  bool written(size_t index) const {
    const auto* alias = schema_.arguments()[index].alias_info();
    return alias != nullptr && alias->isWrite();
  }

 private:
  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  size_t first_;
};

// What `look` says of an operator by its name, which is looked up once: the name stays where it is.
template <auto look>
const auto& known(const std::string& name) {
  thread_local std::unordered_map<const std::string*, decltype(look(name))> all;
  const auto found = all.find(&name);
  return found != all.end() ? found->second : all.emplace(&name, look(name)).first->second;
}

}  // namespace emulator
