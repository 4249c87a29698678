#include "memory.h"

#include <pthread.h>
#include <torch/version.h>
#include <torch_npu/csrc/core/npu/NPUCachingAllocator.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "phase.h"

#define HANDS_OUT_ITS_ALLOCATOR (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13)
#if HANDS_OUT_ITS_ALLOCATOR
#include <c10/core/CachingDeviceAllocator.h>
#endif

namespace emulator {
namespace {

struct Block {
  size_t size = 0;
  int place = -1;
  const char* what = "";
  size_t written = 0;  // the number of the last list of owners that has it
};

using Owners = std::map<std::pair<int, const char*>, std::pair<size_t, size_t>>;  // bytes, blocks

struct DeviceMemory {
  std::unordered_map<int64_t, Block> blocks;
  size_t now = 0;
  size_t reserved = 0;
  size_t most_reserved = 0;
  size_t least_at_step = ~0UL;
  std::array<size_t, 3> peaks{};
  size_t owned = 0;  // how much there was when `owners` was written
  size_t lists = 0;  // of owners, so far
  Owners owners;
};

std::mutex memory_guard;  // the allocator holds its own lock when it calls; this one is never held while it is asked
std::map<int, DeviceMemory> memories;

// Needs the lock. At a peak, but not for each byte that it grows by.
void write_owners(DeviceMemory& device) {
  device.owned = device.now;
  device.owners.clear();
  ++device.lists;
  for (auto& [address, block] : device.blocks) {
    block.written = device.lists;
    auto& [bytes, count] = device.owners[{block.place, block.what}];
    bytes += block.size;
    ++count;
  }
}

void note_allocation(const c10_npu::NPUCachingAllocator::TraceEntry& entry) {
  using Action = c10_npu::NPUCachingAllocator::TraceEntry::Action;
  const std::lock_guard<std::mutex> lock(memory_guard);
  DeviceMemory& device = memories[entry.device_];
  const auto size = static_cast<size_t>(entry.size_);
  switch (entry.action_) {
    case Action::ALLOC:
      device.blocks[entry.addr_] = {size, -1, ""};
      device.now += size;
      if (size_t& peak = device.peaks[static_cast<size_t>(phase_now())]; device.now > peak) peak = device.now;
      if (device.now > device.owned + device.owned / 32) write_owners(device);
      return;
    case Action::FREE_COMPLETED:
      if (const auto found = device.blocks.find(entry.addr_); found != device.blocks.end()) {
        device.now -= std::min(device.now, found->second.size);
        device.blocks.erase(found);
      }
      return;
    case Action::SEGMENT_ALLOC:
    case Action::SEGMENT_MAP:
      device.reserved += size;
      device.most_reserved = std::max(device.most_reserved, device.reserved);
      return;
    case Action::SEGMENT_FREE:
    case Action::SEGMENT_UNMAP:
      device.reserved -= std::min(device.reserved, size);
      return;
    default:
      return;
  }
}

}  // namespace

void name_memory(const void* data, int place, const char* what) {
  const std::lock_guard<std::mutex> lock(memory_guard);
  for (auto& [number, device] : memories) {
    const auto found = device.blocks.find(reinterpret_cast<int64_t>(data));
    if (found == device.blocks.end() || found->second.place >= 0) continue;
    found->second.place = place;
    found->second.what = what;
    if (found->second.written == device.lists) {  // the peak was written before the block had a name
      auto& [bytes, count] = device.owners[{-1, ""}];
      bytes -= std::min(bytes, found->second.size);
      count -= count > 0 ? 1 : 0;
      auto& [own, blocks] = device.owners[{place, what}];
      own += found->second.size;
      ++blocks;
    }
  }
}

void watch_memory() {
  static std::atomic<bool> watched{false};
  if (watched || !memory_wanted) return;
#if HANDS_OUT_ITS_ALLOCATOR
  auto* allocator =
      static_cast<c10_npu::NPUCachingAllocator::NPUAllocator*>(at::getDeviceAllocator(c10::DeviceType::PrivateUse1));
  if (allocator->initialized() && !watched.exchange(true)) allocator->attachAllocatorTraceTracker(&note_allocation);
#endif
}

void memory_step() {
  const std::lock_guard<std::mutex> lock(memory_guard);
  for (auto& [number, device] : memories) device.least_at_step = std::min(device.least_at_step, device.now);
}

void forget_memory_in_children() {
  pthread_atfork([] { memory_guard.lock(); }, [] { memory_guard.unlock(); },
                 [] {
                   memories.clear();
                   memory_guard.unlock();
                 });
}

std::string memory_as_json() {
  const std::lock_guard<std::mutex> lock(memory_guard);
  std::string json = "{";
  for (const auto& [number, device] : memories) {
    if (json.size() > 1) json += ", ";
    json += "\"" + std::to_string(number) + "\": {\"forward\": " + std::to_string(device.peaks[0]) +
            ", \"backward\": " + std::to_string(device.peaks[1]) +
            ", \"optimizer\": " + std::to_string(device.peaks[2]) +
            ", \"reserved\": " + std::to_string(device.most_reserved) + ", \"kept\": " +
            (device.least_at_step == ~0UL ? "null" : std::to_string(device.least_at_step)) + ", \"tensors\": [";
    const char* between = "";
    for (const auto& [owner, held] : device.owners) {
      if (held.first == 0) continue;
      json += between + ("{\"place\": " + std::to_string(owner.first)) + ", \"operator\": \"" + owner.second +
              "\", \"bytes\": " + std::to_string(held.first) + ", \"number\": " + std::to_string(held.second) + "}";
      between = ", ";
    }
    json += "]}";
  }
  return json + "}";
}

}  // namespace emulator
