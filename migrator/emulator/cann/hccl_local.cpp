#include "hccl_local.h"

#include <algorithm>
#include <cstring>

#include "hccl_reduce.h"

namespace emulator {

HcclResult LocalGroup::call(size_t rank, const Call& call) {
  const std::lock_guard<std::mutex> lock(guard_);
  waiting_[rank].push_back(call);
  if (std::any_of(waiting_.begin(), waiting_.end(), [](const auto& queue) { return queue.empty(); }))
    return HCCL_SUCCESS;
  std::vector<Call> calls;
  for (auto& queue : waiting_) {
    calls.push_back(queue.front());
    queue.pop_front();
  }
  return run(calls);
}

HcclResult LocalGroup::run(const std::vector<Call>& calls) {
  const Call& first = calls[0];
  const size_t bytes = first.count * element_size(first.type);
  std::vector<const char*> sent;
  for (const Call& call : calls) {
    if (call.kind != first.kind || call.count != first.count || call.type != first.type) return HCCL_E_PARA;
    sent.push_back(call.send);
  }
  switch (first.kind) {
    case Call::Kind::kBroadcast:
      for (const Call& call : calls) std::memmove(call.receive, calls[first.root].send, bytes);
      return HCCL_SUCCESS;
    case Call::Kind::kReduce:
      return reduce(sent, calls[first.root].receive, first.count, first.type, first.op);
    case Call::Kind::kAllReduce: {
      const HcclResult result = reduce(sent, first.receive, first.count, first.type, first.op);
      for (const Call& call : calls) std::memmove(call.receive, first.receive, bytes);
      return result;
    }
    case Call::Kind::kAllGather:
      for (const Call& call : calls)
        for (size_t rank = 0; rank < sent.size(); ++rank) std::memmove(call.receive + rank * bytes, sent[rank], bytes);
      return HCCL_SUCCESS;
    case Call::Kind::kReduceScatter: {
      for (size_t rank = 0; rank < calls.size(); ++rank) {
        std::vector<const char*> parts;
        for (const char* buffer : sent) parts.push_back(buffer + rank * bytes);
        if (const auto result = reduce(parts, calls[rank].receive, first.count, first.type, first.op);
            result != HCCL_SUCCESS)
          return result;
      }
      return HCCL_SUCCESS;
    }
  }
  return HCCL_E_INTERNAL;
}

}  // namespace emulator
