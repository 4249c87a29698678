// From one rank to another: send, receive, and the collectives that are made of them.
#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "hccl_communicator.h"
#include "hccl_reduce.h"

namespace {

using emulator::Group;
using emulator::kLetter;
using emulator::Letter;
using emulator::of;

struct Message {
  HcclSendRecvType kind;
  char* data;
  size_t bytes;
  int peer;
  size_t moved = 0;
};

// Moves a piece of the message if the letter box allows it.
bool move(Group& group, Message& message) {
  const bool sends = message.kind == HCCL_SEND;
  Letter& letter = sends ? group.letter(group.rank(), message.peer) : group.letter(message.peer, group.rank());
  if ((letter.full != 0) == sends) return false;
  if (sends) {
    letter.size = static_cast<uint32_t>(std::min(kLetter, message.bytes - message.moved));
    std::memcpy(letter.data, message.data + message.moved, letter.size);
  } else {
    std::memcpy(message.data + message.moved, letter.data, std::min<size_t>(letter.size, message.bytes - message.moved));
  }
  message.moved += letter.size;
  letter.full = sends ? 1 : 0;
  group.post();
  return true;
}

// All messages make progress together, so that two ranks that send each other long ones do not wait for ever.
// Between two ranks and in one direction the order is kept.
HcclResult exchange(Group& group, std::vector<Message> messages) {
  return group.until_done([&] {
    bool moved = false;
    bool open = false;
    std::set<std::pair<int, int>> busy;
    for (Message& message : messages) {
      if (message.moved >= message.bytes) continue;
      if (busy.emplace(message.kind, message.peer).second) moved |= move(group, message);
      open |= message.moved < message.bytes;
    }
    if (!open) return Group::Step::kDone;
    return moved ? Group::Step::kMoved : Group::Step::kNothing;
  });
}

// Between HcclGroupStart and HcclGroupEnd a thread only collects its messages: one after the other, two ranks that
// send to each other would both wait for the other's receive.
thread_local int open_groups = 0;
thread_local std::vector<std::pair<Group*, Message>> collected;

HcclResult send_or_collect(Group& group, Message message) {
  if (open_groups == 0) return exchange(group, {message});
  collected.emplace_back(&group, message);
  return HCCL_SUCCESS;
}

HcclResult one(const char* name, HcclSendRecvType kind, void* data, uint64_t elements, HcclDataType type,
               uint32_t peer, HcclComm handle) {
  const size_t bytes = elements * emulator::element_size(type);
  emulator::count_collective(name, bytes, handle);
  auto* self = of(handle);
  if (self->devices || peer >= self->size) return HCCL_E_PARA;
  return send_or_collect(*self->processes, {kind, static_cast<char*>(data), bytes, static_cast<int>(peer)});
}

struct Part {
  size_t offset;
  size_t bytes;
};

// `sent` and `received` have a part for each rank.
HcclResult all_to_all(HcclComm handle, const void* from, const std::vector<Part>& sent, const void* to,
                      const std::vector<Part>& received) {
  auto* self = of(handle);
  if (self->devices) return HCCL_E_NOT_SUPPORT;
  // HCCL's prototypes say const for the receiving buffer too.
  auto* source = static_cast<char*>(const_cast<void*>(from));
  auto* target = static_cast<char*>(const_cast<void*>(to));
  std::vector<Message> messages;
  for (int peer = 0; peer < static_cast<int>(self->size); ++peer) {
    const Part& out = sent[static_cast<size_t>(peer)];
    const Part& in = received[static_cast<size_t>(peer)];
    if (peer == static_cast<int>(self->rank)) {
      std::memmove(target + in.offset, source + out.offset, std::min(in.bytes, out.bytes));
      continue;
    }
    messages.push_back({HCCL_SEND, source + out.offset, out.bytes, peer});
    messages.push_back({HCCL_RECV, target + in.offset, in.bytes, peer});
  }
  return exchange(*self->processes, std::move(messages));
}

std::vector<Part> parts(const void* counts, const void* places, size_t ranks, size_t width) {
  std::vector<Part> result;
  for (size_t rank = 0; rank < ranks; ++rank)
    result.push_back({static_cast<const uint64_t*>(places)[rank] * width,
                      static_cast<const uint64_t*>(counts)[rank] * width});
  return result;
}

size_t total(const std::vector<Part>& of_ranks) {
  size_t bytes = 0;
  for (const Part& part : of_ranks) bytes += part.bytes;
  return bytes;
}

}  // namespace

