#include "counts.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

namespace {

std::mutex guard;
std::map<int, std::unordered_map<std::string, size_t>> counts;

}  // namespace

namespace emulator {

bool counting() {
  static const bool wanted = std::getenv("NPUMIGRATE_EMULATOR_REPORT") != nullptr;
  return wanted;
}

void count_operator(const c10::OperatorHandle& op, c10::Device device) {
  std::string name = op.schema().name();
  if (!op.schema().overload_name().empty()) name += "." + op.schema().overload_name();
  const std::lock_guard<std::mutex> lock(guard);
  ++counts[device.index()][name];
}

}  // namespace emulator

// {"0": {"aten::mm": 3, …}, …} into `text`. Returns the room that it takes, with the final zero.
extern "C" __attribute__((visibility("default"))) size_t emulator_operators(char* text, size_t room) {
  const std::lock_guard<std::mutex> lock(guard);
  std::string json = "{";
  for (const auto& [device, operators] : counts) {
    if (json.size() > 1) json += ", ";
    json += "\"" + std::to_string(device) + "\": {";
    bool first = true;
    for (const auto& [name, count] : operators) {
      if (!first) json += ", ";
      first = false;
      json += "\"" + name + "\": " + std::to_string(count);
    }
    json += "}";
  }
  json += "}";
  std::snprintf(text, room, "%s", json.c_str());
  return json.size() + 1;
}
