// Element types of HCCL, and the reduction of several buffers into one.
#pragma once

#include <hccl/hccl.h>

#include <cstddef>
#include <vector>

namespace emulator {

size_t element_size(HcclDataType type);  // 0: a type that HCCL does not name

// Refuses what HCCL refuses of each kind of NPU, in its words.
HcclResult check_reduction(HcclDataType type, HcclReduceOp op);

// out[i] = in[0][i] op in[1][i] op …, in the order of the ranks, so that every rank gets the same bits.
// Halves are added in float and rounded once. `out` may be one of `in`.
HcclResult reduce(const std::vector<const char*>& in, char* out, size_t count, HcclDataType type, HcclReduceOp op);

}  // namespace emulator
