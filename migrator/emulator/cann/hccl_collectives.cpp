// The collectives: each rank shows a piece of its buffer, all wait, each takes what it needs, all wait again.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "hccl_communicator.h"
#include "hccl_reduce.h"
#include "parameters.h"
#include "settings.h"

namespace {

using emulator::Call;
using emulator::Communicator;
using emulator::element_size;
using emulator::Group;
using emulator::kSlot;
using emulator::of;
using emulator::Parameter;

// `take(offset, size)` is called with each piece while all slots hold it. `from` may be null: nothing to show.
template <class Take>
HcclResult exchange(Group& group, const char* from, size_t bytes, Take take) {
  for (size_t offset = 0; offset < bytes; offset += kSlot) {
    const size_t size = std::min(kSlot, bytes - offset);
    if (from != nullptr) std::memcpy(group.slot(group.rank()), from + offset, size);
    if (const auto result = group.barrier(); result != HCCL_SUCCESS) return result;
    if (const HcclResult result = take(offset, size); result != HCCL_SUCCESS) return result;
    if (const auto result = group.barrier(); result != HCCL_SUCCESS) return result;
  }
  return HCCL_SUCCESS;
}

std::vector<const char*> all_slots(const Group& group, size_t offset = 0) {
  std::vector<const char*> slots;
  for (int rank = 0; rank < group.size(); ++rank) slots.push_back(group.slot(rank) + offset);
  return slots;
}

// Each rank reduces its share of the elements for all.
HcclResult all_reduce(Group& group, const char* from, char* to, size_t count, HcclDataType type, HcclReduceOp op) {
  const size_t width = element_size(type);
  const auto ranks = static_cast<size_t>(group.size());
  const auto rank = static_cast<size_t>(group.rank());
  const size_t bytes = count * width;
  for (size_t offset = 0; offset < bytes; offset += kSlot) {
    const size_t elements = std::min(kSlot, bytes - offset) / width;
    std::memcpy(group.slot(group.rank()), from + offset, elements * width);
    if (const auto result = group.barrier(); result != HCCL_SUCCESS) return result;
    const size_t first = elements * rank / ranks;
    const size_t end = elements * (rank + 1) / ranks;
    const auto reduced = emulator::reduce(all_slots(group, first * width), group.result() + first * width,
                                          end - first, type, op);
    if (reduced != HCCL_SUCCESS) return reduced;  // for every rank alike: it depends on the type
    if (const auto result = group.barrier(); result != HCCL_SUCCESS) return result;
    std::memcpy(to + offset, group.result(), elements * width);
  }
  return HCCL_SUCCESS;
}

constexpr uint32_t kNone = emulator::Arguments::kNone;

// Each begins with what HCCL checks of a rank's arguments.
HcclResult begin(const char* kind, uint64_t elements, HcclDataType type, HcclComm handle, uint32_t root = kNone,
                 HcclReduceOp op = HCCL_REDUCE_RESERVED) {
  if (root != kNone && root >= of(handle)->size) {
    emulator::say("%s: userRank:[%u] is out of range[0 ~ %u]", kind, root, of(handle)->size - 1);
    return HCCL_E_PARA;
  }
  if (op != HCCL_REDUCE_RESERVED)
    if (const HcclResult result = emulator::check_reduction(type, op); result != HCCL_SUCCESS) return result;
  emulator::count_collective(kind, elements * element_size(type), handle,
                             {elements, static_cast<uint32_t>(type), static_cast<uint32_t>(op), root});
  return HCCL_SUCCESS;
}

uint64_t sum(const void* counts, int size) {
  const auto* each = static_cast<const uint64_t*>(counts);
  return std::accumulate(each, each + size, uint64_t{0});
}

char* as_bytes(const void* buffer) { return static_cast<char*>(const_cast<void*>(buffer)); }

}  // namespace

