// Single operators by name: the few that torch_npu starts without going through torch's dispatcher.
// All others are computed in ../compute.
#include <acl/acl.h>
#include <acl/acl_op_compiler.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "settings.h"

struct aclTensorDesc {
  aclDataType type;
  aclFormat format;
  std::vector<int64_t> sizes;
};
struct aclDataBuffer {
  void* data;
  size_t size;
};
struct aclopAttr {};

namespace {

struct Operand {
  const aclTensorDesc* shape;
  char* data;
  size_t size;
};
using Operands = std::vector<Operand>;

size_t count(const std::vector<int64_t>& sizes) {
  size_t product = 1;
  for (const auto size : sizes) product *= static_cast<size_t>(size);
  return product;
}

void repeat(const char* element, size_t width, Operand& to) {
  for (size_t at = 0; at + width <= to.size; at += width) std::memcpy(to.data + at, element, width);
}

bool copy(const Operands& in, Operands& out) {
  if (in.empty()) return false;
  std::memmove(out[0].data, in[0].data, std::min(in[0].size, out[0].size));
  return true;
}

bool zeros(const Operands&, Operands& out) {
  std::memset(out[0].data, 0, out[0].size);
  return true;
}

bool fill(const Operands& in, Operands& out) {
  if (in.size() != 2 || in[1].size == 0) return false;
  repeat(in[1].data, in[1].size, out[0]);
  return true;
}

// Inputs: the tensor, pairs of paddings before and after each of its dimensions, the value to pad with.
bool pad(const Operands& in, Operands& out) {
  if (in.size() != 3 || in[0].shape == nullptr || in[1].shape == nullptr) return false;
  const auto& sizes = in[0].shape->sizes;
  const size_t rank = sizes.size();
  if (in[1].shape->sizes.size() != 1 || static_cast<size_t>(in[1].shape->sizes[0]) != 2 * rank) return false;
  const size_t elements = count(sizes);
  const size_t width = elements > 0 ? in[0].size / elements : in[2].size;
  if (width == 0 || in[2].size < width) return false;

  std::vector<size_t> before(rank);
  std::vector<size_t> padded(rank);
  for (size_t d = 0; d < rank; ++d) {
    const auto at = [&](size_t index) {
      return static_cast<size_t>(in[1].shape->type == ACL_INT64
                                     ? reinterpret_cast<const int64_t*>(in[1].data)[index]
                                     : reinterpret_cast<const int32_t*>(in[1].data)[index]);
    };
    before[d] = at(2 * d);
    padded[d] = static_cast<size_t>(sizes[d]) + at(2 * d) + at(2 * d + 1);
  }
  repeat(in[2].data, width, out[0]);
  for (size_t element = 0; element < elements; ++element) {
    size_t rest = element;
    size_t place = 0;
    size_t step = 1;
    for (size_t d = rank; d-- > 0;) {
      place += (rest % static_cast<size_t>(sizes[d]) + before[d]) * step;
      rest /= static_cast<size_t>(sizes[d]);
      step *= padded[d];
    }
    std::memcpy(out[0].data + place * width, in[0].data + element * width, width);
  }
  return true;
}

template <class Number>
Number at(const Operand& operand, size_t index) {
  return reinterpret_cast<const Number*>(operand.data)[index];
}

// Inputs: the sizes of what is to be dropped, how probable it is that an element is kept, two seeds, two offsets.
// A bit for each element, 1 where it is kept; the last byte is filled with 1, those behind it are 0.
bool dropout_mask(const Operands& in, Operands& out) {
  if (in.size() != 5 || in[0].shape == nullptr || in[1].shape == nullptr) return false;
  size_t elements = 1;
  for (size_t i = 0; i < count(in[0].shape->sizes); ++i)
    elements *= in[0].shape->type == ACL_INT64 ? static_cast<size_t>(at<int64_t>(in[0], i))
                                               : static_cast<size_t>(at<int32_t>(in[0], i));
  const aclDataType type = in[1].shape->type;
  const double kept = type == ACL_FLOAT     ? at<float>(in[1], 0)
                      : type == ACL_DOUBLE  ? at<double>(in[1], 0)
                      : type == ACL_FLOAT16 ? static_cast<float>(at<c10::Half>(in[1], 0))
                                            : static_cast<float>(at<c10::BFloat16>(in[1], 0));
  std::mt19937_64 random(static_cast<uint64_t>(at<int32_t>(in[2], 0)) * 1000003 + at<uint64_t>(in[4], 1));
  std::uniform_real_distribution<double> number;
  const size_t bits = std::min((elements + 7) / 8 * 8, out[0].size * 8);
  std::memset(out[0].data, 0, out[0].size);
  for (size_t i = 0; i < bits; ++i)
    if (i >= elements || number(random) < kept) out[0].data[i / 8] |= static_cast<char>(1 << (i % 8));
  return true;
}

aclError run(const std::string& name, const Operands& in, Operands& out) {
  bool done = false;
  if (!out.empty()) {
    if (name == "Identity" || name == "TensorMove") done = copy(in, out);
    if (name == "ZerosLike") done = zeros(in, out);
    if (name == "Fill") done = fill(in, out);
    if (name == "PadV3") done = pad(in, out);
    if (name == "StatelessDropOutGenMask") done = dropout_mask(in, out);
  }
  if (done) return ACL_SUCCESS;
  emulator::say("CANN's single operator %s is not emulated for %zu inputs", name.c_str(), in.size());
  return ACL_ERROR_OP_NOT_FOUND;
}

template <class Shapes, class Buffers>
Operands operands(int number, Shapes shapes, Buffers buffers) {
  Operands result;
  for (int i = 0; i < number; ++i) {
    const auto* buffer = buffers[i];
    result.push_back({shapes[i], buffer == nullptr ? nullptr : static_cast<char*>(buffer->data),
                      buffer == nullptr ? 0 : buffer->size});
  }
  return result;
}

}  // namespace

