// Graphs (aclmdlRI…): a stream that is captured, and what becomes of the operators that run meanwhile. The part that
// computes records and repeats them. CANN's headers are left out, as those of older wheels lack these functions.
#include <mutex>

namespace {

constexpr int kSuccess = 0;
constexpr int kNotCapturing = 107000;  // ACL_ERROR_RT_PARAM_INVALID
enum Status { kNone, kActive };

struct Hooks {
  void* (*begin)() = nullptr;  // returns the graph
  void (*end)() = nullptr;
  bool (*repeat)(void* graph) = nullptr;
  void (*forget)(void* graph) = nullptr;
};

Hooks hooks;
std::mutex guard;
void* captured_stream = nullptr;
void* captured_graph = nullptr;

}  // namespace

extern "C" {

void emulator_on_graphs(void* (*begin)(), void (*end)(), bool (*repeat)(void*), void (*forget)(void*)) {
  hooks = {begin, end, repeat, forget};
}

int aclmdlRICaptureBegin(void* stream, int) {
  const std::lock_guard<std::mutex> lock(guard);
  if (captured_stream != nullptr || hooks.begin == nullptr) return kNotCapturing;
  captured_stream = stream;
  captured_graph = hooks.begin();
  return kSuccess;
}

int aclmdlRICaptureGetInfo(void* stream, int* status, void** graph) {
  const bool active = captured_stream != nullptr && captured_stream == stream;
  if (status != nullptr) *status = active ? kActive : kNone;
  if (graph != nullptr) *graph = active ? captured_graph : nullptr;
  return kSuccess;
}

int aclmdlRICaptureEnd(void* stream, void** graph) {
  const std::lock_guard<std::mutex> lock(guard);
  if (captured_stream == nullptr || captured_stream != stream) return kNotCapturing;
  *graph = captured_graph;
  captured_stream = nullptr;
  hooks.end();
  return kSuccess;
}

int aclmdlRIExecuteAsync(void* graph, void*) { return hooks.repeat(graph) ? kSuccess : kNotCapturing; }

int aclmdlRIDestroy(void* graph) {
  hooks.forget(graph);
  return kSuccess;
}

int aclmdlRICaptureThreadExchangeMode(int*) { return kSuccess; }
int aclmdlRIDebugPrint(void*) { return kSuccess; }
int aclrtSetStreamAttribute(void*, int, void*) { return kSuccess; }

}  // extern "C"
