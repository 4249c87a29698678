// Profiling and dumping: both start and end without an error, and record nothing.
#include <acl/acl.h>
#include <acl/acl_prof.h>
#if __has_include(<acl/acl_msprof.h>)
#include <acl/acl_msprof.h>
#endif

#include <atomic>

#include "parameters.h"
#include "settings.h"

namespace {

void say_once() {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) emulator::say("profiling measures nothing here: there is no NPU");
}

char config;  // an address to hand out

}  // namespace

extern "C" {

aclError aclprofInit(const char*, size_t) { return ACL_SUCCESS; }
aclError aclprofFinalize() { return ACL_SUCCESS; }
aclError aclprofStart(const aclprofConfig*) {
  say_once();
  return ACL_SUCCESS;
}
aclError aclprofStop(const aclprofConfig*) { return ACL_SUCCESS; }
aclprofConfig* aclprofCreateConfig(uint32_t*, uint32_t, aclprofAicoreMetrics,
                                   emulator::Parameter<aclprofCreateConfig, 3>, uint64_t) {
  return reinterpret_cast<aclprofConfig*>(&config);
}
aclError aclprofDestroyConfig(const aclprofConfig*) { return ACL_SUCCESS; }
aclError aclprofSetConfig(aclprofConfigType, const char*, size_t) { return ACL_SUCCESS; }
aclError aclprofWarmup(const aclprofConfig*) { return ACL_SUCCESS; }
aclError aclprofMarkEx(const char*, size_t, aclrtStream) { return ACL_SUCCESS; }

// The inner interface, which torch_npu reports its host calls to. Its header is none of those in the wheel that
// all versions have; the functions take and return plain values.
uint64_t MsprofGetHashId(const char*, size_t) { return 0; }
int32_t MsprofRegisterCallback(uint32_t, void*) { return 0; }
int32_t MsprofReportAdditionalInfo(uint32_t, const void*, uint32_t) { return 0; }
int32_t MsprofReportApi(uint32_t, const void*) { return 0; }
int32_t MsprofReportCompactInfo(uint32_t, const void*, uint32_t) { return 0; }
uint64_t MsprofSysCycleTime() { return 0; }

aclError aclmdlInitDump() { return ACL_SUCCESS; }
aclError aclmdlFinalizeDump() { return ACL_SUCCESS; }
aclError aclmdlSetDump(const char*) { return ACL_SUCCESS; }

}  // extern "C"
