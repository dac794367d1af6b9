// What ONNX Runtime calls: an adapter from a class with a constructor (NodeInfo &) and `run(Context &)`.
#pragma once

#include <exception>
#include <new>

#include "runtime/ort.h"
#include "runtime/tensor.h"

namespace dragoman {

// Run `body`; what it throws becomes a status.
template <typename Body> ort::Status *guarded(const ort::Api *api, Body body) noexcept {
  const char *message = "an unknown error";
  try {
    body();
    return nullptr;
  } catch (const std::bad_alloc &) {
    message = "bad allocation: no memory"; // as NumPy and ONNX Runtime name it
    return ort::new_status(api, ort::kFail, message);
  } catch (const std::exception &error) {
    return ort::new_status(api, ort::kInvalidArgument, error.what());
  } catch (...) {
    return ort::new_status(api, ort::kFail, message);
  }
}

// `Kernel` has: name; inputs[] and outputs[] (element types); a constructor from NodeInfo; run(const Context &), which
// several threads may call at once. Exceptions become errors of the session or the run.
template <typename Kernel> struct Operator : ort::CustomOp {
  struct Instance {
    const ort::Api *api;
    Kernel kernel;
  };

  static constexpr size_t num_inputs = sizeof Kernel::inputs / sizeof Kernel::inputs[0];
  static constexpr size_t num_outputs = sizeof Kernel::outputs / sizeof Kernel::outputs[0];

  Operator() : ort::CustomOp{} {
    using ort::CustomOp;
    version = ort::kApiVersion;
    get_name = [](const CustomOp *) { return Kernel::name; };
    get_execution_provider = [](const CustomOp *) -> const char * { return "CPUExecutionProvider"; };
    get_input_type = [](const CustomOp *, size_t index) {
      return index < num_inputs ? Kernel::inputs[index] : ort::kUndefined;
    };
    get_input_count = [](const CustomOp *) { return num_inputs + 1; };
    get_output_type = [](const CustomOp *, size_t index) { return Kernel::outputs[index]; };
    get_output_count = [](const CustomOp *) { return num_outputs; };
    destroy_kernel = [](void *instance) { delete static_cast<Instance *>(instance); };
    get_input_characteristic = [](const CustomOp *, size_t index) {
      return index < num_inputs ? ort::kRequired : ort::kVariadic; // the constants
    };
    get_output_characteristic = [](const CustomOp *, size_t) { return ort::kRequired; };
    get_input_memory_type = [](const CustomOp *, size_t) -> int32_t { return 0; };
    get_variadic_input_min_arity = [](const CustomOp *) { return 1; };
    get_variadic_input_homogeneity = [](const CustomOp *) { return 0; };
    get_variadic_output_min_arity = [](const CustomOp *) { return 0; };
    get_variadic_output_homogeneity = [](const CustomOp *) { return 1; };
    create_kernel_v2 = [](const CustomOp *, const ort::Api *api, const ort::KernelInfo *info, void **out) {
      return guarded(api, [&] {
        NodeInfo node(api, info, num_inputs);
        *out = new Instance{api, Kernel(node)};
      });
    };
    compute_v2 = [](void *instance, ort::KernelContext *context) {
      auto *self = static_cast<Instance *>(instance);
      return guarded(self->api, [&] { self->kernel.run(Context(self->api, context)); });
    };
    get_start_version = [](const CustomOp *) { return 1; };
    get_end_version = [](const CustomOp *) { return 1; };
  }
};

} // namespace dragoman
