#include "hccl_reduce.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstdint>

#include "settings.h"

namespace emulator {
namespace {

template <class Value>
Value combine(Value one, Value other, HcclReduceOp op) {
  switch (op) {
    case HCCL_REDUCE_PROD:
      return static_cast<Value>(one * other);
    case HCCL_REDUCE_MAX:
      return std::max(one, other);
    case HCCL_REDUCE_MIN:
      return std::min(one, other);
    default:
      return static_cast<Value>(one + other);
  }
}

template <class Stored, class Value = Stored>
void reduce_as(const std::vector<const char*>& in, char* out, size_t count, HcclReduceOp op) {
  for (size_t i = 0; i < count; ++i) {
    auto value = static_cast<Value>(reinterpret_cast<const Stored*>(in[0])[i]);
    for (size_t rank = 1; rank < in.size(); ++rank)
      value = combine<Value>(value, static_cast<Value>(reinterpret_cast<const Stored*>(in[rank])[i]), op);
    reinterpret_cast<Stored*>(out)[i] = static_cast<Stored>(value);
  }
}

}  // namespace

size_t element_size(HcclDataType type) {
  constexpr int kInt128 = 12, kHif8 = 14, kFp8E4m3 = 15, kFp8E5m2 = 16, kFp8E8m0 = 17;  // older headers lack them
  switch (static_cast<int>(type)) {
    case HCCL_DATA_TYPE_INT8:
    case HCCL_DATA_TYPE_UINT8:
    case kHif8:
    case kFp8E4m3:
    case kFp8E5m2:
    case kFp8E8m0:
      return 1;
    case HCCL_DATA_TYPE_INT16:
    case HCCL_DATA_TYPE_UINT16:
    case HCCL_DATA_TYPE_FP16:
    case HCCL_DATA_TYPE_BFP16:
      return 2;
    case HCCL_DATA_TYPE_INT32:
    case HCCL_DATA_TYPE_UINT32:
    case HCCL_DATA_TYPE_FP32:
      return 4;
    case HCCL_DATA_TYPE_INT64:
    case HCCL_DATA_TYPE_UINT64:
    case HCCL_DATA_TYPE_FP64:
      return 8;
    case kInt128:
      return 16;
    default:
      return 0;
  }
}

HcclResult check_reduction(HcclDataType type, HcclReduceOp op) {
  const bool is_int16 = type == HCCL_DATA_TYPE_INT16;
  const char* value = is_int16 ? "int16" : "bfloat16";
  const char* parameter = "dataType";
  const char* expected = nullptr;
  switch (chips()) {
    case Chips::kAtlasA2:
      if (op == HCCL_REDUCE_PROD && (is_int16 || type == HCCL_DATA_TYPE_BFP16)) expected = "float16, float32, int32";
      break;
    case Chips::kAtlasA1:
      if (is_int16) expected = "float16, float32";
      break;
    case Chips::kAtlas300:
      if (!is_int16 || op == HCCL_REDUCE_SUM) break;
      value = op == HCCL_REDUCE_PROD ? "prod" : op == HCCL_REDUCE_MAX ? "max" : "min";
      parameter = "op";
      expected = "sum";
      break;
    case Chips::kOther:
      break;
  }
  if (expected == nullptr) return HCCL_SUCCESS;
  explain_as("EI0003", std::string("Failed to verify parameters of operator HcomCheckReduceDataType. Value ") + value +
                           " for parameter " + parameter + " is invalid. The expected value is " + expected + ".");
  return HCCL_E_NOT_SUPPORT;
}

// The types that HCCL documents for reductions, and no others.
HcclResult reduce(const std::vector<const char*>& in, char* out, size_t count, HcclDataType type, HcclReduceOp op) {
  switch (type) {
    case HCCL_DATA_TYPE_INT8:
      reduce_as<int8_t>(in, out, count, op);
      break;
    case HCCL_DATA_TYPE_INT16:
      reduce_as<int16_t>(in, out, count, op);
      break;
    case HCCL_DATA_TYPE_INT32:
      reduce_as<int32_t>(in, out, count, op);
      break;
    case HCCL_DATA_TYPE_INT64:
      reduce_as<int64_t>(in, out, count, op);
      break;
    case HCCL_DATA_TYPE_UINT8:
      reduce_as<uint8_t>(in, out, count, op);
      break;
    case HCCL_DATA_TYPE_FP32:
      reduce_as<float>(in, out, count, op);
      break;
    case HCCL_DATA_TYPE_FP16:
      reduce_as<c10::Half, float>(in, out, count, op);
      break;
    case HCCL_DATA_TYPE_BFP16:
      reduce_as<c10::BFloat16, float>(in, out, count, op);
      break;
    default:
      say("HCCL reduces no elements of type %d", static_cast<int>(type));
      return HCCL_E_NOT_SUPPORT;
  }
  return HCCL_SUCCESS;
}

}  // namespace emulator
