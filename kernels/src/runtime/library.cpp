// The library's entry: registers the operators with ONNX Runtime.

#include <deque>
#include <mutex>
#include <new>
#include <string>

#include "runtime/decode.h"
#include "runtime/encode.h"
#include "runtime/operator.h"
#include "runtime/ort.h"
#include "runtime/selection.h"

namespace dragoman {
namespace {

constexpr char kSharedWeights[] = "dragoman.shared_weights"; // an entry of a session's configuration: a folder
constexpr size_t kLongestFolder = 4096;

// Return an entry of a session's configuration; empty without one.
std::string config_entry(const ort::Api *api, const ort::SessionOptions *options, const char *name) {
  int exists = 0;
  ort::check(api, ort::entry<ort::Status *(*)(const ort::SessionOptions *, const char *, int *)>(
                      api, ort::kHasConfigEntry)(options, name, &exists));
  if (!exists)
    return "";
  std::string value(kLongestFolder, '\0');
  size_t size = value.size();
  ort::check(api, ort::entry<ort::Status *(*)(const ort::SessionOptions *, const char *, char *, size_t *)>(
                      api, ort::kGetConfigEntry)(options, name, value.data(), &size));
  return std::string(value.c_str());
}

struct Operators {
  explicit Operators(const std::string &folder) : encode(folder), decode(folder) {}
  Operator<Encode> encode;
  Operator<Decode> decode;
};

// Return the operators for a folder of shared weights. They are never deleted: ONNX Runtime keeps their addresses.
Operators &operators_for(const std::string &folder) {
  static std::mutex mutex;
  static auto &made = *new std::deque<Operators>;
  std::lock_guard<std::mutex> lock(mutex);
  for (Operators &operators : made)
    if (operators.encode.shared_weights == folder)
      return operators;
  return made.emplace_back(folder);
}

void add_operators(const ort::Api *api, ort::SessionOptions *options) {
  Operators &operators = operators_for(config_entry(api, options, kSharedWeights));
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
                           "DRAGOMAN_KERNELS names an instruction set that is unknown or that this CPU lacks");
  return guarded(api, [&] { add_operators(api, options); });
}
