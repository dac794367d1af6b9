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
  // (3 num_slots, capacity): which slot holds the keys and values of each token that was read; beams only. After those
  // of the rows come those of `hypotheses`.
  int32_t *history;
  Hypothesis *hypotheses;   // (2 num_slots,)
  int64_t *hypothesis_ids;  // (2 num_slots, capacity)
  int64_t num_slots;
  int64_t capacity; // tokens per row
};

} // namespace dragoman
