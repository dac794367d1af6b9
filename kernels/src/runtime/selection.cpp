#include "runtime/selection.h"

#include <cstdlib>

namespace dragoman {

const Compute *selected_compute() {
  const char *name = std::getenv("DRAGOMAN_KERNELS");
  return find_compute(name == nullptr ? "" : name);
}

} // namespace dragoman
