// Groups: made, joined, asked and destroyed.
//
// The ranks of a group share the memory of a file without a name (memfd), which the root rank opens and the others
// reach through /proc. Nothing is left behind, however a rank ends.
#include "hccl_communicator.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "settings.h"

namespace {

struct Count {
  size_t calls = 0;
  size_t bytes = 0;
};
std::mutex guard;
std::map<std::string, Count> counts;
void (*group_observer)(int) = nullptr;
std::atomic<void (*)(const char*, const char*, int, int, uint64_t)> collective_observer{nullptr};
// Of the largest group of processes that this one was in.
std::atomic<uint32_t> largest_group{0};
std::atomic<int> rank_in_largest{-1};

// A forked process begins anew.
const int in_children = pthread_atfork([] { guard.lock(); }, [] { guard.unlock(); },
                                       [] {
                                         counts.clear();
                                         largest_group = 0;
                                         rank_in_largest = -1;
                                         guard.unlock();
                                       });

struct Root {
  int pid;
  int file;
  unsigned long started;
};

bool parse(const HcclRootInfo* info, Root& root) {
  return std::sscanf(info->internal, "npumigrate %d %d %lu", &root.pid, &root.file, &root.started) == 3;
}

int open_shared(const Root& root) {
  if (root.pid == getpid()) return root.file;
  if (emulator::process_start(root.pid) != root.started) {
    emulator::say("the root rank, process %d, is not on this host or has ended", root.pid);
    return -1;
  }
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", root.pid, root.file);
  return open(path, O_RDWR | O_CLOEXEC);
}

}  // namespace

void emulator::count_collective(const char* kind, size_t bytes, HcclComm handle, const Arguments& arguments) {
  enter(kind, arguments);
  {
    const std::lock_guard<std::mutex> lock(guard);
    Count& count = counts[kind];
    ++count.calls;
    count.bytes += bytes;
  }
  if (const auto observer = collective_observer.load()) {
    const Communicator* self = of(handle);
    observer(kind, self->name.c_str(), static_cast<int>(self->size), static_cast<int>(self->rank), bytes);
  }
}

extern "C" {

size_t emulator_collectives(char* text, size_t room) {
  const std::lock_guard<std::mutex> lock(guard);
  std::string json = "{";
  for (const auto& [kind, count] : counts) {
    if (json.size() > 1) json += ", ";
    json += "\"" + kind + "\": {\"calls\": " + std::to_string(count.calls) +
            ", \"bytes\": " + std::to_string(count.bytes) + "}";
  }
  json += "}";
  std::snprintf(text, room, "%s", json.c_str());
  return json.size() + 1;
}

int emulator_rank() { return rank_in_largest; }

void emulator_on_group(void (*function)(int)) { group_observer = function; }

void emulator_on_collective(void (*function)(const char*, const char*, int, int, uint64_t)) {
  collective_observer = function;
}

void emulator_collective_place(const char* place) { emulator::stand_at(place); }

HcclResult HcclGetRootInfo(HcclRootInfo* info) {
  const int file = memfd_create("npumigrate-hccl", MFD_CLOEXEC);
  if (file < 0) return HCCL_E_SYSCALL;
  std::memset(info, 0, sizeof *info);
  std::snprintf(info->internal, sizeof info->internal, "npumigrate %d %d %lu", getpid(), file,
                static_cast<unsigned long>(emulator::process_start(getpid())));
  return HCCL_SUCCESS;
}

HcclResult HcclCommInitRootInfo(uint32_t ranks, const HcclRootInfo* info, uint32_t rank, HcclComm* handle) {
  Root root{};
  if (!parse(info, root)) return HCCL_E_PARA;
  const int file = open_shared(root);
  if (file < 0) return HCCL_E_TCP_CONNECT;
  const std::string name = "hccl_" + std::to_string(root.pid) + "_" + std::to_string(root.file);
  emulator::Group* group = nullptr;
  const HcclResult result =
      emulator::Group::join(file, name, static_cast<int>(ranks), static_cast<int>(rank), &group);
  close(file);  // the memory stays, and after the first barrier everybody has it
  if (result != HCCL_SUCCESS) return result;
  auto* made = new emulator::Communicator;
  made->processes.reset(group);
  made->rank = rank;
  made->size = ranks;
  made->name = name;
  *handle = made;
  if (ranks > largest_group) {
    largest_group = ranks;
    rank_in_largest = static_cast<int>(rank);
  }
  if (group_observer != nullptr && ranks > 1) group_observer(static_cast<int>(ranks));
  return HCCL_SUCCESS;
}

HcclResult HcclCommInitRootInfoConfig(uint32_t ranks, const HcclRootInfo* info, uint32_t rank,
                                      const HcclCommConfig*, HcclComm* handle) {
  return HcclCommInitRootInfo(ranks, info, rank, handle);
}

HcclResult HcclCommInitAll(uint32_t ranks, int32_t*, HcclComm* handles) {
  static std::atomic<int> made{0};
  const auto devices = std::make_shared<emulator::LocalGroup>(ranks);
  const std::string name = "hccl_local_" + std::to_string(++made);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    auto* communicator = new emulator::Communicator;
    communicator->devices = devices;
    communicator->rank = rank;
    communicator->size = ranks;
    communicator->name = name;
    handles[rank] = communicator;
  }
  return HCCL_SUCCESS;
}

HcclResult HcclCommDestroy(HcclComm handle) {
  delete emulator::of(handle);
  return HCCL_SUCCESS;
}

HcclResult HcclGetCommAsyncError(HcclComm, HcclResult* error) {
  *error = HCCL_SUCCESS;  // errors come from the calls themselves
  return HCCL_SUCCESS;
}
HcclResult HcclGetCommName(HcclComm handle, char* name) {
  std::snprintf(name, COMM_NAME_MAX_LENGTH, "%s", emulator::of(handle)->name.c_str());
  return HCCL_SUCCESS;
}

HcclResult HcclSetConfig(HcclConfig, HcclConfigValue) { return HCCL_SUCCESS; }

}  // extern "C"
