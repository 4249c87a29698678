#include "missing.h"

#include <acl/acl_base.h>

#include <mutex>
#include <set>
#include <string>

#include "settings.h"

int emulator_missing(const char* function) {
  static std::mutex guard;
  static std::set<std::string> said;
  const std::lock_guard<std::mutex> lock(guard);
  if (said.insert(function).second) emulator::say("CANN's %s is not emulated", function);
  return ACL_ERROR_API_NOT_SUPPORT;
}
