// Sampling with reproducible random numbers.
#pragma once

#include <cstdint>

#include "search/state.h"

namespace dragoman {

// Return a random number in [0, 1), a function only of the row's seed and the position of the token to choose.
double uniform(uint64_t seed, int32_t position);

// Choose one of a sampled row's candidates (count,), 1 to `kMaxCandidates` of them, best first. One of probability 0 is
// never chosen.
int draw(const Row &row, const float *log_probs, int count);

} // namespace dragoman
