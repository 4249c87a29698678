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

#include "hccl_reduce.h"
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
thread_local Arguments current_arguments;
thread_local std::string current_place_of_call;

std::string on_process(const Member& member) { return " (process " + std::to_string(member.pid) + ")"; }

// "" where they are the same.
std::string differing_argument(const Arguments& one, const Arguments& other) {
  const auto differs = [](const char* name, uint64_t local, uint64_t remote) {
    return std::string("parameter ") + name + " is " + std::to_string(local) + " on the local rank and " +
           std::to_string(remote) + " on the remote rank.";
  };
  if (one.count != other.count) return differs("count", one.count, other.count);
  if (one.type != other.type) return differs("dataType", one.type, other.type);
  if (one.op != other.op) return differs("op", one.op, other.op);
  return one.root != other.root ? differs("root", one.root, other.root) : "";
}

size_t page_rounded(size_t size) { return (size + 4095) / 4096 * 4096; }

}  // namespace

void enter(const char* function, const Arguments& arguments) {
  current_call = function;
  current_arguments = arguments;
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
  // Of two processes that say that they are this rank, the second one has come.
  if (int32_t nobody = 0; !self.pid.compare_exchange_strong(nobody, getpid())) {
    group->shared_->repeated = static_cast<uint32_t>(rank) + 1;
    group->shared_->generation.fetch_add(1);
    wake_all(group->shared_->generation);
    const HcclResult result = group->repeated();
    munmap(memory, length);
    return result;
  }
  int32_t device = -1;
  self.device = aclrtGetDevice(&device) == ACL_SUCCESS && device >= 0 ? physical_device(device) : -1;
  self.machine = launch_number();
  self.started = process_start(getpid());

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
    if (other == rank_ || member.pid == 0 || member.started == 0) continue;
    if (member.left != 0 || process_start(member.pid) != member.started) return other;
  }
  return -1;
}

namespace {

// What HCCL says, and behind it what the emulator knows.
void explain_as(const char* code, const char* words, const std::string& known) {
  emulator::explain_as(code, words + (" (" + known + ")"));
}

constexpr const char* kNoNotify =
    "The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify "
    "record from remote rank [unknown].";
constexpr const char* kNoSocket =
    "Getting socket times out. Reason: The remote does not initiate a connect request because the collective "
    "communication operator is started too late or is not started by some NPU in the cluster.";
constexpr const char* kNotAll =
    "Failed to collect cluster information of the communicator based on rootInfo detection. Reason: Receiving message "
    "from the root node timed out.";

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
                     std::to_string(static_cast<long>(patience())) + " s in " + call_of(rank_);
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
    explain_as("EI0015", kNotAll, text);
  else if (linked())
    explain_as("EI0002", kNoNotify, text);
  else
    explain_as("EI0006", kNoSocket, text);
  return HCCL_E_TIMEOUT;
}

HcclResult Group::repeated() const {
  const int rank = static_cast<int>(shared_->repeated) - 1;
  const std::string text = "two processes of group " + name_ + " are rank " + std::to_string(rank) +
                           "; one is process " + std::to_string(shared_->members[rank].pid);
  if (rank_ == rank && shared_->members[rank].pid == getpid()) say("%s", text.c_str());
  explain_as("EI0015", kNotAll, text);
  return HCCL_E_PARA;
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
      explain_as("EJ0001",
                 "Failed to initialize the HCCP process. Reason: Maybe the last training process is running.", text);
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
  self.arguments = current_arguments;
}

std::string Group::call_of(int rank) const {
  const Member& member = shared_->members[rank];
  std::string text = member.call;
  const Arguments& its = member.arguments;
  if (its.count != 0)
    text += " of " + std::to_string(its.count * element_size(static_cast<HcclDataType>(its.type))) + " bytes";
  if (member.place[0] != '\0') text += std::string(" at ") + member.place;
  return text;
}

bool Group::calls_differ() const {
  const Member& first = shared_->members[0];
  for (int other = 1; other < size_; ++other) {
    const Member& member = shared_->members[other];
    if (std::strcmp(member.call, first.call) != 0 || !differing_argument(first.arguments, member.arguments).empty())
      return true;
  }
  return false;
}

double Group::patience() const { return patience_ == execution_timeout() && !linked() ? link_timeout() : patience_; }

// As HCCL says it where ranks tell each other their arguments; of other calls it has no link.
HcclResult Group::differing() const {
  std::string text = "the ranks of group " + name_ + " do not call the same collective";
  for (int rank = 0; rank < size_; ++rank)
    text += "; rank " + std::to_string(rank) + on_process(shared_->members[rank]) + " " + call_of(rank);
  if (rank_ == 0) say("%s", text.c_str());
  const Member& self = shared_->members[rank_];
  for (int rank = 0; rank < size_; ++rank) {
    const Member& other = shared_->members[rank];
    if (std::strcmp(self.call, other.call) != 0) {
      explain_as(linked() ? "EI0002" : "EI0006", linked() ? kNoNotify : kNoSocket, text);
      return HCCL_E_TIMEOUT;
    }
    if (const std::string differs = differing_argument(self.arguments, other.arguments); !differs.empty()) {
      const std::string operation = std::string("Hcom") + (self.call + std::strlen("Hccl"));
      explain_as("EI0005",
                 ("The parameters of operator " + operation + " are inconsistent between ranks, " + differs).c_str(), text);
      break;
    }
  }
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
  } else if (const auto result = wait(shared_->generation, generation, now() + patience()); result != HCCL_SUCCESS) {
    return result;
  }
  if (shared_->repeated != 0) return repeated();
  if (shared_->differing != 0) return differing();
  linked_.insert(shared_->members[rank_].call);
  return HCCL_SUCCESS;
}

void Group::post() {
  shared_->posted.fetch_add(1);
  wake_all(shared_->posted);
}

HcclResult Group::until_done(const std::function<Step()>& progress) {
  note_call();
  double until = now() + patience();
  while (true) {
    const uint32_t posted = shared_->posted;
    const Step step = progress();
    if (step == Step::kDone) {
      linked_.insert(shared_->members[rank_].call);
      return HCCL_SUCCESS;
    }
    if (step == Step::kMoved) {
      until = now() + patience_;
      continue;
    }
    if (const HcclResult result = wait(shared_->posted, posted, until); result != HCCL_SUCCESS)
      return result;
  }
}

}  // namespace emulator
