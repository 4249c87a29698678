// A communicator: the ranks of one group on one host, and the memory that they share.
#pragma once

#include <hccl/hccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace emulator {

constexpr int kMaxRanks = 16;
constexpr size_t kSlot = 4UL << 20;     // what a rank shows the others at a time
constexpr size_t kLetter = 1UL << 20;   // what a rank sends one other at a time

// Of a call, what has to be the same on every rank.
struct Arguments {
  static constexpr uint32_t kNone = ~0U;
  uint64_t count = 0;
  uint32_t type = kNone;
  uint32_t op = kNone;
  uint32_t root = kNone;
};

// Lives in shared memory. Atomics of 32 bits are lock-free on every machine that torch_npu has a wheel for.
struct Member {
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> started;  // in the kernel's clock: a process number can be used again
  std::atomic<uint32_t> left;     // it destroyed its communicator
  std::atomic<uint32_t> waits;    // it is in a call of this group, and waits for others
  char call[32];                  // its last call in this group
  Arguments arguments;            // of it
  char place[160];                // where the program made it, if that is known
  std::atomic<int32_t> device;    // without ASCEND_RT_VISIBLE_DEVICES; -1 where it has chosen none
  uint64_t machine;               // ranks of several launches are on several machines
};
struct Letter {
  std::atomic<uint32_t> full;
  uint32_t size;
  char data[kLetter];
};
struct Shared {
  std::atomic<uint32_t> arrived;
  std::atomic<uint32_t> generation;  // of the barrier; waited for with a futex
  std::atomic<uint32_t> posted;      // counts what happens to letters; waited for with a futex
  std::atomic<uint32_t> broken;      // 1 + the rank that is gone: nobody waits any longer
  std::atomic<uint32_t> differing;   // the ranks are in different collectives, and none can go on
  std::atomic<uint32_t> repeated;    // 1 + a rank that two processes say that they are
  Member members[kMaxRanks];
};

class Group {
 public:
  // Joins rank `rank` of `size` to the group that `file` belongs to, and waits for the others.
  static HcclResult join(int file, const std::string& name, int size, int rank, Group** group);
  ~Group();

  int size() const { return size_; }
  int rank() const { return rank_; }
  const std::string& name() const { return name_; }
  char* slot(int rank) const { return slots_ + static_cast<size_t>(rank) * kSlot; }
  char* result() const { return slots_ + static_cast<size_t>(size_) * kSlot; }
  Letter& letter(int from, int to) const { return letters_[from * size_ + to]; }

  HcclResult barrier();
  void post();
  // Calls `progress` until it says that all is done; sleeps while it does nothing and nobody posts.
  enum class Step { kDone, kMoved, kNothing };
  HcclResult until_done(const std::function<Step()>& progress);

 private:
  Group() = default;
  // Waits while `word` is `value`. Not for longer than `seconds`, nor for ranks that are no longer there.
  HcclResult wait(std::atomic<uint32_t>& word, uint32_t value, double until);
  HcclResult wait_for_change(std::atomic<uint32_t>& word, uint32_t value, double until);
  HcclResult meet();
  void note_call() const;
  int missing_rank() const;
  HcclResult gone(int rank) const;
  HcclResult late() const;
  // A collective of one rank meets another kind, or other arguments, of a second one.
  bool calls_differ() const;
  HcclResult differing() const;
  HcclResult repeated() const;
  // HCCL makes links when a collective is first called in a group.
  bool linked() const { return linked_.count(shared_->members[rank_].call) != 0; }
  double patience() const;
  std::string call_of(int rank) const;
  // Two ranks on one NPU would wait for each other: HCCL does not take them.
  HcclResult check_devices() const;

  Shared* shared_ = nullptr;
  char* slots_ = nullptr;
  Letter* letters_ = nullptr;
  size_t length_ = 0;
  int size_ = 0;
  int rank_ = 0;
  double patience_ = 0;  // seconds
  std::set<std::string> linked_;  // calls that all ranks have been in
  std::string name_;
};

// The HCCL function that this thread is in, for what is said of ranks that wait. `arguments` are compared with those of
// the other ranks. And the place in the program.
void enter(const char* function, const Arguments& arguments = {});
void stand_at(const char* place);

// The state of a process: 0 if it is gone or dead, else when it started.
uint64_t process_start(int pid);

}  // namespace emulator
