// The state of the decoder's rows, in memory that Python owns and operators change in place.
#pragma once

#include <cstdint>

#include "search/layout.h"

namespace dragoman {

// Pointers into arrays of these structures, and their sizes.
struct State {
  Control *control;
  Row *rows;                // (num_slots,)
  int64_t *output_ids;      // (num_slots, capacity)
  int32_t *history;         // (num_slots, capacity): which slot holds each token's keys and values; beams only
  Hypothesis *hypotheses;   // (2 num_slots,)
  int64_t *hypothesis_ids;  // (2 num_slots, capacity)
  int64_t num_slots;
  int64_t capacity; // tokens per row
};

} // namespace dragoman
