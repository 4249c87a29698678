// Device memory: pages of the host, counted for the device that they belong to.
//
// Pages are reserved without being touched, so a 64 GiB device costs only what a program writes to.
#include <acl/acl.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "device.h"
#include "ledger.h"
#include "settings.h"

namespace {

struct Block {
  int device;
  size_t size;
};

std::mutex guard;
std::map<void*, Block> blocks;                // aclrtMalloc
std::map<void*, size_t> reserved;             // address ranges of expandable segments
std::map<void*, size_t> mapped;               // what of them has memory
std::map<std::string, int> exported;          // files, by the keys that other processes have
std::map<std::string, std::pair<void*, size_t>> imported;

int this_device() { return emulator::current_device() < 0 ? 0 : emulator::current_device(); }

void* pages(size_t size) {
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

// Pages that were never written to stay without memory.
bool move_into(int file, void* address, size_t size) {
  static const char nothing[4096] = {};
  if (ftruncate(file, static_cast<off_t>(size)) != 0) return false;
  void* copied = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (copied == MAP_FAILED) return false;
  const auto* from = static_cast<const char*>(address);
  for (size_t at = 0; at < size; at += sizeof nothing) {
    const size_t count = std::min(sizeof nothing, size - at);
    if (std::memcmp(from + at, nothing, count) != 0) std::memcpy(static_cast<char*>(copied) + at, from + at, count);
  }
  munmap(copied, size);
  return mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == address;
}

aclError copy(void* to, size_t room, const void* from, size_t count) {
  if (count > room) return ACL_ERROR_RT_PARAM_INVALID;
  std::memmove(to, from, count);
  return ACL_SUCCESS;
}

aclError fill(void* to, size_t room, int32_t value, size_t count) {
  if (count > room) return ACL_ERROR_RT_PARAM_INVALID;
  std::memset(to, value, count);
  return ACL_SUCCESS;
}

}  // namespace

extern "C" {

aclError aclrtMalloc(void** address, size_t size, aclrtMemMallocPolicy) {
  if (size == 0) size = 1;
  const std::lock_guard<std::mutex> lock(guard);
  const int device = this_device();
  if (!emulator::take(device, size)) return ACL_ERROR_RT_MEMORY_ALLOCATION;
  *address = pages(size);
  if (*address == nullptr) {
    emulator::give_back(device, size);
    return ACL_ERROR_RT_MEMORY_ALLOCATION;
  }
  blocks[*address] = {device, size};
  return ACL_SUCCESS;
}

aclError aclrtMallocAlign32(void** address, size_t size, aclrtMemMallocPolicy policy) {
  return aclrtMalloc(address, size, policy);
}

aclError aclrtFree(void* address) {
  if (address == nullptr) return ACL_SUCCESS;
  const std::lock_guard<std::mutex> lock(guard);
  const auto block = blocks.find(address);
  if (block == blocks.end()) return ACL_ERROR_RT_PARAM_INVALID;
  munmap(address, block->second.size);
  emulator::give_back(block->second.device, block->second.size);
  blocks.erase(block);
  return ACL_SUCCESS;
}

// Memory that other processes share: its pages move into a file without a name, which they reach through /proc while
// this process lives. The key is where that is.
aclError aclrtIpcMemGetExportKey(void* address, size_t size, char* key, size_t room, uint64_t) {
  const std::lock_guard<std::mutex> lock(guard);
  const auto block = blocks.find(address);
  if (block == blocks.end() || size > block->second.size) return ACL_ERROR_RT_PARAM_INVALID;
  const int file = memfd_create("npumigrate-npu", MFD_CLOEXEC);
  if (file < 0 || !move_into(file, address, block->second.size)) {
    if (file >= 0) close(file);
    return ACL_ERROR_RT_MEMORY_ALLOCATION;
  }
  std::memset(key, 0, room);
  std::snprintf(key, room, "%d %d %zu", getpid(), file, block->second.size);
  exported[key] = file;
  return ACL_SUCCESS;
}

aclError aclrtIpcMemSetImportPid(const char*, int32_t*, size_t) { return ACL_SUCCESS; }

aclError aclrtIpcMemImportByKey(void** address, const char* key, uint64_t) {
  int pid = 0, number = 0;
  size_t size = 0;
  if (std::sscanf(key, "%d %d %zu", &pid, &number, &size) != 3) return ACL_ERROR_RT_PARAM_INVALID;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, number);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return ACL_ERROR_RT_PARAM_INVALID;
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) return ACL_ERROR_RT_MEMORY_ALLOCATION;
  const std::lock_guard<std::mutex> lock(guard);
  imported[key] = {at, size};
  *address = at;
  return ACL_SUCCESS;
}

