// What torch_npu holds as an HcclComm: a rank, in a group of processes or of this process's devices.
#pragma once

#include <memory>
#include <string>

#include "hccl_group.h"
#include "hccl_local.h"

namespace emulator {

struct Communicator {
  std::unique_ptr<Group> processes;
  std::shared_ptr<LocalGroup> devices;
  uint32_t rank = 0;
  uint32_t size = 0;
  std::string name;
};

inline Communicator* of(HcclComm handle) { return static_cast<Communicator*>(handle); }

// For the report: one more collective of this kind begins. Its arguments have to be the same on every rank.
void count_collective(const char* kind, size_t bytes, HcclComm handle, const Arguments& arguments = {});

}  // namespace emulator

extern "C" {
// {"HcclAllReduce": {"calls": 3, "bytes": 1024}, …} into `text`. Returns the room that it takes, with the final zero.
size_t emulator_collectives(char* text, size_t room);
int emulator_rank();  // -1 before a group of processes
// Called with the number of ranks once a group of several processes of this host exists.
void emulator_on_group(void (*function)(int ranks));
// Called as each collective begins. What it gives `emulator_collective_place` is said of ranks that wait.
void emulator_on_collective(void (*function)(const char* kind, const char* group, int size, int rank, uint64_t bytes));
void emulator_collective_place(const char* place);
}
