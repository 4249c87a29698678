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
  void (*begin_group)() = nullptr;
  void* (*end_group)() = nullptr;
  void (*begin_update)(void* group) = nullptr;
  void (*end_update)() = nullptr;
};

Hooks hooks;
std::mutex guard;
void* captured_stream = nullptr;
void* captured_graph = nullptr;

}  // namespace

extern "C" {

void emulator_on_graphs(void* (*begin)(), void (*end)(), bool (*repeat)(void*), void (*forget)(void*),
                        void (*begin_group)(), void* (*end_group)(), void (*begin_update)(void*),
                        void (*end_update)()) {
  hooks = {begin, end, repeat, forget, begin_group, end_group, begin_update, end_update};
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

// A group of tasks: what it has the graph do can be replaced, once the graph is captured.
int aclmdlRICaptureTaskGrpBegin(void* stream) {
  if (captured_stream == nullptr || captured_stream != stream) return kNotCapturing;
  hooks.begin_group();
  return kSuccess;
}
int aclmdlRICaptureTaskGrpEnd(void* stream, void** group) {
  if (captured_stream == nullptr || captured_stream != stream) return kNotCapturing;
  *group = hooks.end_group();
  return kSuccess;
}
int aclmdlRICaptureTaskUpdateBegin(void*, void* group) {
  if (captured_stream != nullptr) return kNotCapturing;
  hooks.begin_update(group);
  return kSuccess;
}
int aclmdlRICaptureTaskUpdateEnd(void*) {
  hooks.end_update();
  return kSuccess;
}

int aclmdlRICaptureThreadExchangeMode(int*) { return kSuccess; }
int aclmdlRIDebugPrint(void*) { return kSuccess; }
int aclrtSetStreamAttribute(void*, int, void*) { return kSuccess; }

}  // extern "C"
