// The ranking of a beam's continuations.
#pragma once

#include <cstdint>

#include "search/rescoring.h"
#include "search/state.h"

namespace dragoman {

// A beam, one token longer.
struct Continuation {
  int32_t parent; // the rank of the beam that it continues
  int32_t token_id;
  float log_prob; // summed over the hypothesis
};

// The best continuations of a search of k beams, best first.
struct Ranking {
  Continuation top[kMaxBeam];     // the k best, whether they end or not
  Continuation running[kMaxBeam]; // the k best that don't end
};

// Rank the continuations of beams of these summed log-probabilities (width,); each beam's candidates (width,) are best
// first and at least two. Ties go to the earlier beam and, within a beam, to the earlier candidate.
Ranking rank_continuations(const float *log_probs, const Candidates *candidates, int32_t width, int32_t eos_id);

} // namespace dragoman
