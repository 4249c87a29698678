#include "errors.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "aliases.h"

std::string emulator::npu_error(const char* kind) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char time[32];
  std::strftime(time, sizeof time, "%Y-%m-%d-%H:%M:%S", &local);
  const char* rank = std::getenv("RANK");
  char text[160];
  std::snprintf(text, sizeof text, "\n[ERROR] %s (PID:%d, Device:%d, RankID:%s) %s", time, getpid(),
                c10::impl::VirtualGuardImpl(kNPU).getDevice().index(), rank == nullptr ? "-1" : rank, kind);
  return text;
}