aclError aclrtIpcMemClose(const char* key) {
  const std::lock_guard<std::mutex> lock(guard);
  if (const auto other = imported.find(key); other != imported.end()) {
    munmap(other->second.first, other->second.second);
    imported.erase(other);
  } else if (const auto own = exported.find(key); own != exported.end()) {
    close(own->second);
    exported.erase(own);
  } else {
    return ACL_ERROR_RT_PARAM_INVALID;
  }
  return ACL_SUCCESS;
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  const std::lock_guard<std::mutex> lock(guard);
  *total = emulator::device_memory();
  *free = *total - emulator::memory_in_use(this_device());
  return ACL_SUCCESS;
}

// Pinned memory is memory: every page of the host can be reached.
aclError aclrtMallocHost(void** address, size_t size) {
  return posix_memalign(address, 64, size == 0 ? 1 : size) == 0 ? ACL_SUCCESS : ACL_ERROR_RT_MEMORY_ALLOCATION;
}
aclError aclrtFreeHost(void* address) {
  std::free(address);
  return ACL_SUCCESS;
}

aclError aclrtHostRegisterV2(void* address, uint64_t size, uint32_t) {
  return address == nullptr || size == 0 ? ACL_ERROR_RT_PARAM_INVALID : ACL_SUCCESS;
}
aclError aclrtHostUnregister(void* address) {
  return address == nullptr ? ACL_ERROR_RT_PARAM_INVALID : ACL_SUCCESS;
}

aclError aclrtMemcpy(void* to, size_t room, const void* from, size_t count, aclrtMemcpyKind) {
  return copy(to, room, from, count);
}
aclError aclrtMemcpyAsync(void* to, size_t room, const void* from, size_t count, aclrtMemcpyKind, aclrtStream) {
  return copy(to, room, from, count);
}
aclError aclrtMemcpyAsyncWithCondition(void* to, size_t room, const void* from, size_t count, aclrtMemcpyKind,
                                       aclrtStream) {
  return copy(to, room, from, count);
}
aclError aclrtMemset(void* to, size_t room, int32_t value, size_t count) { return fill(to, room, value, count); }
aclError aclrtMemsetAsync(void* to, size_t room, int32_t value, size_t count, aclrtStream) {
  return fill(to, room, value, count);
}

// Expandable segments: a range of addresses is reserved first and gets memory piece by piece.
aclError aclrtReserveMemAddress(void** address, size_t size, size_t, void*, uint64_t) {
  *address = pages(size);
  if (*address == nullptr) return ACL_ERROR_RT_MEMORY_ALLOCATION;
  const std::lock_guard<std::mutex> lock(guard);
  reserved[*address] = size;
  return ACL_SUCCESS;
}

aclError aclrtReleaseMemAddress(void* address) {
  const std::lock_guard<std::mutex> lock(guard);
  const auto range = reserved.find(address);
  if (range == reserved.end()) return ACL_ERROR_RT_PARAM_INVALID;
  munmap(address, range->second);
  reserved.erase(range);
  return ACL_SUCCESS;
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size, const aclrtPhysicalMemProp*, uint64_t) {
  const std::lock_guard<std::mutex> lock(guard);
  const int device = this_device();
  if (!emulator::take(device, size)) return ACL_ERROR_RT_MEMORY_ALLOCATION;
  *handle = reinterpret_cast<aclrtDrvMemHandle>(new Block{device, size});
  return ACL_SUCCESS;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  const std::lock_guard<std::mutex> lock(guard);
  auto* block = reinterpret_cast<Block*>(handle);
  emulator::give_back(block->device, block->size);
  delete block;
  return ACL_SUCCESS;
}

aclError aclrtMapMem(void* address, size_t size, size_t, aclrtDrvMemHandle, uint64_t) {
  const std::lock_guard<std::mutex> lock(guard);
  mapped[address] = size;
  return ACL_SUCCESS;
}

aclError aclrtUnmapMem(void* address) {
  const std::lock_guard<std::mutex> lock(guard);
  const auto piece = mapped.find(address);
  if (piece == mapped.end()) return ACL_ERROR_RT_PARAM_INVALID;
  madvise(address, piece->second, MADV_DONTNEED);
  mapped.erase(piece);
  return ACL_SUCCESS;
}

}  // extern "C"
