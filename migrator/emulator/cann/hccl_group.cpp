#include "hccl_group.h"

#include <acl/acl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "profiling.h"
#include "settings.h"

namespace emulator {
namespace {

constexpr double kLookAround = 0.2;  // seconds between two looks at whether the other ranks still live

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

uint32_t* address(std::atomic<uint32_t>& word) { return reinterpret_cast<uint32_t*>(&word); }

void sleep_while(std::atomic<uint32_t>& word, uint32_t value, double seconds) {
  timespec limit{static_cast<time_t>(seconds), static_cast<long>((seconds - static_cast<time_t>(seconds)) * 1e9)};
  syscall(SYS_futex, address(word), FUTEX_WAIT, value, &limit, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, address(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

thread_local const char* current_call = "the forming of the group";
thread_local size_t current_bytes = 0;
thread_local std::string current_place_of_call;

std::string on_process(const Member& member) { return " (process " + std::to_string(member.pid) + ")"; }

size_t page_rounded(size_t size) { return (size + 4095) / 4096 * 4096; }

}  // namespace

void enter(const char* function, size_t bytes) {
  current_call = function;
  current_bytes = bytes;
  current_place_of_call.clear();
}

void stand_at(const char* place) { current_place_of_call = place; }

uint64_t process_start(int pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  char text[1024];
  const size_t length = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[length] = '\0';
  // "pid (name) state ppid …": the name may hold anything, so go on from the last parenthesis.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == '\0') return 0;
  const char state = at[2];
  if (state == 'Z' || state == 'X') return 0;
  constexpr int kFieldsFromStateToStart = 19;
  at += 2;
  for (int field = 0; field < kFieldsFromStateToStart; ++field) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return 0;
    ++at;
  }
  return std::strtoull(at, nullptr, 10);
}

HcclResult Group::join(int file, const std::string& name, int size, int rank, Group** joined) {
  if (size < 1 || size > kMaxRanks) {
    say("a group of %d ranks: at most %d are emulated", size, kMaxRanks);
    return HCCL_E_NOT_SUPPORT;
  }
  if (rank < 0 || rank >= size) return HCCL_E_PARA;
  const auto ranks = static_cast<size_t>(size);
  const size_t head = page_rounded(sizeof(Shared));
  const size_t slots = (ranks + 1) * kSlot;
  const size_t length = head + slots + page_rounded(ranks * ranks * sizeof(Letter));
  if (ftruncate(file, static_cast<off_t>(length)) != 0) return HCCL_E_SYSCALL;
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return HCCL_E_MEMORY;

  auto* group = new Group;
  group->shared_ = static_cast<Shared*>(memory);
  group->slots_ = static_cast<char*>(memory) + head;
  group->letters_ = reinterpret_cast<Letter*>(group->slots_ + slots);
  group->length_ = length;
  group->size_ = size;
  group->rank_ = rank;
  group->name_ = name;
  Member& self = group->shared_->members[rank];
  int32_t device = -1;
  self.device = aclrtGetDevice(&device) == ACL_SUCCESS && device >= 0 ? physical_device(device) : -1;
  self.machine = launch_number();
  self.started = process_start(getpid());
  self.pid = getpid();

  group->patience_ = connect_timeout();
  enter("the forming of the group");
  HcclResult result = group->barrier();
  if (result == HCCL_SUCCESS) result = group->check_devices();
  if (result != HCCL_SUCCESS) {
    delete group;
    return result;
  }
  group->patience_ = execution_timeout();
  *joined = group;
  return HCCL_SUCCESS;
}

Group::~Group() {
  shared_->members[rank_].left = 1;
  post();
  wake_all(shared_->generation);
  munmap(shared_, length_);
}

// A rank that has not joined yet is not missing: it may still come.
int Group::missing_rank() const {
  for (int other = 0; other < size_; ++other) {
    Member& member = shared_->members[other];
    if (other == rank_ || member.pid == 0) continue;
    if (member.left != 0 || process_start(member.pid) != member.started) return other;
  }
  return -1;
}

namespace {

// The error's text in CANN's own form, so that a program, or its log, is read as one of real NPUs.
void explain_as(const char* code, const char* words, const std::string& reason) {
  explain(std::string(code) + ": [PID: " + std::to_string(getpid()) + "] " + words + " Reason: " + reason);
}

constexpr const char* kNoNotify = "The wait execution of the Notify register times out.";

}  // namespace

HcclResult Group::gone(int rank) const {
  const std::string text = "rank " + std::to_string(rank) + on_process(shared_->members[rank]) + " of group " +
                           name_ + " has gone; its peers end: rank " + std::to_string(rank_) + " waits in " +
                           call_of(rank_) + ", the last call of rank " + std::to_string(rank) + " was " +
                           call_of(rank);
  if (shared_->broken.exchange(static_cast<uint32_t>(rank) + 1) == 0) say("%s", text.c_str());
  explain_as("EI0002", kNoNotify, text);
  return HCCL_E_REMOTE;
}

HcclResult Group::late() const {
  bool forming = false;
  std::string text = "rank " + std::to_string(rank_) + " of group " + name_ + " has waited " +
                     std::to_string(static_cast<long>(patience_)) + " s in " + call_of(rank_);
  for (int other = 0; other < size_; ++other) {
    const Member& member = shared_->members[other];
    if (other == rank_) continue;
    text += "; rank " + std::to_string(other);
    if (member.pid == 0) {
      text += " has not come";
      forming = true;
    } else {
      text += on_process(member) + (member.waits != 0 ? " waits in " : " is in no call of the group, its last was ") +
              call_of(other);
    }
  }
  say("%s", text.c_str());
  if (forming)
    explain_as("EI0006", "Getting socket times out.", text);
  else
    explain_as("EI0002", kNoNotify, text);
  return HCCL_E_TIMEOUT;
}

HcclResult Group::check_devices() const {
  for (int one = 0; one < size_; ++one)
    for (int other = one + 1; other < size_; ++other) {
      const Member& first = shared_->members[one];
      const Member& second = shared_->members[other];
      if (first.device < 0 || first.device != second.device || first.machine != second.machine) continue;
      const std::string text = "ranks " + std::to_string(one) + on_process(first) + " and " + std::to_string(other) +
                               on_process(second) + " of group " + name_ + " are both on NPU " +
                               std::to_string(first.device) +
                               ": call torch.npu.set_device(local_rank) before the first collective";
      if (rank_ == one) say("%s", text.c_str());
      explain_as("EJ0001", "Failed to initialize the HCCP process.", text);
      return HCCL_E_PARA;
    }
  return HCCL_SUCCESS;
}

HcclResult Group::wait(std::atomic<uint32_t>& word, uint32_t value, double until) {
  shared_->members[rank_].waits = 1;
  const HcclResult result = wait_for_change(word, value, until);
  shared_->members[rank_].waits = 0;
  return result;
}

HcclResult Group::wait_for_change(std::atomic<uint32_t>& word, uint32_t value, double until) {
  while (word == value) {
    if (shared_->broken != 0) return gone(static_cast<int>(shared_->broken) - 1);
    sleep_while(word, value, kLookAround);
    if (word != value) break;
    if (const int rank = missing_rank(); rank >= 0) {
      if (word != value) break;  // it did its part before it went
      const HcclResult result = gone(rank);
      wake_all(shared_->generation);
      wake_all(shared_->posted);
      return result;
    }
    if (now() > until) return late();
  }
  return HCCL_SUCCESS;
}

void Group::note_call() const {
  Member& self = shared_->members[rank_];
  std::snprintf(self.call, sizeof self.call, "%s", current_call);
  std::snprintf(self.place, sizeof self.place, "%s", current_place_of_call.c_str());
  self.bytes = current_bytes;
}

std::string Group::call_of(int rank) const {
  const Member& member = shared_->members[rank];
  std::string text = member.call;
  if (member.bytes != 0) text += " of " + std::to_string(member.bytes) + " bytes";
  if (member.place[0] != '\0') text += std::string(" at ") + member.place;
  return text;
}

bool Group::calls_differ() const {
  const Member& first = shared_->members[0];
  for (int other = 1; other < size_; ++other) {
    const Member& member = shared_->members[other];
    if (std::strcmp(member.call, first.call) != 0 || member.bytes != first.bytes) return true;
  }
  return false;
}

HcclResult Group::differing() const {
  std::string text = "the ranks of group " + name_ + " do not call the same collective";
  for (int rank = 0; rank < size_; ++rank)
    text += "; rank " + std::to_string(rank) + on_process(shared_->members[rank]) + " " + call_of(rank);
  if (rank_ == 0) say("%s", text.c_str());
  explain_as("EI0005", "The arguments for collective communication are inconsistent between ranks.", text);
  return HCCL_E_PARA;
}

HcclResult Group::barrier() {
  const uint64_t begun = profile_time();
  const HcclResult result = meet();
  if (begun != 0) profile_task(("hcom_" + std::string(shared_->members[rank_].call) + "@" + name_).c_str(), "", "", begun);
  return result;
}

HcclResult Group::meet() {
  note_call();
  const uint32_t generation = shared_->generation;
  if (shared_->arrived.fetch_add(1) + 1 == static_cast<uint32_t>(size_)) {
    shared_->arrived = 0;
    if (calls_differ()) shared_->differing = 1;
    shared_->generation.fetch_add(1);
    wake_all(shared_->generation);
    return shared_->differing != 0 ? differing() : HCCL_SUCCESS;
  }
  const HcclResult result = wait(shared_->generation, generation, now() + patience_);
  return result == HCCL_SUCCESS && shared_->differing != 0 ? differing() : result;
}

void Group::post() {
  shared_->posted.fetch_add(1);
  wake_all(shared_->posted);
}

HcclResult Group::until_done(const std::function<Step()>& progress) {
  note_call();
  double until = now() + patience_;
  while (true) {
    const uint32_t posted = shared_->posted;
    const Step step = progress();
    if (step == Step::kDone) return HCCL_SUCCESS;
    if (step == Step::kMoved) {
      until = now() + patience_;
      continue;
    }
    if (const HcclResult result = wait(shared_->posted, posted, until); result != HCCL_SUCCESS)
      return result;
  }
}

}  // namespace emulator
