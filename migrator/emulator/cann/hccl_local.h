// A group whose ranks are devices of one process, as DataParallel uses it (HcclCommInitAll).
#pragma once

#include <hccl/hccl.h>

#include <deque>
#include <mutex>
#include <vector>

namespace emulator {

struct Call {
  enum class Kind { kBroadcast, kAllReduce, kReduce, kAllGather, kReduceScatter } kind;
  char* send;
  char* receive;
  size_t count;  // elements: of the send buffer, for reduce-scatter of the receive buffer
  HcclDataType type;
  HcclReduceOp op;
  uint32_t root;
};

// One thread calls for rank 0, then for rank 1, and so on, so no call can wait for the others: it is put aside, and
// the last one does the work of all.
class LocalGroup {
 public:
  explicit LocalGroup(size_t size) : waiting_(size) {}
  size_t size() const { return waiting_.size(); }
  HcclResult call(size_t rank, const Call& call);

 private:
  HcclResult run(const std::vector<Call>& calls);
  std::mutex guard_;
  std::vector<std::deque<Call>> waiting_;
};

}  // namespace emulator
