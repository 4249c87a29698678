#include "late.h"

#include <atomic>
#include <mutex>
#include <string>

#include "errors.h"
#include "export.h"
#include "tensors.h"

namespace emulator {
namespace {

bool raise_late = false;
std::atomic<bool> late_error{false};
std::mutex late_guard;
std::string late_call, late_text;

}  // namespace

namespace {

bool keep_text(const std::string& text) {
  const size_t name = text.find("call aclnn"), behind = text.find("\n[PID: ");
  if (name == std::string::npos || behind == std::string::npos) return false;
  const std::lock_guard<std::mutex> lock(late_guard);
  if (late_error) return true;
  late_call = text.substr(name + 5, text.find(' ', name + 5) - name - 5);
  late_text = text.substr(behind + 1);
  late_error = true;
  return true;
}

}  // namespace

bool keep_for_later(const c10::Error& error) { return raise_late && keep_text(error.what_without_backtrace()); }

void surface() {
  if (!late_error) return;
  const std::lock_guard<std::mutex> lock(late_guard);
  if (!late_error.exchange(false)) return;
  throw std::runtime_error(
      "The Inner error is reported as above. The process exits for this inner error, and the current working operator "
      "name is " + late_call + ".\nSince the operator is called asynchronously, the stacktrace may be inaccurate. If you "
      "want to get the accurate stacktrace, please set the environment variable ASCEND_LAUNCH_BLOCKING=1.\nNote: "
      "ASCEND_LAUNCH_BLOCKING=1 will force ops to run in synchronous mode, resulting in performance degradation. "
      "Please unset ASCEND_LAUNCH_BLOCKING in time after debugging." +
      npu_error("ERR00100 PTA call acl api failed") + ".\n" + late_text);
}

void surface_if_waiting(const std::string& name, Arguments& arguments) {
  if (!late_error || name != "aten::copy_" || !arguments[0].toTensor().is_cpu() || arguments[2].toBool()) return;
  surface();
}

}  // namespace emulator

// What a kernel in Python found; false: it is to raise now.
EXPORT bool emulator_keep_for_later(const char* text) { return emulator::raise_late && emulator::keep_text(text); }
EXPORT void emulator_raise_late() { emulator::raise_late = true; }
EXPORT void emulator_surface() { emulator::surface(); }
EXPORT void emulator_forget_late() { emulator::late_error = false; }