extern "C" {

HcclResult HcclAllReduce(void* send, void* receive, uint64_t elements, HcclDataType type, HcclReduceOp op,
                         HcclComm handle, aclrtStream) {
  if (const auto result = begin("HcclAllReduce", elements, type, handle, kNone, op); result != HCCL_SUCCESS) return result;
  Communicator* self = of(handle);
  if (self->devices)
    return self->devices->call(
        self->rank, {Call::Kind::kAllReduce, as_bytes(send), as_bytes(receive), elements, type, op, 0});
  return all_reduce(*self->processes, as_bytes(send), as_bytes(receive), elements, type, op);
}

HcclResult HcclReduce(void* send, void* receive, uint64_t elements, HcclDataType type, HcclReduceOp op, uint32_t root,
                      HcclComm handle, aclrtStream) {
  if (const auto result = begin("HcclReduce", elements, type, handle, root, op); result != HCCL_SUCCESS) return result;
  Communicator* self = of(handle);
  if (self->devices)
    return self->devices->call(self->rank,
                               {Call::Kind::kReduce, as_bytes(send), as_bytes(receive), elements, type, op, root});
  Group& group = *self->processes;
  const size_t width = element_size(type);
  return exchange(group, as_bytes(send), elements * width, [&](size_t offset, size_t size) {
    if (self->rank != root) return HCCL_SUCCESS;
    return emulator::reduce(all_slots(group), as_bytes(receive) + offset, size / width, type, op);
  });
}

HcclResult HcclBroadcast(void* buffer, uint64_t elements, HcclDataType type, uint32_t root, HcclComm handle,
                         aclrtStream) {
  if (const auto result = begin("HcclBroadcast", elements, type, handle, root); result != HCCL_SUCCESS) return result;
  Communicator* self = of(handle);
  if (self->devices)
    return self->devices->call(self->rank, {Call::Kind::kBroadcast, as_bytes(buffer), as_bytes(buffer), elements,
                                            type, HCCL_REDUCE_SUM, root});
  Group& group = *self->processes;
  const bool shows = self->rank == root;
  return exchange(group, shows ? as_bytes(buffer) : nullptr, elements * element_size(type),
                  [&](size_t offset, size_t size) {
                    if (!shows) std::memcpy(as_bytes(buffer) + offset, group.slot(static_cast<int>(root)), size);
                    return HCCL_SUCCESS;
                  });
}

HcclResult HcclAllGather(void* send, void* receive, uint64_t elements, HcclDataType type, HcclComm handle,
                         aclrtStream) {
  if (const auto result = begin("HcclAllGather", elements, type, handle); result != HCCL_SUCCESS) return result;
  Communicator* self = of(handle);
  if (self->devices)
    return self->devices->call(self->rank, {Call::Kind::kAllGather, as_bytes(send), as_bytes(receive), elements, type,
                                            HCCL_REDUCE_SUM, 0});
  Group& group = *self->processes;
  const size_t bytes = elements * element_size(type);
  return exchange(group, as_bytes(send), bytes, [&](size_t offset, size_t size) {
    for (int rank = 0; rank < group.size(); ++rank)
      std::memcpy(as_bytes(receive) + static_cast<size_t>(rank) * bytes + offset, group.slot(rank), size);
    return HCCL_SUCCESS;
  });
}

// Counts and places differ by rank: each rank in turn shows its buffer.
HcclResult HcclAllGatherV(Parameter<HcclAllGatherV, 0> send, uint64_t, Parameter<HcclAllGatherV, 2> receive,
                          const void* counts, const void* places, HcclDataType type, HcclComm handle, aclrtStream) {
  Communicator* self = of(handle);
  if (self->devices) return HCCL_E_NOT_SUPPORT;
  Group& group = *self->processes;
  const size_t width = element_size(type);
  if (const auto result = begin("HcclAllGatherV", sum(counts, group.size()), type, handle); result != HCCL_SUCCESS)
    return result;
  for (int root = 0; root < group.size(); ++root) {
    const uint64_t elements = static_cast<const uint64_t*>(counts)[root];
    char* to = as_bytes(receive) + static_cast<const uint64_t*>(places)[root] * width;
    const HcclResult result = exchange(group, root == group.rank() ? as_bytes(send) : nullptr, elements * width,
                                       [&](size_t offset, size_t size) {
                                         std::memcpy(to + offset, group.slot(root), size);
                                         return HCCL_SUCCESS;
                                       });
    if (result != HCCL_SUCCESS) return result;
  }
  return HCCL_SUCCESS;
}

// The part of each receiver in turn is shown by all and reduced by the receiver.
HcclResult HcclReduceScatterV(Parameter<HcclReduceScatterV, 0> send, const void* counts, const void* places,
                              Parameter<HcclReduceScatterV, 3> receive, uint64_t, HcclDataType type, HcclReduceOp op,
                              HcclComm handle, aclrtStream) {
  Communicator* self = of(handle);
  if (self->devices) return HCCL_E_NOT_SUPPORT;
  Group& group = *self->processes;
  const size_t width = element_size(type);
  if (const auto result = begin("HcclReduceScatterV", sum(counts, group.size()), type, handle, kNone, op); result != HCCL_SUCCESS)
    return result;
  for (int receiver = 0; receiver < group.size(); ++receiver) {
    const uint64_t elements = static_cast<const uint64_t*>(counts)[receiver];
    const char* part = as_bytes(send) + static_cast<const uint64_t*>(places)[receiver] * width;
    const HcclResult result = exchange(group, part, elements * width, [&](size_t offset, size_t size) {
      if (receiver != group.rank()) return HCCL_SUCCESS;
      return emulator::reduce(all_slots(group), as_bytes(receive) + offset, size / width, type, op);
    });
    if (result != HCCL_SUCCESS) return result;
  }
  return HCCL_SUCCESS;
}

HcclResult HcclReduceScatter(void* send, void* receive, uint64_t elements, HcclDataType type, HcclReduceOp op,
                             HcclComm handle, aclrtStream) {
  if (const auto result = begin("HcclReduceScatter", elements, type, handle, kNone, op); result != HCCL_SUCCESS) return result;
  Communicator* self = of(handle);
  if (self->devices)
    return self->devices->call(
        self->rank, {Call::Kind::kReduceScatter, as_bytes(send), as_bytes(receive), elements, type, op, 0});
  Group& group = *self->processes;
  const size_t width = element_size(type);
  const size_t bytes = elements * width;
  for (int receiver = 0; receiver < group.size(); ++receiver) {
    const HcclResult result = exchange(
        group, as_bytes(send) + static_cast<size_t>(receiver) * bytes, bytes, [&](size_t offset, size_t size) {
          if (receiver != group.rank()) return HCCL_SUCCESS;
          return emulator::reduce(all_slots(group), as_bytes(receive) + offset, size / width, type, op);
        });
    if (result != HCCL_SUCCESS) return result;
  }
  return HCCL_SUCCESS;
}

HcclResult HcclScatter(void* send, void* receive, uint64_t elements, HcclDataType type, uint32_t root,
                       HcclComm handle, aclrtStream) {
  Communicator* self = of(handle);
  if (self->devices) return HCCL_E_NOT_SUPPORT;
  if (const auto result = begin("HcclScatter", elements, type, handle, root); result != HCCL_SUCCESS) return result;
  Group& group = *self->processes;
  const size_t bytes = elements * element_size(type);
  for (int receiver = 0; receiver < group.size(); ++receiver) {
    const char* part = self->rank == root ? as_bytes(send) + static_cast<size_t>(receiver) * bytes : nullptr;
    const HcclResult result = exchange(group, part, bytes, [&](size_t offset, size_t size) {
      if (receiver == group.rank()) std::memcpy(as_bytes(receive) + offset, group.slot(static_cast<int>(root)), size);
      return HCCL_SUCCESS;
    });
    if (result != HCCL_SUCCESS) return result;
  }
  return HCCL_SUCCESS;
}

}  // extern "C"
