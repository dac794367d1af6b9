// The instruction set in use.
#pragma once

#include "compute/compute.h"

namespace dragoman {

// The table that the environment variable DRAGOMAN_KERNELS names, or the fastest that this CPU can run; null if the
// named one is unknown or can't run here.
const Compute *selected_compute();

} // namespace dragoman
