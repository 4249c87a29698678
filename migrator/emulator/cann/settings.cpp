#include "settings.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

namespace emulator {
namespace {

double number(const char* variable, double otherwise);

}  // namespace

int installed_devices() {
  return std::clamp(static_cast<int>(number("NPUMIGRATE_EMULATOR_DEVICES", 8)), 1, kMaxDevices);
}

namespace {

double number(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  return end == text || value < 0 ? otherwise : value;
}

// CANN takes the leading valid, distinct entries of the list, as CUDA does.
std::vector<int> visible_devices() {
  const int installed = installed_devices();
  std::vector<int> devices;
  const char* visible = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (visible == nullptr) {
    for (int device = 0; device < installed; ++device) devices.push_back(device);
    return devices;
  }
  for (const char* at = visible; *at != '\0';) {
    char* end = nullptr;
    const long device = std::strtol(at, &end, 10);
    const bool seen = std::find(devices.begin(), devices.end(), device) != devices.end();
    if (end == at || device < 0 || device >= installed || seen) break;
    devices.push_back(static_cast<int>(device));
    at = *end == ',' ? end + 1 : end + std::strlen(end);
  }
  return devices;
}

// As the list was when a device was first used.
const std::vector<int>& devices() {
  static const auto* found = new std::vector<int>(visible_devices());
  return *found;
}

std::atomic<bool> used{false};

}  // namespace

int device_count() { return static_cast<int>(used ? devices().size() : visible_devices().size()); }

int physical_device(int device) { return devices().at(static_cast<size_t>(device)); }

void use_devices() { used = !devices().empty(); }

const char* soc_name() {
  static const char* name = std::getenv("NPUMIGRATE_EMULATOR_SOC");
  return name != nullptr && *name != '\0' ? name : "Ascend910B2";
}

Chips chips() {
  const std::string name = soc_name();
  const auto begins = [&](const char* with) { return name.rfind(with, 0) == 0; };
  if (begins("Ascend910_93") || (begins("Ascend910B") && name.size() > 10)) return Chips::kAtlasA2;
  if (begins("Ascend910")) return Chips::kAtlasA1;
  return begins("Ascend310P") ? Chips::kAtlas300 : Chips::kOther;
}

uint64_t launch_number() {
  const char* ledger = std::getenv("NPUMIGRATE_EMULATOR_LEDGER");
  return std::hash<std::string>()(ledger != nullptr ? ledger : "");
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

// HCCL makes links for each collective when it is first called, and waits for HCCL_CONNECT_TIMEOUT. From one collective
// to the next a CPU takes longer than an NPU, so that has to be asked for.
double link_timeout() { return std::getenv("HCCL_CONNECT_TIMEOUT") != nullptr ? connect_timeout() : execution_timeout(); }

void say(const char* format, ...) {
  va_list values;
  va_start(values, format);
  char* text = nullptr;
  const int length = vasprintf(&text, format, values);
  va_end(values);
  if (length < 0) return;
  // One write: ranks share a stream, and a line must not be parted from its beginning.
  std::fprintf(stderr, "npumigrate emulate: %s\n", text);
  std::free(text);
}

namespace {
thread_local std::string next_text;
thread_local std::string given_text;
}  // namespace

void explain(const std::string& text) { next_text = text; }

void explain_as(const char* code, const std::string& words) {
  explain(std::string(code) + ": [PID: " + std::to_string(getpid()) + "] " + words);
}

const char* explanation() {
  given_text = std::move(next_text);
  next_text.clear();
  return given_text.c_str();
}

}  // namespace emulator