extern "C" {

aclTensorDesc* aclCreateTensorDesc(aclDataType type, int rank, const int64_t* sizes, aclFormat format) {
  return new aclTensorDesc{type, format, std::vector<int64_t>(sizes, sizes + std::max(rank, 0))};
}
void aclDestroyTensorDesc(const aclTensorDesc* shape) { delete shape; }
aclDataType aclGetTensorDescType(const aclTensorDesc* shape) { return shape->type; }
aclFormat aclGetTensorDescFormat(const aclTensorDesc* shape) { return shape->format; }
size_t aclGetTensorDescNumDims(const aclTensorDesc* shape) { return shape->sizes.size(); }
aclError aclGetTensorDescDimV2(const aclTensorDesc* shape, size_t index, int64_t* size) {
  if (index >= shape->sizes.size()) return ACL_ERROR_INVALID_PARAM;
  *size = shape->sizes[index];
  return ACL_SUCCESS;
}
// Names, formats and places of tensors matter to a graph; here each operator runs alone.
void aclSetTensorDescName(aclTensorDesc*, const char*) {}
aclError aclSetTensorFormat(aclTensorDesc*, aclFormat) { return ACL_SUCCESS; }
aclError aclSetTensorShape(aclTensorDesc*, int, const int64_t*) { return ACL_SUCCESS; }
aclError aclSetTensorPlaceMent(aclTensorDesc*, aclMemType) { return ACL_SUCCESS; }

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) { return new aclDataBuffer{data, size}; }
aclError aclDestroyDataBuffer(const aclDataBuffer* buffer) {
  delete buffer;
  return ACL_SUCCESS;
}

// None of the operators above has an attribute that changes its result.
aclopAttr* aclopCreateAttr() { return new aclopAttr; }
void aclopDestroyAttr(const aclopAttr* attributes) { delete attributes; }
aclError aclopSetAttrBool(aclopAttr*, const char*, uint8_t) { return ACL_SUCCESS; }
aclError aclopSetAttrInt(aclopAttr*, const char*, int64_t) { return ACL_SUCCESS; }
aclError aclopSetAttrFloat(aclopAttr*, const char*, float) { return ACL_SUCCESS; }
aclError aclopSetAttrString(aclopAttr*, const char*, const char*) { return ACL_SUCCESS; }
aclError aclopSetAttrDataType(aclopAttr*, const char*, aclDataType) { return ACL_SUCCESS; }
aclError aclopSetAttrListBool(aclopAttr*, const char*, int, const uint8_t*) { return ACL_SUCCESS; }
aclError aclopSetAttrListInt(aclopAttr*, const char*, int, const int64_t*) { return ACL_SUCCESS; }
aclError aclopSetAttrListFloat(aclopAttr*, const char*, int, const float*) { return ACL_SUCCESS; }
aclError aclopSetAttrListListInt(aclopAttr*, const char*, int, const int*, const int64_t* const[]) {
  return ACL_SUCCESS;
}

aclError aclopCompileAndExecute(const char* name, int inputs, const aclTensorDesc* const in_shapes[],
                                const aclDataBuffer* const in[], int outputs,
                                const aclTensorDesc* const out_shapes[], aclDataBuffer* const out[],
                                const aclopAttr*, aclopEngineType, aclopCompileType, const char*, aclrtStream) {
  Operands to = operands(outputs, out_shapes, out);
  return run(name, operands(inputs, in_shapes, in), to);
}

aclError aclopCompileAndExecuteV2(const char* name, int inputs, aclTensorDesc* in_shapes[], aclDataBuffer* in[],
                                  int outputs, aclTensorDesc* out_shapes[], aclDataBuffer* out[], aclopAttr*,
                                  aclopEngineType, aclopCompileType, const char*, aclrtStream) {
  Operands to = operands(outputs, out_shapes, out);
  return run(name, operands(inputs, in_shapes, in), to);
}

}  // extern "C"