extern "C" {

HcclResult HcclGroupStart() {
  ++open_groups;
  return HCCL_SUCCESS;
}

HcclResult HcclGroupEnd() {
  if (open_groups == 0) return HCCL_E_PARA;
  if (--open_groups > 0) return HCCL_SUCCESS;
  const auto all = std::exchange(collected, {});
  std::vector<Group*> groups;
  for (const auto& [group, message] : all)
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  for (Group* group : groups) {
    std::vector<Message> messages;
    for (const auto& [of_group, message] : all)
      if (of_group == group) messages.push_back(message);
    if (const auto result = exchange(*group, std::move(messages)); result != HCCL_SUCCESS) return result;
  }
  return HCCL_SUCCESS;
}

HcclResult HcclSend(void* data, uint64_t elements, HcclDataType type, uint32_t to, HcclComm handle, aclrtStream) {
  return one("HcclSend", HCCL_SEND, data, elements, type, to, handle);
}

HcclResult HcclRecv(void* data, uint64_t elements, HcclDataType type, uint32_t from, HcclComm handle, aclrtStream) {
  return one("HcclRecv", HCCL_RECV, data, elements, type, from, handle);
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* items, uint32_t number, HcclComm handle, aclrtStream) {
  auto* self = of(handle);
  if (self->devices) return HCCL_E_NOT_SUPPORT;
  std::vector<Message> messages;
  size_t bytes = 0;
  for (uint32_t i = 0; i < number; ++i) {
    const HcclSendRecvItem& item = items[i];
    if (item.remoteRank >= self->size) return HCCL_E_PARA;
    messages.push_back({item.sendRecvType, static_cast<char*>(item.buf),
                        item.count * emulator::element_size(item.dataType), static_cast<int>(item.remoteRank)});
    bytes += messages.back().bytes;
  }
  emulator::count_collective("HcclBatchSendRecv", bytes, handle);
  return exchange(*self->processes, std::move(messages));
}

HcclResult HcclAlltoAllV(const void* from, const void* send_counts, const void* send_places, HcclDataType send_type,
                         const void* to, const void* receive_counts, const void* receive_places,
                         HcclDataType receive_type, HcclComm handle, aclrtStream) {
  const size_t ranks = of(handle)->size;
  const auto sent = parts(send_counts, send_places, ranks, emulator::element_size(send_type));
  emulator::count_collective("HcclAlltoAllV", total(sent), handle);
  return all_to_all(handle, from, sent, to,
                    parts(receive_counts, receive_places, ranks, emulator::element_size(receive_type)));
}

HcclResult HcclAlltoAll(const void* from, uint64_t send_count, HcclDataType send_type, const void* to,
                        uint64_t receive_count, HcclDataType receive_type, HcclComm handle, aclrtStream) {
  std::vector<Part> sent;
  std::vector<Part> received;
  const size_t out = send_count * emulator::element_size(send_type);
  const size_t in = receive_count * emulator::element_size(receive_type);
  for (size_t rank = 0; rank < of(handle)->size; ++rank) {
    sent.push_back({rank * out, out});
    received.push_back({rank * in, in});
  }
  emulator::count_collective("HcclAlltoAll", total(sent), handle);
  return all_to_all(handle, from, sent, to, received);
}

// One matrix of counts for all: row = sender, column = receiver; parts lie one after the other.
HcclResult HcclAlltoAllVC(const void* from, const void* matrix, HcclDataType send_type, const void* to,
                          HcclDataType receive_type, HcclComm handle, aclrtStream) {
  const size_t ranks = of(handle)->size;
  const size_t rank = of(handle)->rank;
  const auto* counts = static_cast<const uint64_t*>(matrix);
  std::vector<Part> sent;
  std::vector<Part> received;
  size_t out = 0;
  size_t in = 0;
  for (size_t peer = 0; peer < ranks; ++peer) {
    sent.push_back({out, counts[rank * ranks + peer] * emulator::element_size(send_type)});
    received.push_back({in, counts[peer * ranks + rank] * emulator::element_size(receive_type)});
    out += sent.back().bytes;
    in += received.back().bytes;
  }
  emulator::count_collective("HcclAlltoAllVC", total(sent), handle);
  return all_to_all(handle, from, sent, to, received);
}

}  // extern "C"
