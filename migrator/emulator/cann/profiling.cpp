// Profiling: what the emulated NPUs compute while it is on, in a file that msprof.py makes CANN's tables of. The times
// are the CPU's. Dumping starts and ends without an error, and records nothing.
#include <acl/acl.h>
#include <acl/acl_prof.h>
#if __has_include(<acl/acl_msprof.h>)
#include <acl/acl_msprof.h>
#endif

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>

#include "device.h"
#include "parameters.h"
#include "profiling.h"
#include "settings.h"

namespace {

char config;  // an address to hand out
std::mutex guard;
std::string folder;  // torch_npu's, of the profile that comes next
std::FILE* tasks = nullptr;
std::atomic<bool> on{false};
uint64_t epoch = 0;  // at zero of the clock of tasks, in nanoseconds

uint64_t clock_time(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000U + static_cast<uint64_t>(time.tv_nsec);
}

// A folder as CANN makes it, with what torch_npu reads to bring the clocks together.
void begin() {
  char stamp[32];
  const time_t seconds = time(nullptr);
  tm local{};
  strftime(stamp, sizeof stamp, "%Y%m%d%H%M%S", localtime_r(&seconds, &local));
  const std::string made = folder + "/PROF_000001_" + stamp + "000_EMULATEDONTHECPU";
  for (const std::string& path : {made, made + "/host", made + "/device_" + std::to_string(emulator::current_device())})
    mkdir(path.c_str(), 0750);
  const uint64_t raw = clock_time(CLOCK_MONOTONIC_RAW), real = clock_time(CLOCK_REALTIME);
  epoch = real - raw;
  if (std::FILE* info = std::fopen((made + "/host/start_info").c_str(), "w")) {
    std::fprintf(info, "{'collectionTimeBegin': '%lu.%03lu', 'clockMonotonicRaw': '%lu'}\n", real / 1000, real % 1000, raw);
    std::fclose(info);
  }
  tasks = std::fopen((made + "/host/emulated_tasks.txt").c_str(), "w");
  on = tasks != nullptr;
}

void end() {
  on = false;
  if (tasks != nullptr) std::fclose(tasks);
  tasks = nullptr;
}

}  // namespace

uint64_t emulator::profile_time() { return on ? clock_time(CLOCK_MONOTONIC_RAW) : 0; }

void emulator::profile_task(const char* name, const char* shapes, const char* types, uint64_t start) {
  const uint64_t done = clock_time(CLOCK_MONOTONIC_RAW);
  const std::lock_guard<std::mutex> lock(guard);
  if (tasks == nullptr || start == 0) return;
  std::fprintf(tasks, "%s\t%s\t%s\t%d\t%d\t%lu\t%lu\n", name, shapes, types, emulator::current_device(), gettid(),
               start + epoch, done + epoch);
}

extern "C" {

uint64_t emulator_profile_time() { return emulator::profile_time(); }
void emulator_profile_task(const char* name, const char* shapes, const char* types, uint64_t start) {
  emulator::profile_task(name, shapes, types, start);
}

aclError aclprofInit(const char* path, size_t length) {
  const std::lock_guard<std::mutex> lock(guard);
  folder.assign(path, length);
  return ACL_SUCCESS;
}
aclError aclprofFinalize() { return ACL_SUCCESS; }
aclError aclprofStart(const aclprofConfig*) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) emulator::say("profiles have the CPU's times: there is no NPU");
  const std::lock_guard<std::mutex> lock(guard);
  end();
  if (!folder.empty()) begin();
  return ACL_SUCCESS;
}
aclError aclprofStop(const aclprofConfig*) {
  const std::lock_guard<std::mutex> lock(guard);
  end();
  return ACL_SUCCESS;
}
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
