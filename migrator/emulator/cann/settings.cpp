#include "settings.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace emulator {
namespace {

double number(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return end == text || value < 0 ? otherwise : value;
}

// CANN counts the leading valid, distinct entries of the list, as CUDA does.
int count_devices() {
  const int installed = std::clamp(static_cast<int>(number("NPUMIGRATE_EMULATOR_DEVICES", 8)), 1, kMaxDevices);
  const char* visible = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (visible == nullptr) return installed;
  bool seen[kMaxDevices] = {};
  int count = 0;
  for (const char* at = visible; *at != '\0';) {
    char* end = nullptr;
    const long device = std::strtol(at, &end, 10);
    if (end == at || device < 0 || device >= installed || seen[device]) break;
    seen[device] = true;
    ++count;
    at = *end == ',' ? end + 1 : end + std::strlen(end);
  }
  return count;
}

}  // namespace

int device_count() {
  static const int count = count_devices();
  return count;
}

const char* soc_name() {
  static const char* name = std::getenv("NPUMIGRATE_EMULATOR_SOC");
  return name != nullptr && *name != '\0' ? name : "Ascend910B2";
}

size_t device_memory() {
  static const auto bytes = static_cast<size_t>(number("NPUMIGRATE_EMULATOR_MEMORY", 64.0 * (1UL << 30)));
  return bytes;
}

double connect_timeout() { return number("HCCL_CONNECT_TIMEOUT", 120); }

double execution_timeout() {
  const double seconds = number("HCCL_EXEC_TIMEOUT", 1836);
  return seconds == 0 ? 1e9 : seconds;  // CANN: 0 waits for ever
}

void say(const char* format, ...) {
  std::fputs("npumigrate emulate: ", stderr);
  va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputc('\n', stderr);
}

}  // namespace emulator
