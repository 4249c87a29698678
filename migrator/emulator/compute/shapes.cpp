#include "shapes.h"

#include <ATen/core/Tensor.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace emulator {
namespace {

using Tell = void (*)(const char* name, const char* shapes);

constexpr size_t kMostShapes = 10000;  // shapes of one operator; what comes then is not noted

std::mutex known_guard;
std::unordered_map<std::string, std::unordered_set<std::string>> known_shapes;
std::atomic<Tell> listener{nullptr};

// "8x3x224x224 64x3x7x7": the tensors of the arguments, also those in lists.
void append(std::string& text, const c10::IValue& value) {
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) {
      if (!item.isTensor()) break;  // numbers, or an index that is left out
      append(text, item);
    }
  } else if (value.isTensor() && value.toTensor().defined()) {
    if (!text.empty()) text += ' ';
    const size_t start = text.size();
    for (const int64_t size : value.toTensor().sizes()) {
      if (text.size() > start) text += 'x';
      text += std::to_string(size);
    }
    if (text.size() == start) text += "()";
  }
}

bool is_new(const std::string& name, const std::string& shapes) {
  const std::lock_guard<std::mutex> lock(known_guard);
  auto& known = known_shapes[name];
  return known.size() < kMostShapes && known.insert(shapes).second;
}

}  // namespace

void note_shapes(const std::string& name, c10::ArrayRef<c10::IValue> arguments) {
  const Tell tell = listener;
  if (tell == nullptr) return;
  std::string shapes;
  for (const c10::IValue& value : arguments) append(shapes, value);
  if (is_new(name, shapes)) tell(name.c_str(), shapes.c_str());
}

}  // namespace emulator

// Have `tell` called, with Python's lock, for each shape that is new to an operator; none with null.
extern "C" __attribute__((visibility("default"))) void emulator_tell_shapes(emulator::Tell tell) {
  emulator::listener = tell;
}
