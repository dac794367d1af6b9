// The part of ONNX Runtime's C interface that we use.
//
// Its Python package has no headers. The interface is a table of functions that only ever grows at its end, so a
// position means the same function in every later version; `check_api` verifies the positions that can be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace dragoman::ort {

struct Status;
struct SessionOptions;
struct CustomOpDomain;
struct KernelInfo;
struct KernelContext;
struct Value;
struct TensorInfo;
struct ShapeInferContext;
struct Api; // a table of functions

struct ApiBase {
  const Api *(*get_api)(uint32_t version);
  const char *(*get_version_string)();
};

constexpr uint32_t kApiVersion = 18; // of `CustomOp` below, and the oldest that has every function in use

enum ElementType : int32_t { kUndefined = 0, kFloat = 1, kUint8 = 2, kInt8 = 3, kUint16 = 4, kInt32 = 6, kInt64 = 7 };
enum Characteristic : int32_t { kRequired = 0, kOptional = 1, kVariadic = 2 };
enum ErrorCode : int32_t { kFail = 1, kInvalidArgument = 2 };

// OrtCustomOp: ONNX Runtime calls these. Version 18 has exactly these fields.
struct CustomOp {
  uint32_t version;
  void *(*create_kernel)(const CustomOp *, const Api *, const KernelInfo *);
  const char *(*get_name)(const CustomOp *);
  const char *(*get_execution_provider)(const CustomOp *);
  ElementType (*get_input_type)(const CustomOp *, size_t);
  size_t (*get_input_count)(const CustomOp *);
  ElementType (*get_output_type)(const CustomOp *, size_t);
  size_t (*get_output_count)(const CustomOp *);
  void (*compute)(void *, KernelContext *);
  void (*destroy_kernel)(void *);
  Characteristic (*get_input_characteristic)(const CustomOp *, size_t);
  Characteristic (*get_output_characteristic)(const CustomOp *, size_t);
  int32_t (*get_input_memory_type)(const CustomOp *, size_t);
  int (*get_variadic_input_min_arity)(const CustomOp *);
  int (*get_variadic_input_homogeneity)(const CustomOp *);
  int (*get_variadic_output_min_arity)(const CustomOp *);
  int (*get_variadic_output_homogeneity)(const CustomOp *);
  Status *(*create_kernel_v2)(const CustomOp *, const Api *, const KernelInfo *, void **);
  Status *(*compute_v2)(void *, KernelContext *);
  Status *(*infer_output_shape)(const CustomOp *, ShapeInferContext *);
  int (*get_start_version)(const CustomOp *);
  int (*get_end_version)(const CustomOp *);
  size_t (*get_may_inplace)(int **, int **);
  void (*release_may_inplace)(int *, int *);
  size_t (*get_alias_map)(int **, int **);
  void (*release_alias_map)(int *, int *);
};

enum Position : int {
  kCreateStatus = 0,
  kGetErrorCode = 1,
  kGetErrorMessage = 2,
  kCreateCustomOpDomain = 26,
  kCustomOpDomainAdd = 27,
  kAddCustomOpDomain = 28,
  kGetTensorMutableData = 51,
  kGetTensorElementType = 60,
  kGetDimensionsCount = 61,
  kGetDimensions = 62,
  kGetTensorTypeAndShape = 65,
  kGetAttributeFloat = 85,
  kGetAttributeInt64 = 86,
  kGetAttributeString = 87,
  kGetInputCount = 88,
  kGetInput = 90,
  kGetOutput = 91,
  kReleaseStatus = 93,
  kReleaseTensorInfo = 99,
  kGetInputCountOfInfo = 230,
  kHasConfigEntry = 237,
  kGetConfigEntry = 238,
  kGetConstantInput = 249,
};

template <typename Function> Function entry(const Api *api, Position position) {
  return reinterpret_cast<Function>(reinterpret_cast<void *const *>(api)[position]);
}

inline Status *new_status(const Api *api, ErrorCode code, const char *message) {
  return entry<Status *(*)(ErrorCode, const char *)>(api, kCreateStatus)(code, message);
}

// Throw what a function of the interface reported.
inline void check(const Api *api, Status *status) {
  if (status == nullptr)
    return;
  std::string message = entry<const char *(*)(const Status *)>(api, kGetErrorMessage)(status);
  entry<void (*)(Status *)>(api, kReleaseStatus)(status);
  throw std::runtime_error(message);
}

// Return whether the first functions are where they should be: a status must give back what it was made of.
bool check_api(const Api *api);

} // namespace dragoman::ort
