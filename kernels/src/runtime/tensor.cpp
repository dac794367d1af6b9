#include "runtime/tensor.h"

#include <cstring>

#include "search/ranges.h"

namespace dragoman {

namespace ort {

bool check_api(const Api *api) {
  if (api == nullptr)
    return false;
  static const char kProbe[] = "probe";
  Status *status = new_status(api, kInvalidArgument, kProbe);
  if (status == nullptr)
    return false;
  bool is_right = entry<ErrorCode (*)(const Status *)>(api, kGetErrorCode)(status) == kInvalidArgument &&
                  std::strcmp(entry<const char *(*)(const Status *)>(api, kGetErrorMessage)(status), kProbe) == 0;
  entry<void (*)(Status *)>(api, kReleaseStatus)(status);
  return is_right;
}

} // namespace ort

namespace {

const char *type_name(ort::ElementType type) {
  switch (type) {
  case ort::kFloat: return "float32";
  case ort::kUint8: return "uint8";
  case ort::kUint16: return "uint16";
  case ort::kInt8: return "int8";
  case ort::kInt32: return "int32";
  case ort::kInt64: return "int64";
  default: return "another type";
  }
}

int64_t bytes_of(ort::ElementType type) {
  switch (type) {
  case ort::kUint8:
  case ort::kInt8: return 1;
  case ort::kUint16: return 2;
  case ort::kFloat:
  case ort::kInt32: return 4;
  default: return 8;
  }
}

std::string shape_text(const std::vector<int64_t> &shape) {
  std::string text = "(";
  for (int64_t dim : shape)
    text += (text.size() > 1 ? ", " : "") + (dim < 0 ? std::string("any") : std::to_string(dim));
  return text + ")";
}

Tensor tensor_of(const ort::Api *api, ort::Value *value) {
  Tensor tensor;
  ort::TensorInfo *info = nullptr;
  ort::check(api, ort::entry<ort::Status *(*)(const ort::Value *, ort::TensorInfo **)>(
                      api, ort::kGetTensorTypeAndShape)(value, &info));
  size_t rank = 0;
  ort::Status *status = ort::entry<ort::Status *(*)(const ort::TensorInfo *, ort::ElementType *)>(
      api, ort::kGetTensorElementType)(info, &tensor.type);
  if (status == nullptr)
    status =
        ort::entry<ort::Status *(*)(const ort::TensorInfo *, size_t *)>(api, ort::kGetDimensionsCount)(info, &rank);
  if (status == nullptr && rank > 0) {
    tensor.shape.resize(rank);
    status = ort::entry<ort::Status *(*)(const ort::TensorInfo *, int64_t *, size_t)>(api, ort::kGetDimensions)(
        info, tensor.shape.data(), rank);
  }
  ort::entry<void (*)(ort::TensorInfo *)>(api, ort::kReleaseTensorInfo)(info);
  ort::check(api, status);
  ort::check(api, ort::entry<ort::Status *(*)(ort::Value *, void **)>(api, ort::kGetTensorMutableData)(value,
                                                                                                  &tensor.data));
  return tensor;
}

} // namespace

void require_apart(std::initializer_list<Memory> all) {
  for (const Memory &one : all)
    for (const Memory *other = all.begin(); other != &one; other++) {
      uintptr_t begin = reinterpret_cast<uintptr_t>(one.data), begin_of_other = reinterpret_cast<uintptr_t>(other->data);
      if (begin < begin_of_other + other->num_bytes && begin_of_other < begin + one.num_bytes)
        throw std::invalid_argument(std::string(other->name) + " and " + one.name + " share memory");
    }
}

Memory Tensor::memory(const char *name) const { return {name, data, size() * bytes_of(type)}; }

int64_t Tensor::size() const {
  int64_t size = 1;
  bool is_empty = false;
  for (int64_t dim : shape) {
    is_empty = is_empty || dim == 0;
    if (dim < 0 || __builtin_mul_overflow(size, dim == 0 ? 1 : dim, &size) || size > (int64_t{1} << 56))
      throw std::invalid_argument("a tensor has the shape " + shape_text(shape) + ", allowed: up to 2^56 elements");
  }
  return is_empty ? 0 : size;
}

void Tensor::require(const char *what, ort::ElementType expected, const std::vector<int64_t> &dims) const {
  bool fits = type == expected && shape.size() == dims.size();
  for (size_t index = 0; fits && index < dims.size(); index++)
    fits = shape[index] >= 0 && (dims[index] < 0 || shape[index] == dims[index]);
  if (!fits)
    throw std::invalid_argument(std::string(what) + " is " + type_name(type) + " " + shape_text(shape) +
                                ", allowed: " + type_name(expected) + " " + shape_text(dims));
  if (size() > 0 && data == nullptr)
    throw std::invalid_argument(std::string(what) + " has the shape " + shape_text(shape) + " but no data");
}

void Tensor::require_alignment(const char *what, size_t alignment) const {
  if (reinterpret_cast<uintptr_t>(data) % alignment)
    throw std::invalid_argument(std::string(what) + " is not aligned to " + std::to_string(alignment) + " bytes");
}

void Context::require_inputs(size_t expected) const {
  size_t count = 0;
  ort::check(api_, ort::entry<ort::Status *(*)(const ort::KernelContext *, size_t *)>(api_, ort::kGetInputCount)(
                       context_, &count));
  if (count != expected)
    throw std::invalid_argument("the number of inputs is " + std::to_string(count) +
                                ", allowed with these attributes: " + std::to_string(expected));
}

Tensor Context::input(size_t index) const {
  const ort::Value *value = nullptr;
  ort::check(api_, ort::entry<ort::Status *(*)(const ort::KernelContext *, size_t, const ort::Value **)>(
                       api_, ort::kGetInput)(context_, index, &value));
  if (value == nullptr)
    throw std::invalid_argument("input " + std::to_string(index) + " is missing");
  return tensor_of(api_, const_cast<ort::Value *>(value));
}

Tensor Context::output(size_t index, const std::vector<int64_t> &shape) const {
  ort::Value *value = nullptr;
  ort::check(api_, ort::entry<ort::Status *(*)(ort::KernelContext *, size_t, const int64_t *, size_t, ort::Value **)>(
                       api_, ort::kGetOutput)(context_, index, shape.data(), shape.size(), &value));
  if (value == nullptr)
    throw std::invalid_argument("output " + std::to_string(index) + " is missing");
  return tensor_of(api_, value);
}

// Read an attribute; ONNX Runtime's own errors don't name it.
template <typename... Targets>
static void read_attribute(const ort::Api *api, ort::Position position, const ort::KernelInfo *info, const char *name,
                           Targets... targets) {
  using Function = ort::Status *(*)(const ort::KernelInfo *, const char *, Targets...);
  try {
    ort::check(api, ort::entry<Function>(api, position)(info, name, targets...));
  } catch (const std::runtime_error &error) {
    throw std::invalid_argument(std::string("attribute ") + name + ": " + error.what());
  }
}

int64_t NodeInfo::integer(const char *name, int64_t low, int64_t high) const {
  int64_t value = 0;
  read_attribute(api_, ort::kGetAttributeInt64, info_, name, &value);
  expect_between((std::string("attribute ") + name).c_str(), value, low, high);
  return value;
}

int64_t NodeInfo::integer_or_zero(const char *name, int64_t high) const {
  int64_t value = 0;
  try {
    read_attribute(api_, ort::kGetAttributeInt64, info_, name, &value);
  } catch (const std::invalid_argument &) {
    return 0;
  }
  return integer(name, 0, high);
}

double NodeInfo::number(const char *name, double low, double high) const {
  float value = 0;
  read_attribute(api_, ort::kGetAttributeFloat, info_, name, &value);
  expect_between((std::string("attribute ") + name).c_str(), value, low, high);
  return value;
}

std::string NodeInfo::text(const char *name) const {
  char buffer[64];
  size_t size = sizeof buffer;
  read_attribute(api_, ort::kGetAttributeString, info_, name, buffer, &size);
  return std::string(buffer, strnlen(buffer, sizeof buffer));
}

Tensor NodeInfo::at(const char *what, size_t index) const {
  int is_constant = 0;
  const ort::Value *value = nullptr;
  ort::check(api_, ort::entry<ort::Status *(*)(const ort::KernelInfo *, size_t, int *, const ort::Value **)>(
                       api_, ort::kGetConstantInput)(info_, index, &is_constant, &value));
  if (!is_constant || value == nullptr)
    throw std::invalid_argument(std::string(what) + " (input " + std::to_string(index) + ") is not a constant");
  return tensor_of(api_, const_cast<ort::Value *>(value));
}

Tensor NodeInfo::constant(const char *what, ort::ElementType type, const std::vector<int64_t> &dims) {
  Tensor tensor = at(what, next_);
  tensor.require(what, type, dims);
  next_++;
  return tensor;
}

} // namespace dragoman
