// The tables of all instruction sets. One that the compiler's target has no instructions for is not defined.
#pragma once

#include "compute/compute.h"

namespace dragoman {

extern const Compute kAvx512Vnni;
extern const Compute kAvxVnni;
extern const Compute kAvx2;
extern const Compute kNeonDot;
extern const Compute kPortable;

} // namespace dragoman
