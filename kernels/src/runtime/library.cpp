// The library's entry: registers the operators with ONNX Runtime.

#include "runtime/decode.h"
#include "runtime/encode.h"
#include "runtime/operator.h"
#include "runtime/ort.h"
#include "runtime/selection.h"

extern "C" __attribute__((visibility("default"))) dragoman::ort::Status *
RegisterCustomOps(dragoman::ort::SessionOptions *options, const dragoman::ort::ApiBase *base) {
  using namespace dragoman;
  const ort::Api *api = base->get_api(ort::kApiVersion);
  if (!ort::check_api(api))
    return nullptr; // without its functions there is no error to return: sessions won't know the operators
  if (selected_compute() == nullptr)
    return ort::new_status(api, ort::kInvalidArgument,
                           "DRAGOMAN_KERNELS names an instruction set that is unknown or that this CPU lacks");
  static Operator<Encode> encode;
  static Operator<Decode> decode;
  ort::CustomOpDomain *domain = nullptr;
  if (ort::Status *status = ort::entry<ort::Status *(*)(const char *, ort::CustomOpDomain **)>(
          api, ort::kCreateCustomOpDomain)("dragoman", &domain))
    return status;
  auto add = ort::entry<ort::Status *(*)(ort::CustomOpDomain *, const ort::CustomOp *)>(api, ort::kCustomOpDomainAdd);
  if (ort::Status *status = add(domain, &encode))
    return status;
  if (ort::Status *status = add(domain, &decode))
    return status;
  return ort::entry<ort::Status *(*)(ort::SessionOptions *, ort::CustomOpDomain *)>(api, ort::kAddCustomOpDomain)(
      options, domain);
}
