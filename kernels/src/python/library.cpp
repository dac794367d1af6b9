// Functions of the search for Python, which calls them by ctypes (`service/engine/runtime/step_search.py`).
#include <exception>
#include <string>

#include "compute/compute.h"
#include "search/repeats.h"
#include "search/stepper.h"

#define ENTRY extern "C" __attribute__((visibility("default")))

namespace {

using namespace dragoman;

struct Handle {
  Stepper stepper;
  std::string error; // what the last call threw
};

template <typename Call> const char *told(Handle *handle, Call call) {
  try {
    call(handle->stepper);
    return nullptr;
  } catch (const std::exception &caught) {
    handle->error = caught.what();
    return handle->error.c_str();
  }
}

} // namespace

// The memory must outlive what is returned. Null if there is no memory for it.
ENTRY void *dragoman_stepper_new(const State *state, const Exchange *exchange, int32_t vocabulary_size,
                                 int32_t renormalizes) {
  SearchModel model{};
  model.vocabulary_size = vocabulary_size;
  model.renormalizes = renormalizes != 0;
  model.compute = find_compute("");
  if (model.compute == nullptr)
    model.compute = find_compute("portable"); // it gives the same bits
  try {
    return new Handle{Stepper(*state, model, exchange), {}};
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}

ENTRY void dragoman_stepper_delete(void *handle) { delete static_cast<Handle *>(handle); }

// What both return is null, or what is wrong, until the next call.
ENTRY const char *dragoman_stepper_begin(void *handle) {
  return told(static_cast<Handle *>(handle), [](Stepper &stepper) { stepper.begin(); });
}

ENTRY const char *dragoman_stepper_advance(void *handle) {
  return told(static_cast<Handle *>(handle), [](Stepper &stepper) { stepper.advance(); });
}

ENTRY int32_t dragoman_most_repeats(const int64_t *ids, int64_t count) { return most_repeats(ids, count); }
