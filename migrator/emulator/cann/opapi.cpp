// Operators of CANN's second interface (aclnn…), which op-plugin looks up by name: those that torch_npu calls without
// going through torch's dispatcher. All others are computed in ../compute.
#include <acl/acl.h>

#include <cstring>
#include <vector>

struct aclTensor {
  aclDataType type;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  char* data;
};
struct aclIntArray {
  std::vector<int64_t> values;
};
struct aclScalar {
  double value;
};
struct aclOpExecutor {
  const aclTensor* from;
  const aclIntArray* padding;
  aclTensor* to;
};

namespace {

int64_t stride(const aclTensor& tensor, size_t dimension, size_t width) {
  return tensor.strides[dimension] * static_cast<int64_t>(width);
}

// Zeros first; then each element to its place.
void pad(const aclTensor& from, const std::vector<int64_t>& padding, const aclTensor& to) {
  const size_t rank = from.sizes.size(), width = aclDataTypeSize(from.type);
  int64_t bytes = static_cast<int64_t>(width), elements = 1;
  for (size_t d = 0; d < rank; ++d) {
    bytes *= to.sizes[d];
    elements *= from.sizes[d];
  }
  std::memset(to.data, 0, static_cast<size_t>(bytes));
  for (int64_t element = 0; element < elements; ++element) {
    int64_t rest = element, source = 0, target = 0;
    bool inside = true;
    for (size_t d = rank; d-- > 0;) {
      const int64_t place = rest % from.sizes[d];
      rest /= from.sizes[d];
      const size_t pair = 2 * (rank - 1 - d);  // the pairs begin at the last dimension
      const int64_t moved = place + (pair < padding.size() ? padding[pair] : 0);
      inside = inside && moved >= 0 && moved < to.sizes[d];
      source += place * stride(from, d, width);
      target += moved * stride(to, d, width);
    }
    if (inside) std::memcpy(to.data + target, from.data + source, width);
  }
}

}  // namespace

extern "C" {

size_t aclDataTypeSize(aclDataType type) {
  switch (type) {
    case ACL_BOOL: case ACL_INT8: case ACL_UINT8:
      return 1;
    case ACL_INT16: case ACL_UINT16: case ACL_FLOAT16: case ACL_BF16:
      return 2;
    case ACL_INT64: case ACL_UINT64: case ACL_DOUBLE: case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
      return 16;
    default:
      return type > ACL_COMPLEX128 && type != ACL_COMPLEX32 ? 1 : 4;  // what came last are dtypes of 8 bits
  }
}

aclTensor* aclCreateTensor(const int64_t* sizes, uint64_t rank, aclDataType type, const int64_t* strides, int64_t offset,
                           aclFormat, const int64_t*, uint64_t, void* data) {
  char* first = static_cast<char*>(data) + offset * static_cast<int64_t>(aclDataTypeSize(type));
  return new aclTensor{type, {sizes, sizes + rank}, {strides, strides + rank}, first};
}
int aclDestroyTensor(const aclTensor* tensor) {
  delete tensor;
  return ACL_SUCCESS;
}
aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t count) {
  return new aclIntArray{{values, values + count}};
}
int aclDestroyIntArray(const aclIntArray* array) {
  delete array;
  return ACL_SUCCESS;
}
aclScalar* aclCreateScalar(void* value, aclDataType type) {
  double number = 0;
  if (type == ACL_DOUBLE) number = *static_cast<double*>(value);
  if (type == ACL_INT64) number = static_cast<double>(*static_cast<int64_t*>(value));
  if (type == ACL_BOOL) number = *static_cast<bool*>(value) ? 1 : 0;
  return new aclScalar{number};
}
int aclDestroyScalar(const aclScalar* scalar) {
  delete scalar;
  return ACL_SUCCESS;
}

// torch_npu aligns what collectives gather with it, and pads with zeros alone.
int aclnnConstantPadNdGetWorkspaceSize(const aclTensor* from, const aclIntArray* padding, const aclScalar* value,
                                       aclTensor* to, uint64_t* workspace, aclOpExecutor** executor) {
  if (value->value != 0) return ACL_ERROR_API_NOT_SUPPORT;
  *workspace = 0;
  *executor = new aclOpExecutor{from, padding, to};
  return ACL_SUCCESS;
}
int aclnnConstantPadNd(void*, uint64_t, aclOpExecutor* executor, aclrtStream) {
  pad(*executor->from, executor->padding->values, *executor->to);
  delete executor;
  return ACL_SUCCESS;
}

}  // extern "C"
