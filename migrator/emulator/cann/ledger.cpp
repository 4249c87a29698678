#include "ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "hccl_group.h"
#include "settings.h"

namespace emulator {
namespace {

constexpr size_t kProcesses = 1024;

// What one process has taken. A page that nobody writes to takes no memory.
struct Account {
  int32_t pid;
  uint64_t started;  // a process number can be used again
  uint64_t used[kMaxDevices];
};

// A file without a name that npumigrate holds open. Where there is none (any longer), each process counts alone.
class Ledger {
 public:
  Ledger() {
    const char* path = std::getenv("NPUMIGRATE_EMULATOR_LEDGER");
    constexpr size_t size = kProcesses * sizeof(Account);
    if (path != nullptr) file_ = open(path, O_RDWR | O_CLOEXEC);
    if (file_ >= 0 && ftruncate(file_, size) != 0) file_ = -1;
    const int flags = file_ < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, file_, 0);
    accounts_ = memory == MAP_FAILED ? nullptr : static_cast<Account*>(memory);
  }

  // The system opens the lock of a process that dies.
  void lock() const { flock(file_, LOCK_EX); }
  void unlock() const { flock(file_, LOCK_UN); }

  size_t used(int device) {
    size_t total = 0;
    for (size_t i = 0; accounts_ != nullptr && i < kProcesses; ++i) {
      Account& account = accounts_[i];
      if (account.pid == 0) break;
      if (account.used[device] == 0) continue;
      if (account.pid != getpid() && process_start(account.pid) != account.started)
        account.used[device] = 0;  // it has died, and its memory with it
      total += account.used[device];
    }
    return total;
  }

  // The account of this process; a forked one gets its own.
  Account* mine() {
    if (mine_ != nullptr && mine_->pid == getpid()) return mine_;
    mine_ = nullptr;
    for (size_t i = 0; accounts_ != nullptr && i < kProcesses && mine_ == nullptr; ++i) {
      Account& account = accounts_[i];
      if (account.pid == 0 || process_start(account.pid) != account.started) mine_ = &account;
    }
    if (mine_ != nullptr) {
      *mine_ = {};
      mine_->pid = getpid();
      mine_->started = process_start(getpid());
    }
    return mine_;
  }

 private:
  int file_ = -1;
  Account* accounts_ = nullptr;
  Account* mine_ = nullptr;
};

Ledger& ledger() {
  static auto* only = new Ledger;
  return *only;
}

class Locked {
 public:
  Locked() { ledger().lock(); }
  ~Locked() { ledger().unlock(); }
};

}  // namespace

bool take(int device, size_t size) {
  const Locked locked;
  const int number = physical_device(device);
  Account* mine = ledger().mine();
  const size_t used = ledger().used(number);
  if (used > device_memory() || size > device_memory() - used) return false;
  if (mine != nullptr) mine->used[number] += size;
  return true;
}

void give_back(int device, size_t size) {
  const Locked locked;
  const int number = physical_device(device);
  if (Account* mine = ledger().mine(); mine != nullptr)
    mine->used[number] -= std::min<uint64_t>(size, mine->used[number]);
}

size_t memory_in_use(int device) {
  const Locked locked;
  return std::min(ledger().used(physical_device(device)), device_memory());
}

}  // namespace emulator
