#include "shapes.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "export.h"
#include "tensors.h"

namespace emulator {
namespace {

using Tell = void (*)(const char* name, const char* shapes);

constexpr size_t kMostShapes = 10000;  // shapes of one operator; what comes then is not noted

std::mutex known_guard;
std::unordered_map<std::string, std::unordered_set<std::string>> known_shapes;
std::atomic<Tell> listener{nullptr};

bool is_new(const std::string& name, const std::string& shapes) {
  const std::lock_guard<std::mutex> lock(known_guard);
  auto& known = known_shapes[name];
  return known.size() < kMostShapes && known.insert(shapes).second;
}

}  // namespace

void note_shapes(const std::string& name, c10::ArrayRef<const c10::IValue> arguments) {
  const Tell tell = listener;
  if (tell == nullptr) return;
  std::string shapes;
  for (const c10::IValue& value : arguments)
    each_tensor(value, [&](const at::Tensor& tensor) { append_shape(shapes, tensor); });
  if (is_new(name, shapes)) tell(name.c_str(), shapes.c_str());
}

}  // namespace emulator

// Have `tell` called, with Python's lock, for each shape that is new to an operator; none with null. In a forked
// process all shapes are new again.
EXPORT void emulator_tell_shapes(emulator::Tell tell) {
  static const int in_children =
      pthread_atfork([] { emulator::known_guard.lock(); }, [] { emulator::known_guard.unlock(); },
                     [] {
                       emulator::known_shapes.clear();
                       emulator::known_guard.unlock();
                     });
  (void)in_children;
  emulator::listener = tell;
}
