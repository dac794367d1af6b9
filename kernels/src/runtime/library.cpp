// The library's entry: registers the operators with ONNX Runtime.

#include "runtime/decode.h"
#include "runtime/encode.h"
#include "runtime/operator.h"
#include "runtime/ort.h"
#include "runtime/selection.h"

namespace dragoman {
namespace {

// Never deleted: ONNX Runtime keeps their addresses.
struct Operators {
  Operator<Encode> encode;
  Operator<Decode> decode;
};

void add_operators(const ort::Api *api, ort::SessionOptions *options) {
  static Operators &operators = *new Operators;
  ort::CustomOpDomain *domain = nullptr;
  ort::check(api, ort::entry<ort::Status *(*)(const char *, ort::CustomOpDomain **)>(
                      api, ort::kCreateCustomOpDomain)("dragoman", &domain));
  auto add = ort::entry<ort::Status *(*)(ort::CustomOpDomain *, const ort::CustomOp *)>(api, ort::kCustomOpDomainAdd);
  ort::check(api, add(domain, &operators.encode));
  ort::check(api, add(domain, &operators.decode));
  ort::check(api, ort::entry<ort::Status *(*)(ort::SessionOptions *, ort::CustomOpDomain *)>(
                      api, ort::kAddCustomOpDomain)(options, domain));
}

} // namespace
} // namespace dragoman

extern "C" __attribute__((visibility("default"))) dragoman::ort::Status *
RegisterCustomOps(dragoman::ort::SessionOptions *options, const dragoman::ort::ApiBase *base) {
  using namespace dragoman;
  const ort::Api *api = base->get_api(ort::kApiVersion);
  if (!ort::check_api(api))
    return nullptr; // without its functions there is no error to return: sessions won't know the operators
  if (selected_compute() == nullptr)
    return ort::new_status(api, ort::kInvalidArgument,
                           "DRAGOMAN_KERNELS is not an instruction set of this CPU; allowed on every CPU: portable");
  return guarded(api, [&] { add_operators(api, options); });
}
