// Devices and contexts. A device is a number; its context is the address of an entry of a table.
#include "device.h"

#include <acl/acl.h>
#include <acl/acl_op_compiler.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "settings.h"

namespace {

thread_local int device = -1;
char contexts[emulator::kMaxDevices];
bool saturates = false;   // what goes beyond a dtype's numbers becomes its largest, and sets a flag
bool taken_over = false;  // by the hook of Python's start

// What a 910B2 has.
constexpr int64_t kCubeCores = 24;
constexpr int64_t kVectorCores = 48;
constexpr int64_t kL2Cache = 192L << 20;
// The release whose behaviour torch_npu is to expect: the oldest that has all of what it looks for by version.
constexpr const char* kCannVersion = "9.1.0";

}  // namespace

int emulator::current_device() { return device; }

extern "C" {

// The libraries alone compute nothing. Where they are found and the hook is not, say why, in place of the errors of
// operators that would follow.
aclError aclInit(const char*) {
  if (taken_over) return ACL_SUCCESS;
  const char* bootstrap = std::getenv("NPUMIGRATE_EMULATOR_BOOTSTRAP");
  const std::string text = std::string("this Python runs without the emulator, as its PYTHONPATH lacks ") +
                           (bootstrap == nullptr ? "the emulator's folder" : bootstrap) +
                           ": put the program's folders before it (PYTHONPATH=src:$PYTHONPATH), and start Python "
                           "without -E, -I and -S";
  emulator::say("%s", text.c_str());
  emulator::explain("npumigrate emulate: " + text);
  return ACL_ERROR_UNINITIALIZE;
}
void emulator_take_over() { taken_over = true; }
aclError aclFinalize() { return ACL_SUCCESS; }
const char* aclrtGetSocName() { return emulator::soc_name(); }
const char* aclGetRecentErrMsg() { return emulator::explanation(); }

void aclAppLog(aclLogLevel level, const char* function, const char*, uint32_t line, const char* format, ...) {
  static const bool wanted = std::getenv("NPUMIGRATE_EMULATOR_LOG") != nullptr;
  if (!wanted) return;
  va_list values;
  va_start(values, format);
  std::fprintf(stderr, "[torch_npu %d %s:%u] ", static_cast<int>(level), function, line);
  std::vfprintf(stderr, format, values);
  std::fputc('\n', stderr);
  va_end(values);
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  *count = emulator::device_count();
  return ACL_SUCCESS;
}

aclError aclrtSetDevice(int32_t wanted) {
  if (wanted < 0 || wanted >= emulator::device_count()) return ACL_ERROR_RT_INVALID_DEVICEID;
  emulator::use_devices();
  device = wanted;
  return ACL_SUCCESS;
}

aclError aclrtGetDevice(int32_t* current) {
  if (device < 0) return ACL_ERROR_RT_CONTEXT_NULL;
  *current = device;
  return ACL_SUCCESS;
}

aclError aclrtResetDevice(int32_t) { return ACL_SUCCESS; }

aclError aclrtGetCurrentContext(aclrtContext* context) {
  if (device < 0) return ACL_ERROR_RT_CONTEXT_NULL;
  *context = &contexts[device];
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  const auto* entry = static_cast<const char*>(context);
  if (entry < contexts || entry >= contexts + emulator::device_count()) return ACL_ERROR_RT_CONTEXT_NULL;
  device = static_cast<int>(entry - contexts);
  return ACL_SUCCESS;
}

aclError aclrtGetPrimaryCtxState(int32_t, uint32_t* flags, int32_t* active) {
  if (flags != nullptr) *flags = 0;
  if (active != nullptr) *active = 1;
  return ACL_SUCCESS;
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t user, int32_t* const logic) {
  *logic = user;
  return ACL_SUCCESS;
}

aclError aclrtDeviceCanAccessPeer(int32_t* can, int32_t one, int32_t other) {
  *can = one != other;
  return ACL_SUCCESS;
}
aclError aclrtDeviceEnablePeerAccess(int32_t, uint32_t) { return ACL_SUCCESS; }

aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  *pid = getpid();
  return ACL_SUCCESS;
}

aclError aclGetDeviceCapability(uint32_t, aclDeviceInfo info, int64_t* value) {
  switch (info) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      *value = kCubeCores;
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      *value = kVectorCores;
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE:
      *value = kL2Cache;
      return ACL_SUCCESS;
    default:
      return ACL_ERROR_INVALID_PARAM;
  }
}

aclError aclrtGetDeviceUtilizationRate(int32_t, aclrtUtilizationInfo* info) {
  std::memset(info, 0, sizeof *info);
  return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char*, char* version) {
  std::strcpy(version, kCannVersion);
  return ACL_SUCCESS;
}
aclError aclsysGetCANNVersion(aclCANNPackageName, aclCANNPackageVersion* version) {
  std::memset(version, 0, sizeof *version);
  std::strcpy(version->version, kCannVersion);
  return ACL_SUCCESS;
}

aclError aclrtGetLastError(aclrtLastErrLevel) { return ACL_SUCCESS; }
aclError aclrtPeekAtLastError(aclrtLastErrLevel) { return ACL_SUCCESS; }

// Options of the single-operator compiler and of the runtime: accepted, without a meaning here.
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  saturates = mode == ACL_RT_OVERFLOW_MODE_SATURATION;
  return ACL_SUCCESS;
}
bool emulator_saturates() { return saturates; }
aclError aclSetCompileopt(aclCompileOpt, const char*) { return ACL_SUCCESS; }
aclError aclrtCtxSetSysParamOpt(aclSysParamOpt, int64_t) { return ACL_SUCCESS; }
aclError aclrtSetSysParamOpt(aclSysParamOpt, int64_t) { return ACL_SUCCESS; }
aclError aclrtGetSysParamOpt(aclSysParamOpt, int64_t* value) {
  *value = 0;
  return ACL_SUCCESS;
}
aclError aclrtSetOpExecuteTimeOut(uint32_t) { return ACL_SUCCESS; }
aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actual) {
  *actual = timeout;
  return ACL_SUCCESS;
}
aclError aclrtSetOpWaitTimeout(uint32_t) { return ACL_SUCCESS; }

// The driver's own interface, which torch_npu asks for the number of devices before it uses one.
int drvGetDevNum(uint32_t* count) {
  *count = static_cast<uint32_t>(emulator::installed_devices());
  return 0;
}
// The profiler asks for its version: 0 says that there is none.
int halGetAPIVersion(int* version) {
  *version = 0;
  return 0;
}
int halGetDeviceInfo(uint32_t, int32_t, int32_t, int64_t* value) {
  *value = 0;
  return 0;
}

}  // extern "C"
